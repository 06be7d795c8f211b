// A request that consists of other operations, its parts: MPI_Isendrecv, persistent collectives,
// partitioned communication. It is complete when all of its parts are.
//
//     made, persistent              made, not persistent
//           |                                |
//           v        start_parts()           v
//       inactive ----------------------> under way, holds itself and the parts
//           ^                                |
//           |                                | the last part completes: finish_parts()
//           '------ a wait or test ------ complete
//
// Threads: one at a time, as everywhere. Parts complete inside progress, or when they are started.
#pragma once

#include <initializer_list>
#include <vector>

#include "libmpi_lite/core/request.hpp"

namespace viaduct::mpi {

class Composite : public Request {
 public:
  Comm* communicator() const override { return comm_.get(); }
  // Starts a persistent request that is inactive (MPI_Start). May throw Error, and is inactive
  // then.
  void start();
  // A part that is not complete, and one that has failed; nullptr: there is none.
  const Request* open_part() const;
  const Request* failed_part() const;

 protected:
  // `comm`: whose error handler hears of a failure; nullptr: a failure without a communicator.
  Composite(Comm* comm, bool persistent);
  // Starts the parts of one run, and hands them over with run(), or with expect() and add().
  virtual void start_parts() = 0;
  // The status and the error of the whole, when all parts are complete. By default the status of
  // the first part, and the error of the first part that has failed.
  virtual void finish_parts();
  // A run begins, of so many parts, which come one by one. The request is complete when they are.
  void expect(std::size_t parts);
  // As many parts more, before the last one is complete.
  void expect_more(std::size_t parts) { open_ += parts; }
  void add(Ref<Request> part);  // under way, or complete already
  // In place of a part that turns out to be none.
  void part_complete();
  // A run whose parts are all known.
  void run(std::initializer_list<Ref<Request>> parts);
  const std::vector<Ref<Request>>& parts() const { return parts_; }

 private:
  const Ref<Comm> comm_;
  std::vector<Ref<Request>> parts_;
  std::size_t open_ = 0;  // how many of them are not complete
  Ref<Composite> self_;   // while there are such
};

}  // namespace viaduct::mpi
