// One DPDK ethdev queue pair owned by one process (and one thread of it).
#pragma once

#include <rte_ethdev.h>
#include <rte_mbuf.h>

#include <memory>
#include <string>

#include "drivers/base/fault_injector.hpp"
#include "drivers/link/packet_device.hpp"
#include "drivers/port/mbuf_pool.hpp"
#include "drivers/port/quirks/memif_rings.hpp"

namespace viaduct::port {

struct PortConfig {
  // As DPDK users write it: a PCI address ("0000:3b:02.1") or a vdev ("net_memif0,role=server,...",
  // "net_af_packet0,iface=p0", "net_af_xdp0,iface=p0"). "port:N" or "port:NAME" takes an ethdev
  // that the application has created itself (net_ring, bonding...).
  std::string devargs;
  std::size_t frames = 0;  // pool size; 0: VIADUCT_FRAMES
  std::size_t mtu = 0;     // ask for this MTU; 0: VIADUCT_MTU, or what the device (interface) has
  base::FaultSpec faults = {};  // added to the port's transmit side
};

class Port {
 public:
  using Frame = rte_mbuf;

  // Opens, configures and starts the port; EAL is started if need be. Throws SetupError.
  static std::unique_ptr<Port> open(const PortConfig& config);
  ~Port();
  Port(const Port&) = delete;
  Port& operator=(const Port&) = delete;

  link::Address address() const { return address_; }
  std::size_t mtu() const { return mtu_; }
  std::size_t receive_capacity() const { return receive_capacity_; }
  std::size_t pool_size() const { return pool_size_; }
  std::uint16_t port_number() const { return port_; }
  std::string driver() const;
  bool link_up() const;
  const base::FaultCounts* fault_counts() const;  // nullptr when there is no injection
  std::size_t frames_in_use() const;              // includes those the device holds for receiving

  Frame* allocate() { return rte_pktmbuf_alloc(pool_); }
  std::uint16_t transmit(Frame** burst, std::uint16_t count) {
    if (slow_transmit_) [[unlikely]]
      return transmit_slowly(burst, count);
    return rte_eth_tx_burst(port_, 0, burst, count);
  }
  std::uint16_t receive(Frame** burst, std::uint16_t count) {
    own_frame_pool(pool_);
    if (slow_path_) [[unlikely]]
      return receive_slowly(burst, count);
    const std::uint16_t received = rte_eth_rx_burst(port_, 0, burst, count);
    if (received != 0) {
      recent_bytes_ = rte_pktmbuf_data_len(burst[received - 1]);
    } else if (--empty_polls_ == 0) [[unlikely]] {
      housekeeping();  // only a poll that finds nothing pays for it: one decrement
    }
    return received;
  }
  // False: receive() would find nothing, which it would take longer to say. True elsewhere than on
  // a memif: only its driver knows.
  bool may_receive() {
    if (!incoming_ || slow_path_) return true;
    if (incoming_.any()) {
      incoming_.fetch_first(recent_bytes_);
      return true;
    }
    own_frame_pool(pool_);
    if (--empty_polls_ == 0) [[unlikely]]
      housekeeping();
    return false;
  }
  // On the sockets of AF_PACKET and AF_XDP, on the interrupt of a memif that has its peer, and on
  // that of a PCI function whose driver has one.
  bool sleep(base::Duration most, int also);
  // Frames have come, so that one may be sent soon: fetches what transmit() will write.
  void expect_transmit() const {
    if (outgoing_) outgoing_.fetch_next(recent_bytes_);
  }
  // Whether what those two look at is known.
  bool knows_rings() const { return incoming_ && outgoing_; }
  static std::byte* bytes(Frame* f) { return rte_pktmbuf_mtod(f, std::byte*); }
  // A frame scattered over several mbufs would be cut here; ports are configured so that none is.
  static std::size_t length(Frame* f) { return rte_pktmbuf_data_len(f); }
  static void set_length(Frame* f, std::size_t n) {
    f->data_len = static_cast<std::uint16_t>(n);
    f->pkt_len = static_cast<std::uint32_t>(n);
  }
  static void retain(Frame* f) { ++frame_state(f).retained; }
  static void release(Frame* f) {
    if (f->nb_segs == 1) [[likely]]
      rte_pktmbuf_free_seg(f);
    else  // somebody else's giant
      rte_pktmbuf_free(f);
  }
  static link::FrameMeta<Frame>& meta(Frame* f) { return frame_state(f).meta; }

 private:
  struct Parts;  // what the fast path does not touch

  explicit Port(const PortConfig& config);
  void attach(bool probed);
  void create_pool();
  void start();
  void bring_up(bool interrupt);
  void prepare_slow_path(const base::FaultSpec& faults);
  void close() noexcept;
  void housekeeping();
  std::uint16_t transmit_slowly(Frame** burst, std::uint16_t count);
  std::uint16_t receive_slowly(Frame** burst, std::uint16_t count);

  rte_mempool* pool_ = nullptr;
  std::uint16_t port_ = 0;
  bool slow_path_ = false;
  bool slow_transmit_ = false;     // as slow_path_, and where every burst is a system call anyway
  std::uint32_t empty_polls_ = 1;  // until the next housekeeping
  MemifRing outgoing_, incoming_;  // unknown, but on a memif that has its peer
  // The length of the latest frame, and a guess at the next one's: a line too many costs 5 % of a
  // round trip, as the other CPU has it.
  std::size_t recent_bytes_ = 0;
  std::size_t mtu_ = 0, receive_capacity_ = 0, pool_size_ = 0;
  link::Address address_;
  std::unique_ptr<Parts> parts_;
};

}  // namespace viaduct::port
