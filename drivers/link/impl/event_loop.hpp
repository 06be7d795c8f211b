// Link: the event loop. A poll receives, acknowledges, runs the timers that are due and sends what
// can be sent. One timer for each peer: the earliest of its retransmission timers, its window
// probes and its keepalive. docs/link.md has the reasons.
#pragma once

#include "drivers/link/link.hpp"

namespace viaduct::link {

template <PacketDevice D>
void Link<D>::poll(Time now) {
  if (delivered_count_ != 0) settle_delivered();
  receive(now);
  if (stalled_.front()) offer_stalled(now);
  if (credit_waiters_.front()) serve_credit_waiters(now);
  if (acking_.front()) send_due_acks(now);
  // No timer may see frames in flight whose acknowledgement lies here unsettled.
  if (timers_.due(delivered_count_ == 0 ? now : now - kTimerSlack)) {
    settle_delivered();
    run_timers(now);
  }
  if (pending_.front()) send_pending(now);
  if (tx_burst_size_ != 0) flush();
  check_invariants(now);
}

template <PacketDevice D>
Time Link<D>::next_work() const {
  if (delivered_count_ != 0 || tx_burst_size_ != 0 || stalled_.front() || credit_waiters_.front() ||
      pending_.front())
    return Time::min();
  const Peer* const acking = acking_.front();
  return std::min(timers_.next(), acking ? acking->ack_at : Time::max());
}

template <PacketDevice D>
Duration Link<D>::timeout(const Peer* p, const Send& flow) const {
  if (config_.fixed_timeout) return *config_.fixed_timeout;
  // A round trip during which one of both had no CPU may have been measured: the ceiling is for
  // all.
  const std::uint32_t doublings = std::min(flow.timeouts(), 20u);
  return std::min(p->rtt.timeout(config_.min_timeout) * (std::int64_t{1} << doublings),
                  config_.max_timeout);
}

// Silence is first asked about after a quarter of the time, then often: on a network that loses a
// third of the frames a few questions prove nothing.
template <PacketDevice D>
Time Link<D>::next_probe(const Peer* p) const {
  return std::max(p->last_heard, p->probe_sent_at) +
         config_.dead_after / (p->unanswered_probes == 0 ? 4 : 32);
}

template <PacketDevice D>
Time Link<D>::next_deadline(const Peer* p) const {
  if (!p->up()) return p->handshake_at;
  Time deadline = next_probe(p);
  for (const Send& flow : p->send) {
    if (!flow.in_flight().empty())
      deadline =
          std::min(deadline, D::meta(flow.in_flight().front()).tx.sent_at + timeout(p, flow));
    else if (flow.blocked())
      deadline = std::min(deadline, flow.probed_at() + timeout(p, flow));
  }
  return deadline;
}

template <PacketDevice D>
void Link<D>::run_timers(Time now) {
  while (timers_.due(now)) {
    Peer* p = timers_.pop();
    if (!peer_timer(p, now)) continue;
    timers_.set_no_later(p, std::max(next_deadline(p), now + Duration{1}));
  }
}

// False: the peer is no more.
template <PacketDevice D>
bool Link<D>::peer_timer(Peer* p, Time now) {
  const PeerId id = p->id;
  if (!p->up()) {
    handshake_timer(p, now);
    return find(id) != nullptr;
  }
  // Silence counts only while we have been asking: after a pause of our own the peer gets its say.
  if (now - p->last_heard >= config_.dead_after && p->unanswered_probes >= kMaxUnanswered) {
    forget(p, DownReason::silent);
    return false;
  }
  for (Lane lane : {Lane::high, Lane::low, Lane::bulk}) lane_timer(p, lane, now);
  if (now >= next_probe(p)) {
    if (probe(p, now))
      count(p, Counter::keepalives);
    else
      on_probe_sent(p, now);  // who cannot be sent to for so long cannot be reached, either
  }
  return true;
}

// Tail-loss probe and timeout in one: send the oldest frame again. Its acknowledgement tells which
// others are missing, and frees them to be sent at once.
template <PacketDevice D>
void Link<D>::lane_timer(Peer* p, Lane lane, Time now) {
  Send& flow = p->send[static_cast<std::size_t>(lane)];
  const Duration limit = timeout(p, flow);
  if (Frame* oldest = flow.in_flight().front()) {
    if (D::meta(oldest).tx.sent_at + limit > now) return;
    count(p, Counter::probes);
    flow.timed_out(D::meta(oldest).tx.sent_at, now);
    if (!config_.fixed_timeout) return resend(p, lane, oldest, now);
    for (Frame* f = oldest; f; f = Send::List::next(f))
      if (D::meta(f).tx.sent_at + limit <= now) resend(p, lane, f, now);
  } else if (flow.blocked() && flow.probed_at() + limit <= now && probe(p, now)) {
    flow.timed_out(flow.probed_at(), now);
  }
}

// Asks for an answer, whatever it is; says which lanes wait for credit. False: not now.
template <PacketDevice D>
bool Link<D>::probe(Peer* p, Time now) {
  if (!send_ack(p, kFlagAnswer, now)) return false;
  on_probe_sent(p, now);
  return true;
}

template <PacketDevice D>
void Link<D>::on_probe_sent(Peer* p, Time now) {
  p->probe_sent_at = now;
  if (p->unanswered_probes < UINT32_MAX) ++p->unanswered_probes;
}

}  // namespace viaduct::link
