// Injected faults on the transmit side of a real port (VIADUCT_FAULTS): loss, duplication,
// reordering, corruption and truncation, as a bad network would cause them, but seeded.
// base::FaultInjector decides what happens to each frame; this class does it, between Port and
// DeviceQueue.
//
// The port owns it. Thread rule: the port's; one owner thread.
#pragma once

#include <array>

#include "drivers/base/fault_injector.hpp"
#include "drivers/port/device_queue.hpp"

namespace viaduct::port {

class PortFaults {
 public:
  // Copies of frames come from `pool`, which must outlive this object.
  PortFaults(const base::FaultSpec& spec, rte_mempool* pool) : injector_(spec), pool_(pool) {}
  ~PortFaults();
  PortFaults(const PortFaults&) = delete;
  PortFaults& operator=(const PortFaults&) = delete;

  // As Port::transmit. The frames themselves are never changed, because the link may send them
  // again: faults change copies.
  std::uint16_t transmit(rte_mbuf** burst, std::uint16_t count, DeviceQueue& device);
  // To be called at each receive. Sends frames held back for reordering when no later frames have
  // come to overtake them for some polls; else the last frame of a conversation would never leave.
  void poll(DeviceQueue& device);

  const base::FaultCounts& counts() const { return injector_.counts(); }

 private:
  struct Held {
    rte_mbuf* frame;
    std::uint32_t transmits, polls;  // let go after so many of either
  };

  // A frame goes: apply_fate() -> lost, or ready_, or held_ and then ready_; flush() -> the device.
  void apply_fate(rte_mbuf* frame);
  rte_mbuf* damaged_copy(rte_mbuf* frame, const base::Fate& fate);
  bool hold(rte_mbuf* frame);
  void release_held(bool transmitted);
  bool flush(DeviceQueue& device);
  // One frame can add two to ready_ (itself and a twin), and all held frames may follow.
  bool room() const { return ready_count_ + held_count_ + 2 <= ready_.size(); }

  base::FaultInjector injector_;
  rte_mempool* pool_;
  std::array<Held, 32> held_{};         // wait for later frames to overtake them
  std::array<rte_mbuf*, 128> ready_{};  // to be sent, but the device has not taken them yet
  std::size_t held_count_ = 0, ready_count_ = 0;
};

}  // namespace viaduct::port
