// Point-to-point communication: matching in MPI's order (MPI 5.0, section 3.5) and the protocols
// that carry a message. docs/mpi.md tells how they work and why.
//
// Everything here speaks of processes (ranks in MPI_COMM_WORLD) and contexts; `source` in a status
// is the rank that the sender put into the message: its rank in the communicator.
// Arguments have been checked by the caller.
#pragma once

#include <memory>
#include <span>
#include <string>

#include "libmpi_lite/core/request.hpp"
#include "libmpi_lite/transfer/watch.hpp"

namespace viaduct::mpi {

// What is sent, or where to put what is received: `count` items of `type` at `data`.
struct Items {
  const void* data;
  MPI_Count count;
  Datatype* type;

  MPI_Count bytes() const { return count * type->size(); }
  // Where the data of contiguous types starts.
  std::byte* first_byte() const { return byte_at(data, type->true_lb()); }
};

// Where to: the rank `rank` of the other side of `comm` in that context of it; MPI_PROC_NULL: no
// one. Receives: MPI_ANY_SOURCE and MPI_ANY_TAG as well.
struct Envelope {
  Comm* comm;
  std::uint32_t context;  // comm->context() or comm->collective_context()
  int rank;
  int tag;
};

// A message that MPI_Mprobe has taken out of the matching.
class Message : public Counted {
 public:
  virtual ~Message() = default;
};
inline HandleTable<Message, HandleKind::message> message_handles;

// ---- operations; in transfer/operations.cpp
// -------------------------------------------------------- The requests they give are held by the
// caller. Blocking forms throw Error (truncation, a lost peer, no buffer space); nonblocking ones
// report in Request::error.

Ref<Request> start_send(const Items& items, const Envelope& to, SendMode mode);
// All sends that were complete at once are this one request.
inline constexpr std::uintptr_t kCompleteSend = 0x181;  // its handle: behind MPI_REQUEST_NULL
class CompleteSend final : public Request {
 public:
  CompleteSend() : Request(Kind::send) { complete = true; }
};
Ref<Request> complete_send();
Ref<Request> start_receive(const Items& into, const Envelope& from);
// Where a message would have been needed from a process that is lost: instead of the one that now
// cannot be right. Its receive ends with MPI_ERR_PROC_ABORTED. Complete at once.
Ref<Request> send_loss(const Envelope& to, int process);
void send(const Items& items, const Envelope& to, SendMode mode);
void receive(const Items& into, const Envelope& from,
             MPI_Status* status);  // may be MPI_STATUS_IGNORE

// Persistent: made inactive; start() as often as wanted, each time when inactive.
Ref<Request> make_send(const Items& items, const Envelope& to, SendMode mode);
Ref<Request> make_receive(const Items& into, const Envelope& from);
void start(Request& persistent);

// A message that could be received now; for the matched kind it is taken out of the matching.
// Throws Error if there is none and its sender is lost.
bool probe(const Envelope& from, MPI_Status* status);
Ref<Message> matched_probe(const Envelope& from, MPI_Status* status);  // nullptr: none
Ref<Request> start_matched_receive(const Items& into, Message& message);

// From whom a receive with that tag waits for a message that has not come; -1: from nobody.
int awaited_process(const Request& request, int tag);
// As many bytes as there is room for.
bool received_all(const Request& receive);

// Whose loss has ended that message with MPI_ERR_PROC_ABORTED.
int lost_process(const Request& message);

// One sentence about what went wrong with a request whose `error` says so.
std::string error_text(const Request& request);

// Asks for a cancellation (section 3.8.4); the request completes either way.
void cancel(Request& request);

// ---- progress ----------------------------------------------------------------------------------

// Makes progress on everything once. Whether anything happened.
bool progress();
// Polls until `done()`; spins, then yields, then sleeps. What waits for a process that is lost
// completes with an error.
// `what()` gives the WaitedFor that reports of a long wait name.
template <class Done, class What>
void wait_until(Done done, What what);

inline void wait(const Request& request) {
  wait_until([&] { return request.complete; }, [&] { return WaitedFor{.request = &request}; });
}

// ---- buffered mode (section 3.6) ---------------------------------------------------------------

// MPI_BUFFER_AUTOMATIC: messages wait in memory of the library's, as much as they need.
void attach_buffer(void* buffer, std::size_t bytes);
// Waits until all that is in it has been sent.
void detach_buffer(void*& buffer, std::size_t& bytes);

}  // namespace viaduct::mpi

#include "libmpi_lite/transfer/wait.hpp"
