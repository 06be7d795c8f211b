// MBCF's write protocol (MPI/MBCF, EuroPVM/MPI 1999, section 3.2): a receive from a known source
// that is posted before its message tells the sender where its buffer is (ready to receive, RTR: a
// receiver-initiated rendezvous); the sender writes straight into it.
//
// The sender must not use a request that another message will have satisfied, and must use requests
// in the order in which MPI matches. Both ends know enough to be exact:
//  * The receiver asks only if every older receive that could take the same messages has asked too.
//  * A request says how many messages of the sender had arrived when it was made. What the sender
//    sent later has crossed the request: the oldest such message that the receive accepts, and that
//    is not accounted for by an older request, is the one that satisfies it.
//  * Whatever the sender sends to a receive that has asked, by whichever protocol, uses up the
//  request.

#include <algorithm>

#include "libmpi_lite/transfer/engine.hpp"

namespace viaduct::mpi {
namespace {

// Where messages are always sent before they can be asked for, 2^6 receives are posted without
// asking before it is tried again...
constexpr unsigned kMaxMissed = 6;
// ... with so many of those that wait at a time. Each looks through all receives before it.
constexpr unsigned kMaxAsked = 8;

bool accepts(int wanted_tag, int tag) {
  return wanted_tag == MPI_ANY_TAG || wanted_tag == tag;
}

}  // namespace

// ---- receiver ----------------------------------------------------------------------------------

// Older ones that were silent, or found no place, have to ask first. The oldest may well be too
// late again, and those behind it not.
void Transfer::want(Peer& p, ReceiveRequest& receive) {
  if (!may_want(p, receive) || stays_silent(p)) return;
  MatchQueues& queues = matches_[receive.context];
  for (unsigned asked = 0; asked < kMaxAsked; ++asked) {
    ReceiveRequest& oldest = queues.first_not_wanted(receive);
    if (&oldest != &receive &&
        (oldest.peer != p.rank || &queues.first_not_wanted(oldest) != &oldest))
      return;
    if (!ask(p, oldest) || &oldest == &receive) return;
  }
}

bool Transfer::may_want(const Peer& p, const ReceiveRequest& receive) const {
  return static_cast<std::uint64_t>(receive.bytes) > p.eager && receive.type->contiguous() &&
         !backlogged(p) && wanted_[p.channel] < p.through->limits().early;
}

// All before it have asked. False: it may not, or there is no room for it.
bool Transfer::ask(Peer& p, ReceiveRequest& receive) {
  if (!may_want(p, receive)) return false;
  enter(receive);
  RtrHead head{};
  const MutableBytes into{receive.contiguous(), static_cast<std::size_t>(receive.bytes)};
  if (!p.through->open_receive(p.rank, into, nullptr, receive.id, receive.remote_key))
    return leave(receive), false;
  receive.wanted = true;
  ++wanted_[p.channel];
  receive.written = receive.arrived = false;
  head.kind = Kind::ready_to_receive;
  head.context = receive.context;
  head.tag = receive.tag;
  head.seen = p.arrived;
  head.receive = receive.id;
  head.capacity = static_cast<std::uint64_t>(receive.bytes);
  head.remote_key = receive.remote_key;
  ++counters_[p.channel].wants;
  if (p.missed != 0) p.silent = 1u << p.missed;  // until it is known how this one fares
  say(p, bytes_of(head));
  return true;
}

// Asking costs both ends and gains nothing if the message is on its way already.
bool Transfer::stays_silent(Peer& p) {
  if (p.silent == 0) return false;
  --p.silent;
  return true;
}

// The receive has met its message by another way.
void Transfer::unwant(ReceiveRequest& receive) {
  if (!receive.wanted) return;
  end_want(receive);
  Peer& p = peer(receive.peer);
  ++counters_[p.channel].wants_missed;
  p.missed = std::min(p.missed + 1, kMaxMissed);
  p.silent = 1u << p.missed;
  // A sender that has written although it sends the message another way has closed it itself.
  if (!receive.arrived) p.through->close_receive(p.rank, receive.remote_key);
}

void Transfer::end_want(ReceiveRequest& receive) {
  if (!receive.wanted) return;
  receive.wanted = false;
  --wanted_[peer(receive.peer).channel];
}

void Transfer::on_written(Peer& p, const WrittenHead& head) {
  const Ref<ReceiveRequest> receive = find<ReceiveRequest>(head.receive, p);
  if (!receive || !receive->wanted || receive->written) return void(malformed(p));
  matches_[receive->context].unpost(*receive);
  set_status(*receive, head.head, head.length);
  receive->written = true;
  if (receive->arrived) written_part(*receive);
}

void Transfer::written_part(ReceiveRequest& receive) {
  receive.arrived = true;
  if (!receive.written) return;
  Peer& p = peer(receive.peer);
  p.missed = p.silent = 0;
  end_want(receive);
  finish(receive);
}

// ---- sender ------------------------------------------------------------------------------------

void Transfer::on_want(Peer& p, const RtrHead& head) {
  forget_seen(p, head.seen);
  for (Peer::Sent& m : p.log)
    if (!m.accounted && m.context == head.context && accepts(head.tag, m.tag)) {
      m.accounted = true;  // it has crossed that message, which will satisfy it
      return;
    }
  p.wants.push_back({head.context, head.tag, head.receive, head.capacity, head.remote_key});
}

bool Transfer::take_wanted(Peer& p, std::uint32_t context, int tag, Want* taken) {
  const auto w = std::find_if(p.wants.begin(), p.wants.end(), [&](const Want& want) {
    return want.context == context && accepts(want.tag, tag);
  });
  if (w == p.wants.end()) return false;
  if (taken) *taken = *w;
  p.wants.erase(w);
  return true;
}

// Sends the message by the write protocol if its receive has asked. Short messages do better in one
// control message.
bool Transfer::write_wanted(Peer& p, SendRequest& send) {
  Want want;
  if (p.wants.empty() || send.bytes <= static_cast<MPI_Count>(p.eager) ||
      !send.type->contiguous() || !take_wanted(p, send.context, send.tag, &want))
    return false;
  enter(send);
  WrittenHead head{};
  head.head = {Kind::written, {}, send.context, send.comm->rank(), send.tag};
  head.receive = want.receive;
  head.length = static_cast<std::uint64_t>(send.bytes);
  send.total = send.part = static_cast<MPI_Count>(std::min(head.length, want.capacity));
  counters_[p.channel].add(Protocol::write, send.bytes);
  say(p, bytes_of(head));
  start_long(p, send, {send.contiguous(), static_cast<std::size_t>(send.total)}, want.remote_key);
  return true;
}

// The message goes by another protocol.
void Transfer::count_sent(Peer& p, std::uint32_t context, int tag) {
  const bool accounted = !p.wants.empty() && take_wanted(p, context, tag);
  p.log.push_back({p.sent + 1, context, tag, accounted});
}

void Transfer::forget_seen(Peer& p, std::uint32_t seen) {
  while (!p.log.empty() && static_cast<std::int32_t>(p.log.front().serial - seen) <= 0)
    p.log.pop_front();
}

}  // namespace viaduct::mpi
