// Point-to-point communication: matching in MPI's order (MPI 5.0, section 3.5) and the protocols
// that carry a message. This is the interface of transfer/ for the layers above, api/ and
// collective/; engine.hpp is the implementation. docs/mpi.md tells how the protocols work and why.
//
// The functions name processes by rank in MPI_COMM_WORLD, and streams of messages by context. Only
// `source` in a status is a rank in the communicator: the sender has put it into the message.
// The caller has checked all arguments.
//
// Threads: one thread at a time is in the library (core/threads/library_lock.hpp); nothing here
// locks. While a function waits, other threads may come in.
// Buffers belong to the caller and must stay valid until the request is complete.
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

  MPI_Count bytes() const { return count * type->size(); }  // of data, without gaps
  // Where the data starts; only for contiguous types.
  std::byte* first_byte() const { return byte_at(data, type->true_lb()); }
};

// The destination of a send or the source of a receive, without its data (MPI 5.0, section 3.2.3).
struct Envelope {
  Comm* comm;
  std::uint32_t context;  // comm->context() or comm->collective_context()
  int rank;               // in the group that `comm` sends to; MPI_PROC_NULL; or MPI_ANY_SOURCE
  int tag;                // receives: or MPI_ANY_TAG
};

// A message that MPI_Mprobe has taken out of the matching; the engine's class Unexpected.
class Message : public Counted {
 public:
  virtual ~Message() = default;
};
inline HandleTable<Message, HandleKind::message> message_handles;

// ---- operations; in transfer/operations.cpp ----------------------------------------------------
//
// The caller owns the requests that these functions return. Blocking forms throw Error
// (truncation, a lost peer, no buffer space); nonblocking ones report in Request::error. The
// exception is buffered mode, where start_send() throws Error at once if there is no room.

// Starts a send. If the message is on its way already, the result is complete_send().
Ref<Request> start_send(const Items& items, const Envelope& to, SendMode mode);
// All sends that are complete when they are started share this one request, so that a short send
// allocates nothing.
inline constexpr std::uintptr_t kCompleteSend = 0x181;  // its handle: behind MPI_REQUEST_NULL
class CompleteSend final : public Request {
 public:
  CompleteSend() : Request(Kind::send) { complete = true; }
};
Ref<Request> complete_send();
Ref<Request> start_receive(const Items& into, const Envelope& from);
// Sends a loss notice in place of a message whose data would have come from the lost `process`.
// The receive that the notice meets fails with MPI_ERR_PROC_ABORTED. The result is complete.
Ref<Request> send_loss(const Envelope& to, int process);
void send(const Items& items, const Envelope& to, SendMode mode);
void receive(const Items& into, const Envelope& from,
             MPI_Status* status);  // may be MPI_STATUS_IGNORE

// Persistent requests (MPI 5.0, section 3.9) are made inactive. start() may be called whenever the
// request is inactive; for buffered mode it throws Error if there is no room.
Ref<Request> make_send(const Items& items, const Envelope& to, SendMode mode);
Ref<Request> make_receive(const Items& into, const Envelope& from);
void start(Request& persistent);

// Whether a message has arrived that could be received now (MPI 5.0, section 3.8). Does not poll.
bool has_message(const Envelope& from);
// Where there is none: throws Error if a process that could have sent it is lost.
void check_sender(const Envelope& from);
// Fills in the status of the message; false: there is none. matched_probe() takes the message out
// of the matching: only start_matched_receive() can then receive it.
bool probe(const Envelope& from, MPI_Status* status);
Ref<Message> matched_probe(const Envelope& from, MPI_Status* status);  // nullptr: none
Ref<Request> start_matched_receive(const Items& into, Message& message);

// Write protocol: whether it may be worth while to poll before such a message of so many bytes is
// sent, as its receive may ask for it, and has not yet.
bool may_be_asked(const Envelope& to, std::size_t bytes);

// The process from which `request` awaits a message, if it is a posted receive with that tag; else
// -1, also for MPI_ANY_SOURCE.
int awaited_process(const Request& request, int tag);
// Whether the complete receive has got as many bytes as its buffer holds.
bool received_all(const Request& receive);

// The process whose loss has ended that send or receive with MPI_ERR_PROC_ABORTED.
int lost_process(const Request& message);

// One sentence about what went wrong with a request whose `error` says so.
std::string error_text(const Request& request);

// Asks for a cancellation (section 3.8.4). The request still has to be waited for; it completes
// either as cancelled or as if nothing had been asked.
void cancel(Request& request);

// ---- progress ----------------------------------------------------------------------------------

// Polls all channels, the backlog and the collectives once. Returns whether anything happened.
bool progress();
// Polls the channels and the backlog only: for a collective that goes on at once. Where processes
// share CPUs, gives way to another one if nothing has happened.
void poll_channels();
// Makes progress until `done()` is true; spins, then yields, then sleeps between vain polls. A
// request that waits for a lost process completes with an error, so no wait outlasts a loss that
// the channel has noticed. `what()` gives the WaitedFor that a report of a long wait names; it is
// called only when the process gives way.
template <class Done, class What>
void wait_until(Done done, What what);

inline void wait(const Request& request) {
  wait_until([&] { return request.complete; }, [&] { return WaitedFor{.request = &request}; });
}

}  // namespace viaduct::mpi

#include "libmpi_lite/transfer/wait.hpp"
