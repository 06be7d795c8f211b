// Link: making acknowledgements. What has arrived is told by the frames that go the other way, or,
// if there are none in time, by a frame of its own, with selective acknowledgement of what lies
// behind a gap.
#pragma once

#include <algorithm>
#include <cstring>

#include "drivers/base/crc32c.hpp"
#include "drivers/link/link.hpp"

namespace viaduct::link {

// Frames that go the other way carry acknowledgements; only when none does in time is there a frame
// for them alone. Peers whose time has come stand in front.
template <PacketDevice D>
void Link<D>::ack_later(Peer* p, const Receive& flow, Time now) {
  if (flow.ack_due()) {
    acking_.remove(p);
    acking_.add_front(p);
    p->ack_at = now;
  } else if (!p->ack_hook.linked) {
    acking_.add(p);
    p->ack_at = now + ack_delay(p);
  }
}

// A quarter of the round trip, so that waiting for company never dominates what the peer measures.
template <PacketDevice D>
Duration Link<D>::ack_delay(const Peer* p) const {
  return std::clamp(p->rtt.smoothed() / 4, std::min(kMinAckDelay, config_.ack_delay),
                    config_.ack_delay);
}

template <PacketDevice D>
void Link<D>::send_due_acks(Time now) {
  while (Peer* p = acking_.front()) {
    if (p->ack_at > now) return;
    bool due = false;
    Time since = Time::max();
    for (const Receive& r : p->receive) {
      due = due || r.ack_due();
      if (r.ack_pending()) since = std::min(since, r.unacknowledged_since());
    }
    acking_.remove(p);
    if (since == Time::max() && !due) continue;  // other frames have carried it
    if (!due && since + ack_delay(p) > now) {    // and this has arrived after them
      p->ack_at = since + ack_delay(p);
      acking_.add(p);
      return;
    }
    if (!send_ack(p, 0, now)) {  // no frame, or the device is full: next poll
      p->ack_at = now;
      acking_.add_front(p);
      return;
    }
  }
}

// False: not now, and nothing counts as told.
template <PacketDevice D>
bool Link<D>::send_ack(Peer* p, std::uint8_t flags, Time now) {
  if (tx_burst_size_ == kBurst) flush();
  if (tx_burst_size_ == kBurst) return false;
  Frame* f = new_control_frame();
  if (!f) return false;
  std::byte* const payload = D::bytes(f) + kFrameHeader;
  std::byte* to = payload;
  for (std::size_t lane = 0; lane < kLanes; ++lane) {
    Receive& r = p->receive[lane];
    const bool blocked = p->send[lane].blocked();
    if (flags == 0 && !blocked && !r.ack_pending() && !r.has_gap()) continue;
    std::uint64_t bitmap[kBitmapWords];
    AckBlock block{};
    block.lane_flags = static_cast<std::uint8_t>(lane | (blocked ? kFlagWant : 0));
    block.words = r.bitmap(bitmap);
    block.credit = r.credit();
    block.ack = r.expected();
    std::memcpy(to, &block, sizeof(block));
    std::memcpy(to + sizeof(block), bitmap, block.words * sizeof(std::uint64_t));
    to += sizeof(block) + block.words * sizeof(std::uint64_t);
    r.acknowledged_fully(now);
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
