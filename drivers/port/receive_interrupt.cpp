// The receive interrupt through DPDK's functions: setting it up, unmasking and masking. port.cpp
// has configured the port for it and waits on event().
#include "drivers/port/receive_interrupt.hpp"

#include <rte_epoll.h>
#include <rte_ethdev.h>
#include <rte_interrupts.h>
#include <sys/epoll.h>

namespace viaduct::port {
namespace {

constexpr std::uint16_t kQueue = 0;

// Whether the next poll would find a frame; negative: the driver cannot say.
int frame_waits(std::uint16_t port) {
  const int status = rte_eth_rx_descriptor_status(port, kQueue, 0);
  if (status >= 0) return status == RTE_ETH_RX_DESC_DONE ? 1 : 0;
  return rte_eth_rx_queue_count(port, kQueue);
}

}  // namespace

ReceiveInterrupt::ReceiveInterrupt(std::uint16_t port) : port_(port) {
  // Without an answer to this question the interrupt is of no use: a frame that came before
  // unmask() makes no interrupt, and would lie there as long as the process sleeps.
  if (frame_waits(port) < 0) return;
  base::UniqueFd event(::epoll_create1(EPOLL_CLOEXEC));
  if (!event ||
      rte_eth_dev_rx_intr_ctl_q(port, kQueue, event.get(), RTE_INTR_EVENT_ADD, nullptr) != 0)
    return;
  event_ = std::move(event);
  // Some drivers accept the interrupt, and refuse only when it is used.
  const bool works = rte_eth_dev_rx_intr_enable(port, kQueue) == 0 &&
                     rte_eth_dev_rx_intr_disable(port, kQueue) == 0;
  if (!works) *this = ReceiveInterrupt();
}

ReceiveInterrupt::~ReceiveInterrupt() {
  if (event_) rte_eth_dev_rx_intr_ctl_q(port_, kQueue, event(), RTE_INTR_EVENT_DEL, nullptr);
}

// Unmask the interrupt, then look for frames. In the other order a frame that comes between the two
// would be missed.
bool ReceiveInterrupt::unmask() const {
  return rte_eth_dev_rx_intr_enable(port_, kQueue) == 0 && frame_waits(port_) <= 0;
}

void ReceiveInterrupt::mask() const {
  rte_eth_dev_rx_intr_disable(port_, kQueue);
  // A pending event would end the next sleep at once. This reads it and does not wait.
  rte_epoll_event events[1];
  rte_epoll_wait(event(), events, 1, 0);
}

}  // namespace viaduct::port
