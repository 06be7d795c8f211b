// Carries out injected faults on the frames that a port sends. base/fault_injector.cpp draws them;
// DeviceQueue takes what is left.
#include "drivers/port/fault_injection.hpp"

#include <algorithm>

namespace viaduct::port {

PortFaults::~PortFaults() {
  for (std::size_t i = 0; i < ready_count_; ++i) rte_pktmbuf_free(ready_[i]);
  for (std::size_t i = 0; i < held_count_; ++i) rte_pktmbuf_free(held_[i].frame);
}

std::uint16_t PortFaults::transmit(rte_mbuf** burst, std::uint16_t count, DeviceQueue& device) {
  std::uint16_t taken = 0;
  for (; taken < count; ++taken) {
    // A device that takes nothing pushes back here, as it would without faults.
    if (!room() && !flush(device) && !room()) break;
    apply_fate(burst[taken]);
    release_held(true);
  }
  flush(device);
  return taken;
}

void PortFaults::poll(DeviceQueue& device) {
  if (held_count_ > 0) release_held(false);
  if (ready_count_ > 0) flush(device);
}

// Decides what happens to one frame, and takes over the caller's reference to it.
void PortFaults::apply_fate(rte_mbuf* frame) {
  const base::Fate fate = injector_.next();
  if (fate.lose) {
    rte_pktmbuf_free(frame);
    return;
  }
  if (fate.corrupt || fate.truncate) {
    rte_mbuf* const copy = damaged_copy(frame, fate);
    rte_pktmbuf_free(frame);
    if (copy == nullptr) return;  // no memory for the copy: the frame counts as lost
    frame = copy;
  }
  // The twin is a copy, too: on a loop-back device the receiver would get the very same mbuf twice.
  if (fate.duplicate)
    if (rte_mbuf* const twin = rte_pktmbuf_copy(frame, pool_, 0, UINT32_MAX))
      ready_[ready_count_++] = twin;
  if (!fate.reorder || !hold(frame)) ready_[ready_count_++] = frame;
}

rte_mbuf* PortFaults::damaged_copy(rte_mbuf* frame, const base::Fate& fate) {
  rte_mbuf* const copy = rte_pktmbuf_copy(frame, pool_, 0, UINT32_MAX);
  if (copy == nullptr) return nullptr;
  auto* const bytes = rte_pktmbuf_mtod(copy, std::byte*);
  if (fate.corrupt) injector_.corrupt({bytes, copy->data_len});
  if (fate.truncate) {
    // A device may refuse a frame without a whole Ethernet header.
    const auto length = std::max<std::size_t>(injector_.truncated(copy->data_len),
                                              std::min<std::size_t>(14, copy->data_len));
    copy->data_len = static_cast<std::uint16_t>(length);
    copy->pkt_len = static_cast<std::uint32_t>(length);
  }
  return copy;
}

// Holds a frame back until 1 to 4 later frames have overtaken it, or 4 to 31 polls have passed.
bool PortFaults::hold(rte_mbuf* frame) {
  if (held_count_ == held_.size()) return false;
  // One more than the number of frames: release_held() counts the frame's own transmit, too.
  const auto transmits = static_cast<std::uint32_t>(2 + injector_.random()() % 4);
  const auto polls = static_cast<std::uint32_t>(4 + injector_.random()() % 28);
  held_[held_count_++] = {frame, transmits, polls};
  return true;
}

void PortFaults::release_held(bool transmitted) {
  std::size_t kept = 0;
  for (std::size_t i = 0; i < held_count_; ++i) {
    Held& held = held_[i];
    if (transmitted ? --held.transmits == 0 : --held.polls == 0) {
      ready_[ready_count_++] = held.frame;
    } else {
      held_[kept++] = held;
    }
  }
  held_count_ = kept;
}

// True when the device has taken everything.
bool PortFaults::flush(DeviceQueue& device) {
  const std::uint16_t sent =
      device.transmit(ready_.data(), static_cast<std::uint16_t>(ready_count_));
  std::copy(ready_.begin() + sent, ready_.begin() + ready_count_, ready_.begin());
  ready_count_ -= sent;
  return ready_count_ == 0;
}

}  // namespace viaduct::port
