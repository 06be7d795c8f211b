// Link: reading acknowledgements, and fast retransmission of the frames that acknowledgements show
// to be lost. Which frames are lost TxLane decides (tx_lane.hpp). Losses that no acknowledgement
// shows are found by the retransmission timer in event_loop.hpp.
#pragma once

#include <cstring>
#include <optional>
#include <span>

#include "drivers/link/link.hpp"

namespace viaduct::link {

// Applies an acknowledgement from a data or ack frame to one sending lane. `heard`: the time of
// the poll that received the frame, which is an earlier one than now_ if finish_delivered() applies
// the acknowledgement. Retransmissions count from then, too: credit must not look as if it had been
// heard of later than it was (TxLane::expire_credit).
template <PacketDevice D>
void Link<D>::acknowledge(Flow& flow, const Acknowledgement& ack, Time heard) {
  Peer* const p = &flow.peer;
  Send& s = flow.send;
  if (!s.plausible(ack)) return count(p, Counter::drop_ack);
  const bool backed_off = s.timeouts() != 0;
  const auto result = s.acknowledge(ack, heard, p->rtt);
  // send_pending() lets the lane send with the new credit, or, with nothing in flight any more,
  // probe for credit.
  if (s.backlog() != 0 && (result.more_credit || s.in_flight().empty())) pending_.add(p);
  if (result.freed == 0) return;
  frames_sending_ -= result.freed;
  if (result.rtt != Duration{0}) p->rtt.sample(result.rtt);
  // The timer was set with the backed-off timeout, and may be far later than the next deadline now.
  if (backed_off) timers_.set_no_later(p, next_deadline(p));
  if (s.has_gap() && !config_.fixed_timeout) resend_lost(flow, heard);
}

// The payload of an ack frame. A malformed block ends the reading; blocks before that block count.
template <PacketDevice D>
void Link<D>::receive_ack(Peer* p, std::span<const std::byte> payload) {
  while (!payload.empty()) {
    AckBlock block;
    if (payload.size() < sizeof(block)) return count(p, Counter::drop_length);
    std::memcpy(&block, payload.data(), sizeof(block));
    const std::size_t bytes = block.words * sizeof(std::uint64_t);
    const std::size_t index = block.lane_flags & kLaneMask;
    if (index >= kLanes || (block.lane_flags & ~(kLaneMask | kFlagWant)) != 0 ||
        block.words > kBitmapWords || payload.size() < sizeof(block) + bytes)
      return count(p, Counter::drop_ack);
    std::uint64_t bitmap[kBitmapWords];  // a copy, because the payload need not be aligned
    std::memcpy(bitmap, payload.data() + sizeof(block), bytes);
    Flow& flow = p->flows[index];
    acknowledge(flow, {block.ack, block.ack + block.credit, {bitmap, block.words}}, now_);
    if ((block.lane_flags & kFlagWant) != 0) on_credit_wanted(flow);
    payload = payload.subspan(sizeof(block) + bytes);
  }
}

// Sends the same frame again: no copy, and the same header (see build_header).
template <PacketDevice D>
void Link<D>::resend(Flow& flow, Frame* f, Time at) {
  if (!enqueue_tx(f))
    return;  // the device is full: the timer or the next acknowledgement tries again
  flow.send.on_retransmitted(f, at);
  count(&flow.peer, Counter::retransmits);
}

// Fast retransmission: sends again every frame that the latest acknowledgement shows to be lost.
// Frames numbered above the highest acknowledged cannot be judged yet, so the loop ends there.
template <PacketDevice D>
void Link<D>::resend_lost(Flow& flow, Time at) {
  const Send& s = flow.send;
  for (Frame* f = s.in_flight().front(); f && s.behind_acked(f); f = Send::List::next(f)) {
    if (!s.lost(f, flow.peer.rtt.reordering())) continue;
    count(&flow.peer, Counter::fast_retransmits);
    resend(flow, f, at);
  }
}

}  // namespace viaduct::link
