// MBCF's write protocol (MPI/MBCF, EuroPVM/MPI 1999, section 2.1), a receiver-initiated rendezvous:
// a receive from a known source that is posted before its message tells the sender where its buffer
// is (ready-to-receive, RTR), and the sender writes straight into that buffer.
//
//        receiver                                          sender
//   start(): posted; send_rtrs(), send_rtr()
//   opens the buffer at the channel
//        |  -- RTR: envelope, seen, id, capacity, remote key -->  |
//   rtr_sent                                        on_rtr(): into Peer::pending_rtrs, or dropped
//        |                                          if a message has crossed it
//        |                                                        |
//        |                                          start(): write_to_rtr() uses the RTR
//        |  <------- written: envelope, id, length -------------  |
//        |  <======= the channel moves the data ================  |
//   on_written and on_long_received,                on_long_sent: complete
//   in either order; then complete
//
// If the message goes by another protocol instead, the receiver's on_rtr_missed() closes the
// buffer.
//
// The sender matches here, and must match as the receiver would: it must not use an RTR whose
// receive another message will have satisfied, and must use RTRs in the order in which MPI matches.
// Three rules make both ends agree exactly:
//  * The receiver sends an RTR only if it has sent one for every older receive that could take the
//    same messages.
//  * An RTR says how many messages of the sender had arrived when it was sent. A message that the
//    sender sent after those has crossed the RTR. The oldest such message that the receive accepts,
//    and that is not accounted to an older RTR, satisfies the receive.
//  * A message that satisfies a receive with an RTR uses up the RTR, whatever protocol carries the
//    message.

#include <algorithm>

#include "libmpi_lite/transfer/engine.hpp"

namespace viaduct::mpi {
namespace {

// Back-off: after n RTRs in vain, the next 2^n receives from that process send none. Limits n.
constexpr unsigned kMaxMissed = 6;
// RTRs that one posted receive may cause, its own and those of older receives. For each of them all
// older receives are searched, so the number must be small.
constexpr unsigned kMaxRtrsAtATime = 8;

bool accepts(int rtr_tag, int tag) {
  return rtr_tag == MPI_ANY_TAG || rtr_tag == tag;
}

}  // namespace

// ---- receiver ----------------------------------------------------------------------------------

// Older receives that backed off, or found no place in the channel, need their RTR first (the
// first rule). The message of the oldest may be on its way by now, but those of the others need
// not be. An older receive that must not have one rules out the RTR of this one, too: it accepts
// any source, or a still older receive without an RTR could take its messages.
void Transfer::send_rtrs(Peer& p, ReceiveRequest& receive) {
  if (!may_send_rtr(p, receive) || backs_off(p)) return;
  MatchQueues& queues = matches_[receive.context];
  for (unsigned sent = 0; sent < kMaxRtrsAtATime; ++sent) {
    ReceiveRequest& oldest = queues.first_without_rtr(receive);
    if (&oldest != &receive &&
        (oldest.peer != p.rank || &queues.first_without_rtr(oldest) != &oldest))
      return;
    if (!send_rtr(p, oldest) || &oldest == &receive) return;
  }
}

// What fits an eager message needs no RTR. With a backlog the channel is full, and the RTR would be
// late. limits().early leaves room in the channel for receives whose RTS has arrived.
bool Transfer::may_send_rtr(const Peer& p, const ReceiveRequest& receive) const {
  return static_cast<std::uint64_t>(receive.bytes) > p.eager_limit && receive.type->contiguous() &&
         !backlogged(p) && open_rtrs_[p.channel] < p.through->limits().early;
}

// The caller has made sure of the first rule. false: no RTR is allowed, or the channel has no room.
bool Transfer::send_rtr(Peer& p, ReceiveRequest& receive) {
  if (!may_send_rtr(p, receive)) return false;
  register_request(receive);
  RtrHead head{};
  const MutableBytes into{receive.contiguous(), static_cast<std::size_t>(receive.bytes)};
  if (!p.through->open_receive(p.rank, into, nullptr, receive.id, receive.remote_key))
    return unregister_request(receive), false;
  receive.rtr_sent = true;
  ++open_rtrs_[p.channel];
  receive.written_received = receive.transfer_complete = false;
  head.kind = Kind::ready_to_receive;
  head.context = receive.context;
  head.tag = receive.tag;
  head.seen = p.arrived;
  head.receive = receive.id;
  head.capacity = static_cast<std::uint64_t>(receive.bytes);
  head.remote_key = receive.remote_key;
  ++counters_[p.channel].rtrs_sent;
  // After failures this RTR is a test: the next receives back off until its outcome is known.
  if (p.rtrs_missed != 0) p.rtr_backoff = 1u << p.rtrs_missed;
  send_control(p, bytes_of(head));
  return true;
}

// Counts down the back-off. An RTR costs both ends and gains nothing if the message is on its way.
bool Transfer::backs_off(Peer& p) {
  if (p.rtr_backoff == 0) return false;
  --p.rtr_backoff;
  return true;
}

void Transfer::on_rtr_missed(ReceiveRequest& receive) {
  if (!receive.rtr_sent) return;
  release_rtr(receive);
  Peer& p = peer(receive.peer);
  ++counters_[p.channel].rtrs_missed;
  p.rtrs_missed = std::min(p.rtrs_missed + 1, kMaxMissed);
  p.rtr_backoff = 1u << p.rtrs_missed;
  // After on_long_received the channel has closed the buffer. Only a sender that errs writes into
  // a receive and then satisfies it by another message.
  if (!receive.transfer_complete) p.through->close_receive(p.rank, receive.remote_key);
}

void Transfer::release_rtr(ReceiveRequest& receive) {
  if (!receive.rtr_sent) return;
  receive.rtr_sent = false;
  --open_rtrs_[peer(receive.peer).channel];
}

// `written` and the channel's completion take different ways, so either may come first. The status
// needs the former, the buffer the latter.
void Transfer::on_written(Peer& p, const WrittenHead& head) {
  const Ref<ReceiveRequest> receive = find<ReceiveRequest>(head.receive, p);
  if (!receive || !receive->rtr_sent || receive->written_received) return void(malformed(p));
  matches_[receive->context].unpost(*receive);
  set_status(*receive, head.head, head.length);
  receive->written_received = true;
  if (receive->transfer_complete) written_part(*receive);
}

void Transfer::written_part(ReceiveRequest& receive) {
  receive.transfer_complete = true;
  if (!receive.written_received) return;
  Peer& p = peer(receive.peer);
  p.rtrs_missed = p.rtr_backoff = 0;  // RTRs come in time again
  release_rtr(receive);
  finish(receive);
}

// ---- sender ------------------------------------------------------------------------------------

// What is left in the log has crossed the RTR (the second rule).
void Transfer::on_rtr(Peer& p, const RtrHead& head) {
  forget_seen(p, head.seen);
  for (Peer::Sent& m : p.log)
    if (!m.accounted && m.context == head.context && accepts(head.tag, m.tag)) {
      m.accounted = true;  // this message satisfies the receive, so the RTR is dropped
      return;
    }
  p.pending_rtrs.push_back({head.context, head.tag, head.receive, head.capacity, head.remote_key});
}

bool Transfer::take_rtr(Peer& p, std::uint32_t context, int tag, Rtr* taken) {
  const auto w = std::find_if(p.pending_rtrs.begin(), p.pending_rtrs.end(), [&](const Rtr& rtr) {
    return rtr.context == context && accepts(rtr.tag, tag);
  });
  if (w == p.pending_rtrs.end()) return false;
  if (taken) *taken = *w;
  p.pending_rtrs.erase(w);
  return true;
}

// Short messages do better in one control message, and types with gaps need parts. count_sent()
// then uses up the RTR (the third rule).
bool Transfer::write_to_rtr(Peer& p, SendRequest& send) {
  Rtr rtr;
  if (p.pending_rtrs.empty() || send.bytes <= static_cast<MPI_Count>(p.eager_limit) ||
      !send.type->contiguous() || !take_rtr(p, send.context, send.tag, &rtr))
    return false;
  register_request(send);
  WrittenHead head{};
  head.head = {Kind::written, {}, send.context, send.comm->rank(), send.tag};
  head.receive = rtr.receive;
  head.length = static_cast<std::uint64_t>(send.bytes);
  send.total = send.part = static_cast<MPI_Count>(std::min(head.length, rtr.capacity));
  counters_[p.channel].add(Protocol::write, send.bytes);
  send_control(p, bytes_of(head));
  start_long(p, send, {send.contiguous(), static_cast<std::size_t>(send.total)}, rtr.remote_key);
  return true;
}

// The message goes by another protocol. It uses up the RTR that it satisfies (the third rule). The
// log keeps it for RTRs that are on their way and do not know of it (the second rule).
void Transfer::count_sent(Peer& p, std::uint32_t context, int tag) {
  const bool accounted = !p.pending_rtrs.empty() && take_rtr(p, context, tag);
  p.log.push_back({p.sent + 1, context, tag, accounted});
}

// The difference is signed, as the counts are modulo 2^32.
void Transfer::forget_seen(Peer& p, std::uint32_t seen) {
  while (!p.log.empty() && static_cast<std::int32_t>(p.log.front().serial - seen) <= 0)
    p.log.pop_front();
}

}  // namespace viaduct::mpi
