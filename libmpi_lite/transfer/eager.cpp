// The eager protocol: a short message travels in the control message itself. Also here: where sends
// and receives of all protocols start, and the credit that keeps a sender from filling a receiver's
// memory with unexpected messages. A long message, or one without credit, goes to rendezvous.cpp; a
// long one for which an RTR waits goes to write_protocol.cpp.

#include <algorithm>

#include "libmpi_lite/channel/copy.hpp"
#include "libmpi_lite/core/error.hpp"
#include "libmpi_lite/transfer/engine.hpp"

namespace viaduct::mpi {
namespace {

Head head_of(Kind kind, std::uint32_t context, const Comm& comm, int tag) {
  return head_of(kind, context, static_cast<std::uint32_t>(comm.rank()),
                 static_cast<std::uint32_t>(tag));
}

// The head of an eager message that needs no `matched`: a ShortHead if the envelope fits. Views
// itself, so it cannot be copied.
class EagerHead {
 public:
  EagerHead(std::uint32_t context, const Comm& comm, int tag) {
    if (ShortHead::fits(context, comm.rank(), tag)) [[likely]] {
      short_ = ShortHead::of(context, comm.rank(), tag);
      bytes_ = bytes_of(short_);
    } else {
      long_ = head_of(Kind::eager, context, comm, tag);
      bytes_ = bytes_of(long_);
    }
  }
  EagerHead(const EagerHead&) = delete;
  EagerHead& operator=(const EagerHead&) = delete;
  operator Bytes() const { return bytes_; }

 private:
  union {
    ShortHead short_;
    Head long_;
  };
  Bytes bytes_;
};

}  // namespace

// ---- sending -----------------------------------------------------------------------------------

// Leaves to start() all that is not the common case: messages that need packing, credit or an
// answer, or that must queue behind the backlog.
bool Transfer::send_now(const Items& items, const Envelope& to, SendMode mode) {
  if (to.rank == MPI_PROC_NULL) return true;
  Peer& p = peer(to.comm->peer(to.rank));
  const MPI_Count bytes = items.bytes();
  if (mode == SendMode::synchronous || !items.type->contiguous() || !p.outgoing.empty() || p.lost)
      [[unlikely]]
    return false;
  if (!p.pending_rtrs.empty() || !p.due_rtrs.empty()) [[unlikely]]
    return send_now_with_rtrs(p, items, to);
  if (!may_be_eager(p, bytes)) [[unlikely]]
    return false;
  const EagerHead head(to.context, *to.comm, to.tag);
  const Bytes data{items.first_byte(), static_cast<std::size_t>(bytes)};
  // No counter may change before the channel has taken the message: on `false` start() counts it.
  if (!p.through->send_control(p.rank, head, data)) return false;
  if (p.write_protocol) count_sent(p, to.context, to.tag, bytes);
  ++p.sent;
  p.eager_sent += static_cast<std::uint32_t>(bytes) + kEagerCharge;
  counters_[p.channel].add(Protocol::eager, bytes);
  return true;
}

// The message is written into the receive whose RTR it satisfies, or takes an RTR of this process
// along, or both. An RTR that has been prepared and cannot ride goes into the backlog.
bool Transfer::send_now_with_rtrs(Peer& p, const Items& items, const Envelope& to) {
  const auto bytes = static_cast<std::size_t>(items.bytes());
  const auto rtr = find_rtr(p, to.context, to.tag);
  const bool written = rtr != p.pending_rtrs.end() && bytes >= p.least_written;
  if (written ? !p.writes_now : !may_be_eager(p, items.bytes())) return false;
  RiddenHead head;
  let_ride(p, head, bytes);
  if (!p.outgoing.empty()) return false;
  const Bytes rider = head;
  bool sent = false;
  if (written) {
    head.add(bytes_of(written_head(*rtr, to.tag, bytes)));
    const Bytes data{items.first_byte(), std::min(bytes, std::size_t{rtr->capacity})};
    sent = p.through->write_now(p.rank, data, rtr->remote_key, head);
    if (sent) {
      p.pending_rtrs.erase(rtr);
      p.asked_last = true;
      counters_[p.channel].add(Protocol::write, items.bytes());
    }
  } else {
    head.add(EagerHead(to.context, *to.comm, to.tag));
    sent = p.through->send_control(p.rank, head, {items.first_byte(), bytes});
    if (sent) {
      count_sent(p, to.context, to.tag, items.bytes());
      ++p.sent;
      p.eager_sent += static_cast<std::uint32_t>(bytes) + kEagerCharge;
      counters_[p.channel].add(Protocol::eager, items.bytes());
    }
  }
  if (!sent && !rider.empty()) send_control(p, rider);
  return sent;
}

void Transfer::send(const Items& items, const Envelope& to, SendMode mode) {
  const auto request = make<SendRequest>(items, to, to.comm->peer(to.rank), mode);
  start(*request);
  wait(*request);
  if (request->error != MPI_SUCCESS) throw Error(request->error, error_text(*request));
}

// Chooses the protocol. A message that uses an RTR takes no part in matching at the receiver, so
// `sent` does not count it.
void Transfer::start(SendRequest& send) {
  if (send.rank == MPI_PROC_NULL) return send.finish();
  Peer& p = peer(send.peer);
  if (p.lost) return fail(send, MPI_ERR_PROC_ABORTED);
  if (!p.due_rtrs.empty()) send_due_rtrs(p);
  if (p.write_protocol && write_to_rtr(p, send)) return;
  const bool eager = may_be_eager(p, send.bytes);
  if (p.write_protocol) count_sent(p, send.context, send.tag, send.bytes);
  ++p.sent;
  eager ? send_eager(p, send) : send_rts(p, send);
}

void Transfer::send_eager(Peer& p, SendRequest& send) {
  const auto bytes = static_cast<std::size_t>(send.bytes);
  const bool contiguous = send.type->contiguous();
  Bytes data{contiguous ? send.contiguous() : nullptr, contiguous ? bytes : 0};
  if (!contiguous) {
    if (scratch_.size() < bytes) scratch_.resize(bytes);
    send.type->pack(send.data, 0, {scratch_.data(), bytes});
    data = {scratch_.data(), bytes};
  }
  p.eager_sent += static_cast<std::uint32_t>(bytes) + kEagerCharge;
  counters_[p.channel].add(Protocol::eager, send.bytes);
  // The backlog may refer to the program's buffer, which stays valid until the request is complete,
  // and that is after the message has been sent. The next send reuses scratch_, so it is copied.
  if (send.mode == SendMode::synchronous) {
    register_request(send);
    send.awaits = SendRequest::Awaits::match;
    const SyncHead head{head_of(Kind::eager_sync, send.context, *send.comm, send.tag), send.id};
    send_control(p, bytes_of(head), data, nullptr, !contiguous);
  } else {
    send_control(p, EagerHead(send.context, *send.comm, send.tag), data, Ref(&send), !contiguous);
  }
}

void Transfer::on_matched(Peer& p, const IdHead& head) {
  const Ref<SendRequest> send = find<SendRequest>(head.id, p);
  if (!send || send->awaits != SendRequest::Awaits::match) return void(malformed(p));
  finish(*send);
}

// ---- receiving ---------------------------------------------------------------------------------

// Unexpected messages come first, even those of a process that is lost: what it has sent whole can
// still be received.
void Transfer::start(ReceiveRequest& receive) {
  if (receive.rank == MPI_PROC_NULL) {
    receive.status = empty_status(MPI_PROC_NULL);
    return receive.finish();
  }
  MatchQueues& queues = matches_[receive.context];
  if (Unexpected* message = queues.find_message(receive.rank, receive.tag))
    return receive_unexpected(receive, *queues.take(*message));
  if (receive.peer < 0) {
    // The message may be one that a lost process was to send. That is unknown, so fail.
    if (lost_ != 0) [[unlikely]] {
      receive.peer = lost_sender(-1, *receive.comm);  // error_text() names it
      if (receive.peer >= 0) return fail(receive, MPI_ERR_PROC_ABORTED);
    }
    return queues.post(receive);
  }
  Peer& p = peer(receive.peer);
  if (p.lost) return fail(receive, MPI_ERR_PROC_ABORTED);
  queues.post(receive);
  if (p.write_protocol) ask(p, receive);
}

// An unexpected eager message returns its credit only now: until now it has taken memory.
void Transfer::receive_unexpected(ReceiveRequest& receive, Unexpected& message) {
  Peer& p = peer(message.peer);
  if (message.lost >= 0) return fail_for_loss(receive, message.lost);
  if (message.head.kind != Kind::request_to_send) {
    const Bytes data = message.data();
    if (message.sender_id != 0)
      send_control(p, bytes_of(IdHead{Kind::matched, {}, message.sender_id}));
    deliver(receive, message.head, data);
    consume(p, data.size() + kEagerCharge);
    return;
  }
  begin_receive(receive, p, message.head, message.sender_id, message.length,
                message.offered ? &message.offer : nullptr);
}

// `sender_id`: the id that a synchronous message carries; 0: it is not synchronous.
void Transfer::on_eager(Peer& p, const Head& head, Bytes data, std::uint64_t sender_id) {
  ++p.arrived;
  if (const Ref<ReceiveRequest> receive = matches_[head.context].match_message(head)) {
    if (sender_id != 0) send_control(p, bytes_of(IdHead{Kind::matched, {}, sender_id}));
    on_rtr_missed(*receive);
    deliver(*receive, head, data);
    consume(p, data.size() + kEagerCharge);
    return;
  }
  Unexpected& message = queue_unexpected(p, head);
  message.sender_id = sender_id;
  message.keep(data);
}

Unexpected& Transfer::queue_unexpected(Peer& p, const Head& head) {
  ++counters_[p.channel].unexpected;
  auto message = make<Unexpected>();
  message->head = head;
  message->peer = p.rank;
  MatchQueues& queues = matches_[head.context];
  Unexpected& kept = queues.queue_unexpected(std::move(message));
  // An early message of a collective may show that ranks disagree about the operation.
  if (collective_context(head.context)) config_.collectives->on_early_message(queues, kept);
  return kept;
}

void Transfer::set_status(ReceiveRequest& receive, const Head& head, std::uint64_t length) {
  receive.status.MPI_SOURCE = head.source;
  receive.status.MPI_TAG = head.tag;
  const auto room = static_cast<std::uint64_t>(receive.bytes);
  set_status_bytes(receive.status, static_cast<std::int64_t>(std::min(length, room)));
  if (length > room) {
    receive.error = MPI_ERR_TRUNCATE;
    receive.status.MPI_ERROR = MPI_ERR_TRUNCATE;
    receive.sent_length = length;
  }
}

void Transfer::deliver(ReceiveRequest& receive, const Head& head, Bytes data) {
  set_status(receive, head, data.size());
  const Bytes fits = data.first(std::min(data.size(), static_cast<std::size_t>(receive.bytes)));
  if (!fits.empty()) {
    if (receive.type->contiguous())
      copy_data(receive.contiguous(), fits);
    else
      receive.type->unpack(receive.data, 0, fits);
  }
  finish(receive);
}

// ---- credit for eager messages -----------------------------------------------------------------

void Transfer::report_consumed(Peer& p) {
  p.consumed_reported = p.consumed;
  p.arrived_reported = p.arrived;
  send_control(p, bytes_of(ConsumedHead{Kind::consumed, {}, p.consumed, p.arrived}));
}

void Transfer::on_consumed(Peer& p, const ConsumedHead& head) {
  // Modulo 2^32: the reported total must lie between the last report and what was sent.
  if (p.eager_sent - head.bytes > p.eager_sent - p.eager_consumed) return void(malformed(p));
  p.eager_consumed = head.bytes;
  if (p.write_protocol) forget_seen(p, head.messages);
}

}  // namespace viaduct::mpi
