// The receive interrupt of a port's queue, for who sleeps until a frame comes. It is masked all
// other time: who polls pays nothing for it.
//
// A driver has it only if the port was configured with rte_eth_conf::intr_conf.rxq. DPDK does what
// the kind of device needs to be read (eventfds of VFIO, completion channels of RDMA NICs) when its
// epoll descriptor is waited on.
#pragma once

#include <cstdint>
#include <utility>

namespace viaduct::port {

class ReceiveInterrupt {
 public:
  ReceiveInterrupt() = default;  // none
  // Of the queue 0 of a port that has been started. None, if its driver cannot tell so.
  explicit ReceiveInterrupt(std::uint16_t port);
  // Before the port stops.
  ~ReceiveInterrupt();
  ReceiveInterrupt(ReceiveInterrupt&& other) noexcept
      : port_(other.port_), event_(std::exchange(other.event_, -1)) {}
  ReceiveInterrupt& operator=(ReceiveInterrupt&& other) noexcept {
    std::swap(port_, other.port_);
    std::swap(event_, other.event_);
    return *this;
  }

  explicit operator bool() const { return event_ >= 0; }
  // Readable when a frame has come since it was asked for.
  const int& event() const { return event_; }
  // False: a frame is there already, or it was refused.
  bool ask() const;
  // And forgets what has come.
  void mask() const;

 private:
  std::uint16_t port_ = 0;
  int event_ = -1;
};

}  // namespace viaduct::port
