// Sends and receives under way: the requests of point-to-point communication, and all state that
// the protocols keep for one message. The functions of class Transfer (engine.hpp) move requests
// from state to state; there is no code here that does.
//
// Ownership: requests are counted (Ref). The program's handle, or the call that waits, holds one;
// so do the queue of posted receives (match.hpp) and the table Transfer::pending_ while the request
// is in them. One thread at a time is in the library, so nothing is locked.
#pragma once

#include <boost/intrusive/list_hook.hpp>
#include <memory>
#include <optional>

#include "libmpi_lite/core/request.hpp"
#include "libmpi_lite/transfer/transfer.hpp"
#include "libmpi_lite/transfer/wire.hpp"

namespace viaduct::mpi {

// Links in a queue of match.hpp.
using QueueHook =
    boost::intrusive::list_member_hook<boost::intrusive::link_mode<boost::intrusive::normal_link>>;

// Allocation for small objects that come and go with each message: freed objects wait in a list by
// type and are never given back to malloc. An object of another size (of a class derived from T)
// passes through to the global operators.
template <class T>
class Recycled {
 public:
  static void* operator new(std::size_t bytes) {
    if (free_ && bytes == sizeof(T)) {
      Free* p = free_;
      free_ = p->next;
      return p;
    }
    return ::operator new(bytes);
  }
  static void operator delete(void* p, std::size_t bytes) {
    if (bytes != sizeof(T)) return ::operator delete(p);
    free_ = new (p) Free{free_};
  }

 private:
  struct Free {
    Free* next;
  };
  static inline Free* free_ = nullptr;
};

// What sends and receives have in common. The request holds the type and the communicator until it
// is freed, as a program may free its handles earlier.
//
// A request's life:
//
//     start_send(), start_receive()       make_send(), make_receive()
//               |                                    |
//               |                                    v
//               |      start(): renew()          inactive <----------------------+
//               |  <---------------------------------'                           |
//               v                                                                |
//           under way                                                            |
//               |  Transfer::register_request() sets `id`, once the other        |
//               |  process or the channel has to name the request                |
//               |                                                                |
//               |  Transfer::finish() takes `id` back; fail() sets `error`, too  |
//               v                                                                |
//           complete --- wait or test by the program, if persistent -------------'
//               |
//               |  otherwise: wait or test by the program, or the last Ref goes
//               v
//             freed
//
// Subclasses draw what happens to a message in "under way".
class Operation : public Request {
 public:
  Operation(Kind kind, const Items& items, const Envelope& envelope, int peer)
      : Request(kind),
        data(const_cast<void*>(items.data)),
        count(items.count),
        type(items.type),
        comm(envelope.comm),
        context(envelope.context),
        rank(envelope.rank),
        tag(envelope.tag),
        peer(peer),
        bytes(items.bytes()) {}

  Comm* communicator() const override { return comm.get(); }
  // Resets the outcome of the last run before a persistent request is started again.
  void renew() {
    complete = cancelled = false;
    active = true;
    error = MPI_SUCCESS;
    status = empty_status();
    moved = 0;
    seconds = 0;
  }
  Envelope envelope() const { return {comm.get(), context, rank, tag}; }
  Items items() const { return {data, count, type.get()}; }
  // Where the data starts; only for contiguous types.
  std::byte* contiguous() const { return byte_at(data, type->true_lb()); }

  void* data;  // the program's buffer
  MPI_Count count;
  Ref<Datatype> type;
  Ref<Comm> comm;
  std::uint32_t context;
  int rank, tag;    // of the envelope
  int peer;         // process at the other end; -1: any. After a loss: the process that was lost
  MPI_Count bytes;  // to send, or room to receive
  // Handle in Transfer::pending_, by which the other process and the channel name the request (the
  // cookie of its transfers); 0: not registered.
  std::uintptr_t id = 0;
  // Packed form of the part of a long message that is being moved, if the type has gaps.
  std::unique_ptr<std::byte[]> staging;
  MPI_Count moved = 0;  // bytes of a long message that have been sent, or have arrived
};

// A send. The states of its message:
//
//       Transfer::start()
//         |
//         |-- eager ------------------------> nothing ----- control message is sent ----> complete
//         |
//         |-- eager, synchronous -----------> match ------- `matched` arrives ----------> complete
//         |
//         |-- the peer's RTR waits ---------> nothing ----- on_long_sent ---------------> complete
//         |   (the data is sent, and `written`; data in one frame: complete at once)
//         |
//         '-- long, or without credit ------> first_cts
//             (RTS is sent)                     |  |
//                        CTS with total > 0     |  '------- CTS with total = 0 ---------> complete
//                                               v
//             next CTS, next part  +-----> next_cts ------- on_long_sent, last part ----> complete
//                                  +----------'
//
//       match, first_cts:   cancel() asks the receiver; `cancelled` with done = 1 -> complete,
//                           cancelled; with done = 0 the state stays.
//       any:                the peer is lost, or the channel cannot move the data -> complete, with
//                           MPI_ERR_PROC_ABORTED.

class SendRequest final : public Operation, public Recycled<SendRequest> {
 public:
  static constexpr Kind kKind = Kind::send;
  using Recycled::operator new;
  using Recycled::operator delete;
  SendRequest(const Items& items, const Envelope& to, int peer, SendMode mode)
      : Operation(kKind, items, to, peer), mode(mode) {}

  // Which control message the sender awaits from the receiver. The states are drawn above.
  enum class Awaits : std::uint8_t {
    nothing,    // none: the channel alone decides when the request is complete
    match,      // `matched`, for a synchronous message that went eagerly
    first_cts,  // the first CTS, for a long message whose RTS was sent
    next_cts,   // further CTSs, if parts are left; the message has matched
  };
  // Only a message that has not matched can be cancelled (MPI 5.0, section 3.8.4), and only one
  // that the receiver knows by its id.
  bool can_be_cancelled() const { return awaits == Awaits::match || awaits == Awaits::first_cts; }
  void renew() {
    Operation::renew();
    awaits = Awaits::nothing;
    total = part = 0;
    early_cts.reset();
  }

  const SendMode mode;
  Awaits awaits = Awaits::nothing;
  MPI_Count total = 0;  // bytes that the receiver takes; from the first CTS, or from the RTR
  MPI_Count part = 0;   // bytes of the part that is being sent; 0: none is
  // The CTS for the next part, if it has arrived before the channel's completion (on_long_sent) of
  // the current part: the two reports take different ways.
  std::optional<CtsHead> early_cts;
};

// A receive. The states of its message (`posted`, `rtr_sent`, `written_received` and
// `transfer_complete` are the fields below; "match" is a message that arrives and meets this
// receive, see match.hpp):
//
//       Transfer::start()
//         |
//         |-- an unexpected message matches --> as "match" below
//         |
//         '-- none does ----> posted --- match, eager ---------------------> complete
//                               | |  '-- match, RTS ---> sends CTSs -------> complete
//                               | '----- match, loss notice ---------------> complete, with error
//        RTR is due, then sent  |  (while it is due, all is as in `posted`)
//        (write protocol)       v
//                        posted, rtr_sent --- match by another protocol: on_rtr_missed(), then
//                            |      |         as "match"
//              `written`     |      |  on_long_received
//                            v      v
//     rtr_sent, written_received    posted, rtr_sent, transfer_complete
//                            |      |
//           on_long_received |      | `written`
//                            v      v
//                            complete
//
//       sends CTSs:      A CTS is sent for each part in turn. While the channel has no room, the
//                        receive waits in Peer::cts_due. The last on_long_received completes it;
//                        if there is nothing to take (total = 0), sending the only CTS does.
//       posted:          cancel() -> complete, cancelled, at once.
//       posted, rtr_sent: cancel() asks the sender. `cancelled` with done = 1 -> complete,
//                        cancelled. With done = 0 the receive's message is on its way.
//       any:             A process from which the message could come is lost, or the channel
//                        cannot move the data -> complete, with MPI_ERR_PROC_ABORTED.

class ReceiveRequest final : public Operation, public Recycled<ReceiveRequest> {
 public:
  static constexpr Kind kKind = Kind::receive;
  using Recycled::operator new;
  using Recycled::operator delete;
  ReceiveRequest(const Items& into, const Envelope& from, int peer)
      : Operation(kKind, into, from, peer) {}

  bool matches(int source, int with_tag) const {
    return (rank == MPI_ANY_SOURCE || rank == source) && (tag == MPI_ANY_TAG || tag == with_tag);
  }

  bool asks() const { return rtr_due || rtr_sent; }

  // Links and place in the queue of posted receives (MatchQueues).
  QueueHook hook;
  std::uint64_t serial = 0;  // order of posting, within its context
  bool posted = false;       // in that queue

  // The rendezvous with a long message.
  std::uint64_t sender_id = 0;  // id of the sender's request, from the RTS
  bool offered = false;         // `offer` holds the sender's remote key
  RemoteKey offer;
  std::uint64_t sent_length = 0;  // bytes of the message, if they did not fit (MPI_ERR_TRUNCATE)
  MPI_Count total = 0;            // bytes that will come: no more than there is room for
  MPI_Count part = 0;             // bytes of the part that is coming
  // Write protocol.
  bool rtr_due = false;            // an RTR is to be sent: the receive is in Peer::due_rtrs
  bool rtr_sent = false;           // an RTR was sent, and no message has satisfied the receive yet
  bool written_received = false;   // `written` has arrived: the sender uses the RTR
  bool transfer_complete = false;  // the channel has completed the transfer
  RemoteKey remote_key;            // of the buffer, as the RTR gave it to the sender
};

}  // namespace viaduct::mpi
