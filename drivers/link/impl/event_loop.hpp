// Link: the event loop. A poll receives, acknowledges, runs the timers that are due and sends
// frames that can leave. Each peer has one timer: the earliest of its retransmission timers, its
// window probes and its keepalive, or the repetition of its handshake. docs/link.md has the
// reasons.
#pragma once

#include "drivers/link/link.hpp"

namespace viaduct::link {

// The order matters. First the upkeep of frames that the last poll delivered. Then receiving, so
// that handlers see messages as early as possible. Then what receiving has made due. Sending is
// last, so that waiting frames, acknowledgements and retransmissions leave in one burst.
template <PacketDevice D>
void Link<D>::poll(Time now) {
  now_ = now;
  if (delivered_count_ != 0) finish_delivered();
  receive();
  if (stalled_.front()) offer_stalled();
  if (credit_waiters_.front()) serve_credit_waiters();
  if (acking_.front()) send_due_acks();
  // A timer must not see frames in flight whose acknowledgement waits in delivered_: apply it
  // first (finish_delivered). The upkeep delays the answer, so timers that are barely due wait for
  // the next poll, which does the upkeep anyway; but for kTimerSlack at most.
  if (timers_.due(delivered_count_ == 0 ? now_ : now_ - kTimerSlack)) {
    finish_delivered();
    run_timers();
  }
  if (pending_.front()) send_pending();
  if (tx_burst_size_ != 0) flush();
  check_invariants();
}

template <PacketDevice D>
Time Link<D>::next_work() const {
  if (delivered_count_ != 0 || tx_burst_size_ != 0 || stalled_.front() || credit_waiters_.front() ||
      pending_.front())
    return Time::min();
  const Peer* const acking = acking_.front();
  return std::min(timers_.next(), acking ? acking->ack_at : Time::max());
}

// The lane's retransmission timeout: from the measured round trip, doubled for each timeout in a
// row (exponential back-off).
template <PacketDevice D>
Duration Link<D>::timeout(const Flow& flow) const {
  if (config_.fixed_timeout) return *config_.fixed_timeout;
  // The ceiling applies without back-off, too: a measured round trip may contain a time during
  // which one of the processes had no CPU. 20 doublings keep the product from overflowing.
  const std::uint32_t doublings = std::min(flow.send.timeouts(), 20u);
  return std::min(flow.peer.rtt.timeout(config_.min_timeout) * (std::int64_t{1} << doublings),
                  config_.max_timeout);
}

// When the next keepalive is due: after a quarter of dead_after without a frame, then after each
// 32nd part. That makes at least kMaxUnanswered keepalives before the peer counts as dead. Fewer
// would prove nothing on a network that loses a third of the frames.
template <PacketDevice D>
Time Link<D>::next_probe(const Peer* p) const {
  return std::max(p->last_heard, p->probe_sent_at) +
         config_.dead_after / (p->unanswered_probes == 0 ? 4 : 32);
}

// The earliest time at which peer_timer() has work. In a lane with frames in flight only the oldest
// frame has a timer.
template <PacketDevice D>
Time Link<D>::next_deadline(const Peer* p) const {
  if (!p->up()) return p->handshake_at;
  Time deadline = next_probe(p);
  for (const Flow& flow : p->flows) {
    if (Frame* oldest = flow.send.in_flight().front())
      deadline = std::min(deadline, D::meta(oldest).tx.sent_at + timeout(flow));
    else if (flow.send.blocked())
      deadline = std::min(deadline, flow.send.last_probe_or_timeout() + timeout(flow));
  }
  return deadline;
}

// Sets each timer that has run to a time after now_, even if its work could not be done (full
// device): otherwise the loop would not end.
template <PacketDevice D>
void Link<D>::run_timers() {
  while (timers_.due(now_)) {
    Peer* p = timers_.pop();
    if (!peer_timer(p)) continue;
    timers_.set_no_later(p, std::max(next_deadline(p), now_ + Duration{1}));
  }
}

// False: the peer has ended and `p` is invalid.
template <PacketDevice D>
bool Link<D>::peer_timer(Peer* p) {
  const PeerId id = p->id;
  if (!p->up()) {
    handshake_timer(p);
    return find(id) != nullptr;
  }
  // Both conditions: if our own process has not polled for long, much time has passed but few
  // keepalives have gone, and the peer gets the chance to answer.
  if (now_ - p->last_heard >= config_.dead_after && p->unanswered_probes >= kMaxUnanswered) {
    end_connection(p, DownReason::silent);
    return false;
  }
  for (Flow& flow : p->flows) lane_timer(flow);
  if (now_ >= next_probe(p)) {
    if (probe(p))
      count(p, Counter::keepalives);
    else
      on_probe_sent(p);  // no frame, or a full device: counts as unanswered all the same
  }
  return true;
}

// The retransmission timer of a lane, which is the tail-loss probe, too: sends the oldest frame in
// flight again. The acknowledgement of that frame tells which others are lost, and resend_lost()
// sends those at once. For a lane without credit and with nothing in flight: repeats the window
// probe. The fixed timeout, for comparison only, sends every overdue frame again.
template <PacketDevice D>
void Link<D>::lane_timer(Flow& flow) {
  Peer* const p = &flow.peer;
  Send& s = flow.send;
  const Duration limit = timeout(flow);
  if (Frame* oldest = s.in_flight().front()) {
    if (D::meta(oldest).tx.sent_at + limit > now_) return;
    count(p, Counter::probes);
    s.on_timeout(D::meta(oldest).tx.sent_at, now_);
    if (!config_.fixed_timeout) return resend(flow, oldest, now_);
    for (Frame* f = oldest; f; f = Send::List::next(f))
      if (D::meta(f).tx.sent_at + limit <= now_) resend(flow, f, now_);
  } else if (s.blocked() && s.last_probe_or_timeout() + limit <= now_ && probe(p)) {
    s.on_timeout(s.last_probe_or_timeout(), now_);
  }
}

// Keepalive and window probe: an ack frame that asks for an ack frame, and says which lanes wait
// for credit. False: not sent, for want of a frame or of a place in the burst.
template <PacketDevice D>
bool Link<D>::probe(Peer* p) {
  if (!send_ack(p, kFlagAnswer)) return false;
  on_probe_sent(p);
  return true;
}

template <PacketDevice D>
void Link<D>::on_probe_sent(Peer* p) {
  p->probe_sent_at = now_;
  if (p->unanswered_probes < UINT32_MAX) ++p->unanswered_probes;
}

}  // namespace viaduct::link
