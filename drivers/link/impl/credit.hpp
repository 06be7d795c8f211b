// Link: credit. The receiver grants each lane of each peer a window of frames: a base window for
// good, and more, as a lease, while the peer has much to send (credit grant). A sender without
// credit probes for it. docs/link.md has the rules.
#pragma once

#include <algorithm>

#include "drivers/link/link.hpp"

namespace viaduct::link {

template <PacketDevice D>
inline void Link<D>::consumed(Peer* p, Lane lane, Time now) {
  CreditPool& pool = credit_[static_cast<std::size_t>(lane)];
  Receive& flow = p->receive[static_cast<std::size_t>(lane)];
  const std::uint32_t share = pool.contended_until > now ? pool.share(pool.borrowers) : kMaxWindow;
  const std::uint32_t shrunk = flow.consume(share);
  if (shrunk == 0) return;
  pool.lent -= shrunk;
  if (!flow.borrows()) --pool.borrowers;
}

// The peer has more to send than it may. If nothing is free now it stands in line.
template <PacketDevice D>
void Link<D>::on_credit_wanted(Peer* p, Lane lane, Time now) {
  Receive& flow = p->receive[static_cast<std::size_t>(lane)];
  if (!grant_credit(p, lane, now)) {
    flow.wants = true;
    credit_waiters_.add(p);
  }
  flow.ack_at_once = true;
  ack_later(p, flow, now);
}

// Doubles the peer's window, but leaves as much as it has then: whoever comes next finds credit,
// too, and need not wait until a lease has run out. False: there is none, and it has less than a
// fair share. A window that is not drained, or as large as any may be, is left as it is.
template <PacketDevice D>
bool Link<D>::grant_credit(Peer* p, Lane lane, Time now) {
  CreditPool& pool = credit_[static_cast<std::size_t>(lane)];
  Receive& flow = p->receive[static_cast<std::size_t>(lane)];
  if (flow.window() >= config_.max_window || (flow.stalled && flow.window() != 0)) return true;
  if (pool.spare(flow.window()) < std::max(flow.window(), 1u) && pool.borrowers > flow.borrows())
    reclaim_credit(lane, now);
  const std::uint32_t window = flow.window(), others = pool.borrowers - flow.borrows();
  const std::uint32_t wanted = std::min(std::max(window, 1u), config_.max_window - window);
  const std::uint32_t by = std::min(wanted, pool.spare(window));
  const bool fair = window + by >= pool.share(others + 1);
  if (by < wanted && !fair) pool.contended_until = now + kContention;
  if (by == 0) return fair;
  pool.borrowers = others + 1;
  pool.lent += by;
  flow.grow(by, now);
  return true;
}

// One peer in line a poll, so that a poll stays short.
template <PacketDevice D>
void Link<D>::serve_credit_waiters(Time now) {
  Peer* p = credit_waiters_.front();
  credit_waiters_.remove(p);
  for (Lane lane : {Lane::high, Lane::low, Lane::bulk}) {
    Receive& flow = p->receive[static_cast<std::size_t>(lane)];
    if (!flow.wants) continue;
    flow.wants = !grant_credit(p, lane, now);
    if (flow.wants) {
      credit_waiters_.add(p);
    } else {
      flow.ack_at_once = true;
      ack_later(p, flow, now);
    }
  }
}

// Looks at a few peers, round robin, whose lease may have run out.
template <PacketDevice D>
void Link<D>::reclaim_credit(Lane lane, Time now) {
  CreditPool& pool = credit_[static_cast<std::size_t>(lane)];
  for (std::size_t n = std::min<std::size_t>(peers_.size(), 16); n != 0; --n) {
    clock_hand_ = clock_hand_ + 1 < peers_.size() ? clock_hand_ + 1 : 0;
    Peer* p = peers_[clock_hand_].get();
    if (!p) continue;
    const std::uint32_t got = p->receive[static_cast<std::size_t>(lane)].reclaim(now);
    if (got != 0) --pool.borrowers;
    pool.lent -= got;
  }
}

// A lane that waits for credit with nothing in flight hears of it only if it asks, and goes on
// asking: the timer repeats the probe until credit comes.
template <PacketDevice D>
void Link<D>::probe_for_credit(Peer* p, Send& flow, Time now) {
  if (!flow.must_probe() || flow.probing()) return;
  flow.start_probing(now);
  probe(p, now);
  timers_.set_no_later(p, now + timeout(p, flow));
}

}  // namespace viaduct::link
