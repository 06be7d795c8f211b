// MBCF's write protocol (MPI/MBCF, EuroPVM/MPI 1999, section 2.1), a receiver-initiated rendezvous:
// a receive from a known source that is posted before its message tells the sender where its buffer
// is (ready-to-receive, RTR), and the sender writes straight into that buffer.
//
//        receiver                                          sender
//   start(): posted; ask(): the RTR is due
//   send_due_rtrs(), or let_ride() with
//   a message that goes there anyway:
//   opens the buffer at the channel
//        |  -- RTR: envelope, seen, id, capacity, remote key -->  |
//   rtr_sent                                        on_rtr(): into Peer::pending_rtrs, or dropped
//        |                                          if a message has crossed it
//        |                                                        |
//        |                                          send_now_with_rtrs(), or start() and
//        |                                          write_to_rtr(): uses the RTR
//        |  <====== data, and `written`: tag, id, length =======  |
//   on_written and on_long_received,                complete, if the data was short;
//   in either order; then complete                  else on_long_sent: complete
//
// Short data and `written` are one request where the channel has one (Channel::write_now). Before
// long data `written` is a control message of its own: as the data takes its time, later messages
// may arrive before it, and must find the receive taken. If the message goes by another protocol
// instead, the receiver's on_rtr_missed() closes the buffer.
//
// Which receives ask (VIADUCT_WRITE_PROTOCOL): with `sr` all that can, with `auto` those for more
// than an eager message, unless their RTRs were in vain of late.
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
// Bytes of the largest buffer whose RTR waits for company. The program may compute for long before
// it lets the library poll, and a longer message would have to wait.
constexpr std::size_t kMaxWaiting = 4096;
// Bytes of the longest message that an RTR rides on: together they fit most frames.
constexpr std::size_t kMaxRidden = 1024;

bool accepts(int rtr_tag, int tag) {
  return rtr_tag == MPI_ANY_TAG || rtr_tag == tag;
}

}  // namespace

// ---- receiver ----------------------------------------------------------------------------------

// Older receives that backed off, or found no place in the channel, need their RTR first (the
// first rule). The message of the oldest may be on its way by now, but those of the others need
// not be. An older receive that must not have one rules out the RTR of this one, too: it accepts
// any source, or a still older receive without an RTR could take its messages.
void Transfer::ask(Peer& p, ReceiveRequest& receive) {
  if (!may_ask(p, receive) || backs_off(p)) return;
  MatchQueues& queues = matches_[receive.context];
  for (unsigned made = 0; made < kMaxRtrsAtATime; ++made) {
    ReceiveRequest& oldest = queues.first_without_rtr(receive);
    if (&oldest != &receive &&
        (oldest.peer != p.rank || &queues.first_without_rtr(oldest) != &oldest))
      break;
    if (!may_ask(p, oldest)) break;
    make_due(p, oldest);
    if (&oldest == &receive) break;
  }
  if (p.least_written != 0 || receive.bytes > MPI_Count{kMaxWaiting}) send_due_rtrs(p);
}

// With a backlog the channel is full, and the RTR would be late. limits().early leaves room in the
// channel for receives whose RTS has arrived.
bool Transfer::may_ask(const Peer& p, const ReceiveRequest& receive) const {
  return static_cast<std::uint64_t>(receive.bytes) >= p.least_written &&
         static_cast<std::uint64_t>(receive.bytes) <= kMaxWritten && receive.type->contiguous() &&
         !backlogged(p) && open_rtrs_[p.channel] < p.early;
}

// Counts down the back-off. An RTR costs both ends and gains nothing if the message is on its way.
bool Transfer::backs_off(Peer& p) const {
  if (p.rtr_backoff == 0 || config_.write_protocol == WriteProtocol::sr) return false;
  --p.rtr_backoff;
  return true;
}

// The caller has made sure of the first rule.
void Transfer::make_due(Peer& p, ReceiveRequest& receive) {
  matches_[receive.context].set_rtr_due(receive, true);
  ++open_rtrs_[p.channel];
  if (!std::exchange(p.in_due_list, true)) due_.push_back(&p);
  p.due_rtrs.emplace_back(&receive);
  // After failures this RTR is a test: the next receives back off until its outcome is known.
  if (p.rtrs_missed != 0) p.rtr_backoff = 1u << p.rtrs_missed;
}

bool Transfer::open_rtr(Peer& p, ReceiveRequest& receive, RtrHead& head) {
  register_request(receive);
  const MutableBytes into{receive.contiguous(), static_cast<std::size_t>(receive.bytes)};
  if (!p.through->open_receive(p.rank, into, nullptr, receive.id, receive.remote_key))
    return unregister_request(receive), false;
  receive.rtr_due = false;
  receive.rtr_sent = true;
  receive.written_received = receive.transfer_complete = false;
  head.kind = Kind::ready_to_receive;
  head.context = receive.context;
  head.tag = receive.tag;
  head.seen = p.arrived;
  head.receive = static_cast<std::uint32_t>(receive.id);
  set_length(head.capacity_high, head.capacity_low, static_cast<std::uint64_t>(receive.bytes));
  head.remote_key = receive.remote_key;
  ++counters_[p.channel].rtrs_sent;
  return true;
}

// In the order of posting. If the channel has no room for one, those behind it must not be sent
// either (the first rule).
void Transfer::send_due_rtrs(Peer& p) {
  std::array<std::byte, kRtrsTogether> together;
  std::size_t size = 0, opened = 0;
  const auto send = [&] {
    const Bytes all = Bytes(together).first(size);
    const std::size_t first = std::min(p.rtr_bytes, size);
    if (size != 0) send_control(p, all.first(first), all.subspan(first), nullptr, true);
    size = 0;
  };
  for (; opened < p.due_rtrs.size(); ++opened) {
    RtrHead head{};
    if (!open_rtr(p, *p.due_rtrs[opened], head)) break;
    std::memcpy(together.data() + size, &head, p.rtr_bytes);
    size += p.rtr_bytes;
    if (size + p.rtr_bytes > p.most_rtrs) send();
  }
  send();
  p.due_rtrs.erase(p.due_rtrs.begin(), p.due_rtrs.begin() + static_cast<std::ptrdiff_t>(opened));
  drop_due_rtrs(p);
}

void Transfer::send_due_rtrs() {
  for (Peer* p : due_) {
    p->in_due_list = false;
    send_due_rtrs(*p);
  }
  due_.clear();
}

void Transfer::let_ride(Peer& p, RiddenHead& head, std::size_t body) {
  if (p.due_rtrs.size() != 1 || body > kMaxRidden) {
    if (!p.due_rtrs.empty()) send_due_rtrs(p);
    return;
  }
  RtrHead rtr{};
  if (!open_rtr(p, *p.due_rtrs.front(), rtr)) return drop_due_rtrs(p);
  head.add(bytes_of(rtr).first(p.rtr_bytes));
  p.due_rtrs.clear();
}

void Transfer::drop_due_rtrs(Peer& p) {
  for (const Ref<ReceiveRequest>& receive : p.due_rtrs) {
    if (receive->posted)
      matches_[receive->context].set_rtr_due(*receive, false);
    else
      receive->rtr_due = false;
    --open_rtrs_[p.channel];
  }
  p.due_rtrs.clear();
}

// After on_long_received the channel has closed the buffer. Only a sender that errs writes into a
// receive and then satisfies it by another message.
void Transfer::give_up_rtr(ReceiveRequest& receive) {
  Peer& p = peer(receive.peer);
  if (receive.rtr_due) {
    receive.rtr_due = false;
    --open_rtrs_[p.channel];
    std::erase_if(p.due_rtrs, [&](const auto& due) { return due.get() == &receive; });
    return;
  }
  release_rtr(receive);
  ++counters_[p.channel].rtrs_missed;
  p.rtrs_missed = std::min(p.rtrs_missed + 1, kMaxMissed);
  p.rtr_backoff = 1u << p.rtrs_missed;
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
  if (!receive || !receive->rtr_sent || receive->written_received ||
      !accepts(receive->tag, head.tag))
    return void(malformed(p));
  matches_[receive->context].unpost(*receive);
  set_status(*receive, {Kind::written, {}, receive->context, receive->rank, head.tag},
             length_of(head.length_high, head.length_low));
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

// What is behind the last RTR is a message of its own.
void Transfer::on_rtrs(Peer& p, Bytes message) {
  while (!message.empty() &&
         message[0] == std::byte{static_cast<std::uint8_t>(Kind::ready_to_receive)}) {
    if (message.size() < p.rtr_bytes) return void(malformed(p));
    RtrHead head{};
    std::memcpy(&head, message.data(), p.rtr_bytes);
    message = message.subspan(p.rtr_bytes);
    on_rtr(p, head);
  }
  if (!message.empty()) on_control(p.rank, message);
}

// What is left in the log has crossed the RTR (the second rule).
void Transfer::on_rtr(Peer& p, const RtrHead& head) {
  forget_seen(p, head.seen);
  for (Peer::Sent& m : p.log)
    if (!m.accounted && m.context == head.context && accepts(head.tag, m.tag)) {
      m.accounted = true;  // this message satisfies the receive, so the RTR is dropped
      return;
    }
  p.pending_rtrs.push_back({head.context, head.tag, head.receive,
                            length_of(head.capacity_high, head.capacity_low), head.remote_key});
}

std::deque<Transfer::Rtr>::iterator Transfer::find_rtr(Peer& p, std::uint32_t context, int tag) {
  return std::ranges::find_if(p.pending_rtrs, [&](const Rtr& rtr) {
    return rtr.context == context && accepts(rtr.tag, tag);
  });
}

WrittenHead Transfer::written_head(const Rtr& rtr, int tag, std::uint64_t bytes) {
  WrittenHead head{Kind::written, {}, tag, static_cast<std::uint32_t>(rtr.receive), 0};
  set_length(head.length_high, head.length_low, bytes);
  return head;
}

// Messages for which another protocol is better, and types with gaps, which need parts, use up the
// RTR in count_sent() (the third rule).
bool Transfer::write_to_rtr(Peer& p, SendRequest& send) {
  const auto bytes = static_cast<std::uint64_t>(send.bytes);
  if (p.pending_rtrs.empty() || bytes < p.least_written || bytes > kMaxWritten ||
      !send.type->contiguous())
    return false;
  const auto found = find_rtr(p, send.context, send.tag);
  if (found == p.pending_rtrs.end()) return false;
  const Rtr rtr = *found;
  p.pending_rtrs.erase(found);
  p.asked_last = true;
  const WrittenHead head = written_head(rtr, send.tag, bytes);
  const Bytes data{send.contiguous(), std::min(bytes, rtr.capacity)};
  counters_[p.channel].add(Protocol::write, send.bytes);
  if (p.writes_now && p.outgoing.empty() &&
      p.through->write_now(p.rank, data, rtr.remote_key, bytes_of(head))) {
    finish(send);
    return true;
  }
  register_request(send);
  send.total = send.part = static_cast<MPI_Count>(data.size());
  send_control(p, bytes_of(head));
  start_long(p, send, data, rtr.remote_key);
  return true;
}

// With `auto` the receive may not ask at all, as it backs off. So nobody waits for its RTR again
// until one comes in time; nor where a write costs a long transfer and a message, as a rendezvous
// does. A short message is there before its receive could ask.
bool Transfer::may_be_asked(const Envelope& to, std::size_t bytes) {
  if (bytes <= kMaxWaiting) return false;
  Peer& p = peer(to.comm->peer(to.rank));
  const bool waits = p.asked_last && p.writes_now;
  if (config_.write_protocol != WriteProtocol::sr && !waits) return false;
  return p.write_protocol && !p.lost && bytes >= p.least_written &&
         find_rtr(p, to.context, to.tag) == p.pending_rtrs.end();
}

// The message goes by another protocol. It uses up the RTR that it satisfies (the third rule). The
// log keeps it for RTRs that are on their way and do not know of it (the second rule).
void Transfer::count_sent(Peer& p, std::uint32_t context, int tag, MPI_Count bytes) {
  if (static_cast<std::uint64_t>(bytes) >= p.least_written) p.asked_last = false;
  bool accounted = false;
  if (!p.pending_rtrs.empty()) {
    const auto rtr = find_rtr(p, context, tag);
    accounted = rtr != p.pending_rtrs.end();
    if (accounted) p.pending_rtrs.erase(rtr);
  }
  p.log.push_back({p.sent + 1, context, tag, accounted});
}

// The difference is signed, as the counts are modulo 2^32.
void Transfer::forget_seen(Peer& p, std::uint32_t seen) {
  while (!p.log.empty() && static_cast<std::int32_t>(p.log.front().serial - seen) <= 0)
    p.log.pop_front();
}

}  // namespace viaduct::mpi
