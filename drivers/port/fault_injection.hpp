// Faults on the transmit side of a real port: what the wire would do, done before the device.
#pragma once

#include <array>

#include "drivers/base/fault_injector.hpp"
#include "drivers/port/device_queue.hpp"

namespace viaduct::port {

class PortFaults {
 public:
  // Copies of frames come from `pool`.
  PortFaults(const base::FaultSpec& spec, rte_mempool* pool) : injector_(spec), pool_(pool) {}
  ~PortFaults();
  PortFaults(const PortFaults&) = delete;
  PortFaults& operator=(const PortFaults&) = delete;

  // As Port::transmit. The frames themselves are never changed: the link sends them again.
  std::uint16_t transmit(rte_mbuf** burst, std::uint16_t count, DeviceQueue& device);
  // Lets go of frames held back for reordering that nothing has overtaken for a while.
  void poll(DeviceQueue& device);

  const base::FaultCounts& counts() const { return injector_.counts(); }

 private:
  struct Held {
    rte_mbuf* frame;
    std::uint32_t transmits, polls;  // let go after so many of either
  };

  void suffer(rte_mbuf* frame);
  rte_mbuf* damaged_copy(rte_mbuf* frame, const base::Fate& fate);
  bool hold(rte_mbuf* frame);
  void release_held(bool transmitted);
  bool flush(DeviceQueue& device);
  bool room() const { return ready_count_ + held_count_ + 2 <= ready_.size(); }

  base::FaultInjector injector_;
  rte_mempool* pool_;
  std::array<Held, 32> held_{};
  std::array<rte_mbuf*, 128> ready_{};  // their fate is settled, the device has not taken them yet
  std::size_t held_count_ = 0, ready_count_ = 0;
};

}  // namespace viaduct::port
