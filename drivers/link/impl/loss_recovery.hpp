// Link: reading acknowledgements, and retransmission of the frames that they show to be lost. The
// retransmission timer is in event_loop.hpp.
#pragma once

#include <cstring>
#include <optional>
#include <span>

#include "drivers/link/link.hpp"

namespace viaduct::link {

template <PacketDevice D>
void Link<D>::acknowledge(Peer* p, Lane lane, const Acknowledgement& ack, Time now) {
  Send& flow = p->send[static_cast<std::size_t>(lane)];
  if (!flow.plausible(ack)) return count(p, Counter::drop_ack);
  const bool backed_off = flow.timeouts() != 0;
  const auto result = flow.acknowledge(ack, now, p->rtt);
  // It can send, or has to ask whether it may.
  if (flow.backlog() != 0 && (result.more_credit || flow.in_flight().empty())) pending_.add(p);
  if (result.freed == 0) return;
  frames_sending_ -= result.freed;
  if (result.rtt != Duration{0}) p->rtt.sample(result.rtt);
  if (backed_off) timers_.set_no_later(p, next_deadline(p));  // it may stand far off
  if (flow.has_gap() && !config_.fixed_timeout) resend_lost(p, lane, now);
}

template <PacketDevice D>
void Link<D>::receive_ack(Peer* p, std::span<const std::byte> payload, Time now) {
  while (!payload.empty()) {
    AckBlock block;
    if (payload.size() < sizeof(block)) return count(p, Counter::drop_length);
    std::memcpy(&block, payload.data(), sizeof(block));
    const std::size_t bytes = block.words * sizeof(std::uint64_t);
    const std::size_t index = block.lane_flags & kLaneMask;
    if (index >= kLanes || (block.lane_flags & ~(kLaneMask | kFlagWant)) != 0 ||
        block.words > kBitmapWords || payload.size() < sizeof(block) + bytes)
      return count(p, Counter::drop_ack);
    std::uint64_t bitmap[kBitmapWords];
    std::memcpy(bitmap, payload.data() + sizeof(block), bytes);
    const auto lane = static_cast<Lane>(index);
    acknowledge(p, lane, {block.ack, block.ack + block.credit, {bitmap, block.words}}, now);
    if ((block.lane_flags & kFlagWant) != 0) on_credit_wanted(p, lane, now);
    payload = payload.subspan(sizeof(block) + bytes);
  }
}

template <PacketDevice D>
void Link<D>::resend(Peer* p, Lane lane, Frame* f, Time now) {
  if (!enqueue_tx(f))
    return;  // the device is full: the timer or the next acknowledgement tries again
  p->send[static_cast<std::size_t>(lane)].retransmitted(f, now);
  count(p, Counter::retransmits);
}

template <PacketDevice D>
void Link<D>::resend_lost(Peer* p, Lane lane, Time now) {
  Send& flow = p->send[static_cast<std::size_t>(lane)];
  for (Frame* f = flow.in_flight().front(); f && flow.behind_settled(f); f = Send::List::next(f)) {
    if (!flow.lost(f, p->rtt.reordering())) continue;
    count(p, Counter::fast_retransmits);
    resend(p, lane, f, now);
  }
}

}  // namespace viaduct::link
