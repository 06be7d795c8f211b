// Link: making acknowledgements. Data frames that go the other way carry them (piggybacking). If no
// data frame leaves in time, an ack frame does, and an ack frame alone can carry the
// selective acknowledgement of frames behind a gap. loss_recovery.hpp reads acknowledgements.
#pragma once

#include <algorithm>
#include <cstring>

#include "drivers/base/crc32c.hpp"
#include "drivers/link/link.hpp"

namespace viaduct::link {

// Schedules an ack frame for the peer: with the next send_due_acks() if `flow` has an
// acknowledgement due, else after ack_delay(), to give data frames the time to carry the
// acknowledgement. In the list acking_, due peers stand in front and the others in the order in
// which they were added.
template <PacketDevice D>
void Link<D>::ack_later(Flow& flow) {
  Peer* const p = &flow.peer;
  if (flow.receive.ack_due()) {
    acking_.remove(p);
    acking_.add_front(p);
    p->ack_at = now_;
  } else if (!p->ack_hook.linked) {
    acking_.add(p);
    p->ack_at = flow.receive.unacknowledged_since() + ack_delay(p);
  }
}

// A quarter of the round trip, so that the delay never dominates the round trip that the peer
// measures; between 1 us and LinkConfig::ack_delay.
template <PacketDevice D>
Duration Link<D>::ack_delay(const Peer* p) const {
  return std::clamp(p->rtt.smoothed() / 4, std::min(kMinAckDelay, config_.ack_delay),
                    config_.ack_delay);
}

// Sends ack frames to the peers whose time has come. Data frames do not take a peer out of acking_,
// which would cost the fast path a list operation; so each peer is examined here anew.
template <PacketDevice D>
void Link<D>::send_due_acks() {
  while (Peer* p = acking_.front()) {
    if (p->ack_at > now_) return;
    bool due = false;
    Time since = Time::max();
    for (const Flow& flow : p->flows) {
      const Receive& r = flow.receive;
      due = due || r.ack_due();
      if (r.ack_pending()) since = std::min(since, r.unacknowledged_since());
    }
    acking_.remove(p);
    if (since == Time::max() && !due) continue;  // data frames have carried the acknowledgement
    if (!due && since + ack_delay(p) > now_) {   // what is pending arrived after those data frames
      p->ack_at = since + ack_delay(p);
      acking_.add(p);
      return;
    }
    if (!send_ack(p, 0)) {  // no frame, or the device is full: next poll
      p->ack_at = now_;
      acking_.add_front(p);
      return;
    }
  }
}

// Sends an ack frame, also as keepalive and window probe (`flags`: kFlagAnswer). The frame has a
// block for each lane with something to acknowledge, a gap, or frames waiting for credit
// (kFlagWant); with kFlagAnswer, one for every lane. False: no frame or no place in the burst;
// nothing counts as acknowledged. The caller, or the end of a poll, flushes. The burst takes over
// the only reference.
template <PacketDevice D>
bool Link<D>::send_ack(Peer* p, std::uint8_t flags) {
  if (tx_burst_size_ == kBurst) flush();
  if (tx_burst_size_ == kBurst) return false;
  Frame* f = new_control_frame();
  if (!f) return false;
  std::byte* const payload = D::bytes(f) + kFrameHeader;
  std::byte* to = payload;
  for (Flow& flow : p->flows) {
    Receive& r = flow.receive;
    const bool blocked = flow.send.blocked();
    if (flags == 0 && !blocked && !r.ack_pending() && !r.has_gap()) continue;
    std::uint64_t bitmap[kBitmapWords];
    AckBlock block{};
    block.lane_flags = static_cast<std::uint8_t>(index_of(flow.lane) | (blocked ? kFlagWant : 0));
    block.words = r.bitmap(bitmap);
    block.credit = r.credit();
    block.ack = r.expected();
    std::memcpy(to, &block, sizeof(block));
    std::memcpy(to + sizeof(block), bitmap, block.words * sizeof(std::uint64_t));
    to += sizeof(block) + block.words * sizeof(std::uint64_t);
    r.on_ack_frame_sent(now_);
  }
  const auto length = static_cast<std::size_t>(to - payload);
  D::set_length(f, kFrameHeader + length);
  write_header(D::bytes(f), p->outgoing,
               {FrameType::ack, flags, static_cast<std::uint16_t>(length)},
               base::crc32c(payload, length, p->outgoing_sum));
  tx_burst_[tx_burst_size_++] = f;
  counters_.add(Counter::acks_sent);
  return true;
}

}  // namespace viaduct::link
