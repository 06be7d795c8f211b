// Operations under way (MPI 5.0, section 3.7).
#pragma once

#include <mpi.h>

#include "libmpi_lite/core/comm.hpp"
#include "libmpi_lite/core/datatype.hpp"
#include "libmpi_lite/core/status.hpp"

namespace viaduct::mpi {

enum class SendMode : std::uint8_t { standard, synchronous, ready, buffered };

// One operation. Made and freed by Requests (transfer/requests.hpp); whoever starts one and is not
// the user (a collective, a blocking call) releases it when it is complete.
class Request : public Counted {
 public:
  enum class Kind : std::uint8_t { send, receive, collective, generalized };
  virtual ~Request() = default;
  // Whose error handler hears of what went wrong; nullptr: it belongs to no communicator.
  virtual Comm* communicator() const { return nullptr; }

  Kind kind;
  bool complete = false;
  bool persistent = false;
  bool active = true;  // persistent ones: started and not yet completed by a wait or test
  bool cancelled = false;
  std::uint8_t seconds = 0;  // that have been spent waiting since it began, as far as known
  int error = MPI_SUCCESS;   // class or code of what went wrong
  MPI_Status status = empty_status();  // of a complete one

  // Called once when the operation completes, from inside progress; may start other operations but
  // must not wait. Collectives continue by it.
  void (*on_complete)(Request& request, void* argument) = nullptr;
  void* on_complete_argument = nullptr;

  void finish() {
    complete = true;
    if (on_complete) on_complete(*this, on_complete_argument);
  }

 protected:
  explicit Request(Kind kind) : kind(kind) {}
};

inline HandleTable<Request, HandleKind::request> request_handles;

}  // namespace viaduct::mpi
