// The receive interrupt of a port's queue 0, for a process that sleeps until a frame comes
// (Port::sleep). The interrupt is masked all other time, so that polling pays nothing for it.
//
// A driver has the interrupt only if the port was configured with rte_eth_conf::intr_conf.rxq. What
// becomes readable depends on the device (an eventfd of VFIO, the completion channel of an RDMA
// NIC), so DPDK's rte_epoll_wait() reads it.
//
// The port owns it. Thread rule: the port's; one owner thread.
#pragma once

#include <cstdint>
#include <utility>

#include "drivers/base/unique_fd.hpp"

namespace viaduct::port {

class ReceiveInterrupt {
 public:
  ReceiveInterrupt() = default;  // none
  // That of a port that has been started. None (false) if its driver has no interrupt, or cannot
  // say whether a frame waits.
  explicit ReceiveInterrupt(std::uint16_t port);
  // To be destroyed before the port stops.
  ~ReceiveInterrupt();
  ReceiveInterrupt(ReceiveInterrupt&& other) noexcept = default;
  ReceiveInterrupt& operator=(ReceiveInterrupt&& other) noexcept {
    std::swap(port_, other.port_);
    std::swap(event_, other.event_);
    return *this;
  }

  explicit operator bool() const { return static_cast<bool>(event_); }
  // An epoll descriptor, readable when a frame has come since unmask().
  int event() const { return event_.get(); }
  // Unmasks the interrupt. False: a frame is there already, so do not sleep; or the driver refused.
  bool unmask() const;
  // Masks the interrupt, and reads what has become readable meanwhile.
  void mask() const;

 private:
  std::uint16_t port_ = 0;
  base::UniqueFd event_;
};

}  // namespace viaduct::port
