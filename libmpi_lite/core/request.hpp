// Request: an operation under way (MPI 5.0, section 3.7). transfer/requests.hpp derives sends and
// receives from it, transfer/parts/composite.hpp what consists of several, collective/ its
// collectives, api/ the generalized requests.
//
// Handles, the table of pending operations and whoever waits hold a request (Ref). Thread rule: one
// thread at a time; operations complete inside progress, or at once when they are started.
#pragma once

#include <mpi.h>

#include "libmpi_lite/core/comm.hpp"
#include "libmpi_lite/core/data/datatype.hpp"
#include "libmpi_lite/core/status.hpp"

namespace viaduct::mpi {

enum class SendMode : std::uint8_t { standard, synchronous, ready, buffered };

// The base class. Its flags `active` and `complete` are its state:
//
//   started, not persistent                  made, persistent
//         |                                         |
//         v               MPI_Start                 v
//      active  <--------------------------------  inactive
//         |                                         ^
//         | finish()                                | a wait or test takes the status
//         v                                         |
//      active, complete  ---------------------------+
//         |                                           persistent
//         +------> freed by the wait or test          not persistent
class Request : public Counted {
 public:
  enum class Kind : std::uint8_t { send, receive, collective, generalized, composite, one_sided };
  virtual ~Request() = default;
  // The communicator whose error handler hears of a failure; nullptr: there is none.
  virtual Comm* communicator() const { return nullptr; }

  Kind kind;
  bool complete = false;  // `error` and `status` are valid
  bool persistent = false;
  bool active = true;        // persistent ones: started and not yet completed by a wait or test
  bool cancelled = false;    // MPI_Cancel has succeeded
  std::uint8_t seconds = 0;  // spent in waiting since the operation began, as far as known
  int error = MPI_SUCCESS;   // error class or code of a failure
  MPI_Status status = empty_status();  // of a complete request

  // Called once, when the operation completes, from inside progress. May start other operations,
  // but must not wait. Coroutines of collectives are continued by it. nullptr: nothing to call.
  void (*on_complete)(Request& request, void* argument) = nullptr;
  void* on_complete_argument = nullptr;
  Request* next = nullptr;  // in the list of what a step of a collective waits for (Pending)

  // Completes the operation. The caller holds the request: on_complete may drop all other holds.
  void finish() {
    complete = true;
    if (on_complete) on_complete(*this, on_complete_argument);
  }

 protected:
  explicit Request(Kind kind) : kind(kind) {}
};

inline HandleTable<Request, HandleKind::request> request_handles;

}  // namespace viaduct::mpi
