// The ethdev's queue pair as the slow path sees it: every frame that crosses it can be recorded
// (VIADUCT_PCAP). Injected faults happen above it, so that the recording has what went on the wire.
// Owned by the port; the PcapWriter, which may be nullptr, is the port's, too. One owner thread.
#pragma once

#include <rte_ethdev.h>
#include <rte_mbuf.h>

#include <span>

#include "drivers/port/packet_capture.hpp"

namespace viaduct::port {

class DeviceQueue {
 public:
  DeviceQueue() = default;
  DeviceQueue(std::uint16_t port, PcapWriter* recording) : port_(port), recording_(recording) {}

  // As rte_eth_tx_burst(): takes over the first frames and returns their number.
  std::uint16_t transmit(rte_mbuf** burst, std::uint16_t count) {
    if (recording_ == nullptr) return rte_eth_tx_burst(port_, 0, burst, count);
    // Send frames one by one, and hold a reference to each until it is recorded. The driver may
    // free a frame as soon as it has it, but only afterwards is it known whether the driver took
    // the frame.
    std::uint16_t sent = 0;
    for (; sent < count; ++sent) {
      rte_mbuf* frame = burst[sent];
      rte_mbuf_refcnt_update(frame, 1);
      const bool taken = rte_eth_tx_burst(port_, 0, &frame, 1) == 1;
      if (taken) record(burst[sent]);
      rte_pktmbuf_free(burst[sent]);
      if (!taken) break;
    }
    return sent;
  }

  std::uint16_t receive(rte_mbuf** burst, std::uint16_t count) {
    const std::uint16_t received = rte_eth_rx_burst(port_, 0, burst, count);
    if (recording_ != nullptr)
      for (std::uint16_t i = 0; i < received; ++i) record(burst[i]);
    return received;
  }

 private:
  void record(rte_mbuf* frame) {
    recording_->write({rte_pktmbuf_mtod(frame, const std::byte*), rte_pktmbuf_data_len(frame)});
  }

  std::uint16_t port_ = 0;
  PcapWriter* recording_ = nullptr;
};

}  // namespace viaduct::port
