// Link: what holds after every poll: nothing waits without an event that will end the wait.
// Asserted in debug builds only; with NDEBUG the check compiles to nothing. Costs time in
// proportion to the number of peers.
#pragma once

#include <algorithm>
#include <cassert>

#include "drivers/link/link.hpp"

namespace viaduct::link {

template <PacketDevice D>
void Link<D>::check_invariants() const {
#ifndef NDEBUG
  for (const auto& p : peers_) {
    if (!p) continue;
    if (p->state == PeerState::request_sent || p->nearly_up())
      assert(p->timer_position != base::kNotQueued && "a handshake is repeated or given up");
    if (!p->up()) continue;
    for (const Flow& flow : p->flows) {
      const Send& send = flow.send;
      const Receive& receive = flow.receive;
      if (send.ready()) assert(p->pending_hook.linked && "frames that can go stand in line to go");
      if (send.must_probe()) {
        assert(send.probing() && "who waits for credit with nothing in flight asks for it");
        assert(timer_set(*p, send.last_active()) && "and asks again when no answer comes");
      }
      if (!send.in_flight().empty())
        assert(timer_set(*p, send.last_active()) && "a lost frame is missed in time");
      if (receive.stalled)
        assert(p->stalled_hook.linked && "what a sink was busy for is offered again");
      if (receive.wants_credit)
        assert(p->credit_waiter_hook.linked && "who could not be lent credit stands in line");
    }
  }
#endif
}

// Whether the peer's timer runs out within the longest timeout from when its lane was last
// `active`.
template <PacketDevice D>
bool Link<D>::timer_set(const Peer& p, Time active) const {
  const Duration longest = config_.fixed_timeout.value_or(config_.max_timeout);
  // A timer whose work failed (full device) is set to just after now_, for the next poll.
  const Time latest = std::max(active + longest, now_ + Duration{1});
  return p.timer_position != base::kNotQueued && p.timer_at <= latest;
}

}  // namespace viaduct::link
