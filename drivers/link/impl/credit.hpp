// Link: credit. The receiver grants each lane of each peer a window of frames: a base window for
// good, and more, as a lease, while the peer has much to send (credit grant). All windows of a lane
// share one CreditPool, so no number of senders overruns the receive ring. A sender without credit
// probes for credit. docs/link.md has the rules; the states are drawn in rx_lane.hpp (receiver) and
// tx_lane.hpp (sender).
#pragma once

#include <algorithm>

#include "drivers/link/link.hpp"

namespace viaduct::link {

// The handlers have taken a whole frame: gives the peer new credit for that frame, except while
// windows above the fair share have to shrink because other peers wait for credit.
template <PacketDevice D>
inline void Link<D>::on_consumed(Flow& flow) {
  CreditPool& pool = credit_[index_of(flow.lane)];
  const std::uint32_t share =
      pool.contended_until > now_ ? pool.fair_share(pool.lease_holders) : kMaxWindow;
  const std::uint32_t shrunk = flow.receive.consume(share);
  if (shrunk == 0) return;
  pool.granted -= shrunk;
  if (!flow.receive.has_lease()) --pool.lease_holders;
}

// The peer has more to send than its credit allows. If no credit is free, the peer becomes a credit
// waiter. An acknowledgement at once tells the peer of its credit either way.
template <PacketDevice D>
void Link<D>::on_credit_wanted(Flow& flow) {
  if (!grant_credit(flow)) {
    flow.receive.wants_credit = true;
    credit_waiters_.add(&flow.peer);
  }
  flow.receive.ack_at_once = true;
  ack_later(flow);
}

// Doubles the peer's window if the pool keeps as much free credit as the window has then, otherwise
// grows the window by what that rule allows: the next peer finds credit, too, and need not wait
// until a lease has run out. A window that the handlers do not drain, or of the largest size, is
// left as it is. False: nothing was granted, and the peer has less than its fair share.
template <PacketDevice D>
bool Link<D>::grant_credit(Flow& flow) {
  CreditPool& pool = credit_[index_of(flow.lane)];
  Receive& r = flow.receive;
  if (r.window() >= config_.max_window || (r.stalled && r.window() != 0)) return true;
  // Too little is free, and other peers hold leases: perhaps some have run out.
  if (pool.max_growth(r.window()) < std::max(r.window(), 1u) && pool.lease_holders > r.has_lease())
    reclaim_credit(flow.lane);
  // Read after the reclaim, which may have changed this very window.
  const std::uint32_t window = r.window(), others = pool.lease_holders - r.has_lease();
  const std::uint32_t wanted = std::min(std::max(window, 1u), config_.max_window - window);
  const std::uint32_t by = std::min(wanted, pool.max_growth(window));
  const bool fair = window + by >= pool.fair_share(others + 1);
  if (by < wanted && !fair) pool.contended_until = now_ + kContention;
  if (by == 0) return fair;
  pool.lease_holders = others + 1;
  pool.granted += by;
  r.grow(by, now_);
  return true;
}

// Serves one credit waiter a poll, so that a poll stays short. A waiter that gets nothing goes to
// the end of the line.
template <PacketDevice D>
void Link<D>::serve_credit_waiters() {
  Peer* p = credit_waiters_.front();
  credit_waiters_.remove(p);
  for (Flow& flow : p->flows) {
    if (!flow.receive.wants_credit) continue;
    flow.receive.wants_credit = !grant_credit(flow);
    if (flow.receive.wants_credit) {
      credit_waiters_.add(p);
    } else {
      flow.receive.ack_at_once = true;
      ack_later(flow);
    }
  }
}

// Takes back leases that have run out. Looks at 16 slots of the table at most, going on from the
// last call's (clock_hand_), so that the cost of a call does not grow with the number of peers.
template <PacketDevice D>
void Link<D>::reclaim_credit(Lane lane) {
  CreditPool& pool = credit_[index_of(lane)];
  for (std::size_t n = std::min<std::size_t>(peers_.size(), 16); n != 0; --n) {
    clock_hand_ = clock_hand_ + 1 < peers_.size() ? clock_hand_ + 1 : 0;
    Peer* p = peers_[clock_hand_].get();
    if (!p) continue;
    const std::uint32_t got = p->flow(lane).receive.reclaim(now_);
    if (got != 0) --pool.lease_holders;
    pool.granted -= got;
  }
}

// A lane that waits for credit with nothing in flight gets no acknowledgement that would tell of
// credit. The lane therefore sends a window probe, and its timer repeats the probe until credit
// comes: a lost credit update cannot deadlock. If the device is full now, the timer sends the first
// probe.
template <PacketDevice D>
void Link<D>::probe_for_credit(Flow& flow) {
  if (!flow.send.must_probe() || flow.send.probing()) return;
  flow.send.start_probing(now_);
  probe(&flow.peer);
  timers_.set_no_later(&flow.peer, now_ + timeout(flow));
}

}  // namespace viaduct::link
