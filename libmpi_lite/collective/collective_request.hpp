// One collective operation of this process: the request that the user waits for, and what its
// algorithm needs until then. Handles that the user frees meanwhile stay valid for it (MPI 5.0,
// section 6.12).
#pragma once

#include <string>

#include "libmpi_lite/collective/collective.hpp"
#include "libmpi_lite/collective/task.hpp"

namespace viaduct::mpi {

class Collective final : public Request, public Pooled {
 public:
  using Pooled::operator new;
  using Pooled::operator delete;

  // Takes the next tag of the communicator: operations that are under way together do not mix,
  // because all processes start them in the same order.
  explicit Collective(Comm& comm);
  // With a tag of its own: what only some of the processes have started.
  Collective(Comm& comm, int tag);

  Comm* communicator() const override { return comm_.get(); }
  Comm& comm() const { return *comm_; }
  // Keeps it alive until the operation is complete.
  Datatype& hold(MPI_Datatype type);
  void hold(const Op& op) { op_ = Ref<Op>(const_cast<Op*>(&op)); }
  Items items(const Part& part) { return {part.data, part.count, &hold(part.type)}; }

  // Messages of this operation, to and from ranks of the communicator...
  Ref<Request> send(int rank, const Items& items) const { return send(with(rank), items); }
  Ref<Request> receive(int rank, const Items& items) const {
    return start_receive(items, with(rank));
  }
  // ... and of another one.
  Ref<Request> send(const Envelope& to, const Items& items) const {
    if (lost_ >= 0) [[unlikely]]
      return send_loss(to, lost_);
    return start_send(items, to, SendMode::standard);
  }
  Ref<Request> receive(const Envelope& from, const Items& items) const {
    return start_receive(items, from);
  }

  // Something went wrong; the first error stays.
  void note(int code, std::string why) {
    if (error != MPI_SUCCESS) return;
    error = code;
    why_ = std::move(why);
  }
  // As above. A receive that fails for want of a process leaves nothing to go on with: from then on
  // the others hear of the loss instead of what they wait for.
  void note(const Request& message);
  bool lacks_process() const { return lost_ >= 0; }
  const std::string& why() const { return why_; }

  // Runs the algorithm up to its first wait. It keeps itself alive until it is complete.
  Ref<Request> run(Task task);
  void finish_if_done();

 private:
  Envelope with(int rank) const { return {comm_.get(), comm_->collective_context(), rank, tag_}; }
  void note(const std::exception_ptr& thrown);

  const Ref<Comm> comm_;
  const int tag_;
  int lost_ = -1;  // the process without which this one cannot send what it should
  Ref<Op> op_;
  PoolVector<Ref<Datatype>> types_;
  std::string why_;
  Task task_;
  Ref<Collective> self_;
};

}  // namespace viaduct::mpi
