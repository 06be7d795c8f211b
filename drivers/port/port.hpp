// The packet device (link::PacketDevice) of real networks: one receive and one transmit queue of a
// DPDK ethdev, which one process owns. The class opens, configures and starts the ethdev, and gives
// the link its bursts of frames.
//
// Fast and slow path: transmit() and receive() call DPDK's burst functions and little else.
// Recording (VIADUCT_PCAP) and injected faults (VIADUCT_FAULTS) take the slow path in port.cpp.
// Work-arounds for defects of DPDK's drivers are in quirks/.
//
// Ownership: a frame (rte_mbuf) that allocate() or receive() gives is the caller's until transmit()
// takes it over or release() returns it to the pool. The port must outlive its link.
//
// Thread rule: one owner thread at a time calls everything; whichever thread calls receive()
// becomes the owner of the frame pool. Opening and closing take setup_lock(). No burst function
// blocks.
#pragma once

#include <rte_ethdev.h>
#include <rte_mbuf.h>

#include <functional>
#include <memory>
#include <string>

#include "drivers/base/fault_injector.hpp"
#include "drivers/link/packet_device.hpp"
#include "drivers/port/mbuf_pool.hpp"
#include "drivers/port/quirks/memif_rings.hpp"

namespace viaduct::port {

// What the opener of a port asks for. port_config.hpp resolves it.
struct PortConfig {
  // As DPDK users write it: a PCI address ("0000:3b:02.1") or a vdev ("net_memif0,role=server,...",
  // "net_af_packet0,iface=p0", "net_af_xdp0,iface=p0"). "port:N" or "port:NAME" takes an ethdev
  // that the application has created itself (net_ring, bonding...).
  std::string devargs;
  std::size_t frames = 0;  // pool size; 0: VIADUCT_FRAMES
  std::size_t mtu = 0;     // ask for this MTU; 0: VIADUCT_MTU, or what the device (interface) has
  base::FaultSpec faults = {};  // injected on the transmit side, besides VIADUCT_FAULTS
};

class Port {
 public:
  using Frame = rte_mbuf;

  // Opens, configures and starts the port, after starting EAL if it does not run. Throws SetupError
  // with the reason and the remedy. For AF_XDP it may try for 3 seconds.
  static std::unique_ptr<Port> open(const PortConfig& config);
  ~Port();  // stops the port, and removes the device if open() has added it
  Port(const Port&) = delete;
  Port& operator=(const Port&) = delete;

  link::Address address() const { return address_; }
  std::size_t mtu() const { return mtu_; }  // bytes behind the 14 of the Ethernet header
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
    // The owner may have handed the port to this thread since the last call.
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
  // False: receive() would find nothing. The answer is quicker than an empty receive(), because it
  // reads the shared ring of a memif directly. On other devices only the driver knows, so the
  // answer is always true.
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
  // Sleeps until a frame has arrived, `also` is readable, or `most` is over; see
  // link::PacketDevice. The port sleeps on the sockets of AF_PACKET and AF_XDP, on the interrupt of
  // a memif that has its peer, and on the receive interrupt of a PCI function whose driver has one.
  // False on others.
  bool sleep(base::Duration most, int also);
  // Calls `call` in the owner thread when the port has been idle for a few thousand polls, and
  // before it sleeps (nullptr: no more): for what has to be done now and then.
  void on_idle(std::function<void()> call);
  // A hint: frames have arrived, so an answer may be sent soon. Prefetches the cache lines of a
  // memif's ring and buffer that transmit() will write.
  void expect_transmit() const {
    if (outgoing_) outgoing_.fetch_next(recent_bytes_);
  }
  // The rings that may_receive() and expect_transmit() look at are known: a memif with its peer.
  bool knows_rings() const { return incoming_ && outgoing_; }
  static std::byte* bytes(Frame* f) { return rte_pktmbuf_mtod(f, std::byte*); }
  // The bytes in the frame's first mbuf. The port is configured so that frames of its MTU fit into
  // one mbuf; of a longer frame, which another program sent, only the first mbuf is seen.
  static std::size_t length(Frame* f) { return rte_pktmbuf_data_len(f); }
  static void set_length(Frame* f, std::size_t n) {
    f->data_len = static_cast<std::uint16_t>(n);
    f->pkt_len = static_cast<std::uint32_t>(n);
  }
  // Adds an owner; each owner calls release(). mbuf_pool.hpp tells why the mbuf's own reference
  // count is not used.
  static void retain(Frame* f) { ++frame_state(f).retained; }
  static void release(Frame* f) {
    if (f->nb_segs == 1) [[likely]]
      rte_pktmbuf_free_seg(f);
    else  // a scattered frame that another program sent
      rte_pktmbuf_free(f);
  }
  static link::FrameMeta<Frame>& meta(Frame* f) { return frame_state(f).meta; }

 private:
  struct Parts;  // state that the fast path does not touch

  explicit Port(const PortConfig& config);
  // The steps of opening, in this order; start() calls bring_up(). They throw SetupError.
  void attach(bool probed);
  void create_pool();
  void start();
  void bring_up(bool interrupt);
  void prepare_slow_path(const base::FaultSpec& faults);
  void close() noexcept;
  // Called after a number of empty polls: on_idle(), and the connection of a memif.
  void housekeeping();
  std::uint16_t transmit_slowly(Frame** burst, std::uint16_t count);
  std::uint16_t receive_slowly(Frame** burst, std::uint16_t count);

  rte_mempool* pool_ = nullptr;
  std::uint16_t port_ = 0;         // DPDK's number of the ethdev
  bool slow_path_ = false;         // frames are recorded, or faults injected
  bool slow_transmit_ = false;     // slow_path_, or AF_PACKET, where each burst is a system call
  std::uint32_t empty_polls_ = 1;  // until the next housekeeping
  MemifRing outgoing_, incoming_;  // known on a memif that has its peer only
  // The length in bytes of the last frame received, which is the guess at the next one's: how many
  // cache lines to prefetch. A line too many costs 5 % of a round trip, because the other CPU has
  // it.
  std::size_t recent_bytes_ = 0;
  std::size_t mtu_ = 0, receive_capacity_ = 0, pool_size_ = 0;
  link::Address address_;
  std::unique_ptr<Parts> parts_;
};

}  // namespace viaduct::port
