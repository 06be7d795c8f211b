// What the link needs of a packet device. Two things model it: Port (a DPDK ethdev) and SimPort
// (a port of the simulated network).
#pragma once

#include <concepts>

#include "drivers/link/types.hpp"

namespace viaduct::link {

// Bookkeeping that rides beside each frame, in memory the device reserves for it. Sender and
// receiver have a part each because on a loop-back device (net_ring) both ends hold the very same
// frame. Frames are kept in intrusive lists, so an idle peer costs no queue memory.
template <class Frame>
struct FrameMeta {
  struct Sending {
    Frame* next;
    Time sent_at;  // last transmission
    std::uint32_t sequence;
    std::uint32_t sum;            // running CRC32C of route and payload so far
    std::uint16_t transmissions;  // 0 = still in the backlog
    std::uint8_t order;
  } tx;
  struct Receiving {
    Frame* next;
    std::uint32_t sequence;
    std::uint32_t consumed;  // bytes of the payload already delivered
  } rx;
};

// An unreliable device that sends and receives Ethernet frames in bursts. Frames are reference
// counted: whoever gets one owns one reference. Contents of a frame must not be changed once it
// was transmitted or while it is shared. Not thread safe: one owner thread.
template <class D>
concept PacketDevice = requires(D device, const D constant, typename D::Frame* frame,
                                typename D::Frame** burst, std::uint16_t count, std::size_t size,
                                Duration most, int also) {
  { constant.address() } -> std::same_as<Address>;
  // Largest Ethernet payload (after the 14-byte header) in bytes.
  { constant.mtu() } -> std::same_as<std::size_t>;
  // Frames the device can receive without being polled.
  { constant.receive_capacity() } -> std::same_as<std::size_t>;
  // Frames in the pool that allocate() draws from and the device receives into.
  { constant.pool_size() } -> std::same_as<std::size_t>;
  // An empty frame with one reference, or nullptr when there is none left.
  { device.allocate() } -> std::same_as<typename D::Frame*>;
  // Takes over one reference of each of the first k frames and returns k.
  { device.transmit(burst, count) } -> std::same_as<std::uint16_t>;
  { device.receive(burst, count) } -> std::same_as<std::uint16_t>;
  // False: receive() would find nothing.
  { device.may_receive() } -> std::same_as<bool>;
  // Sleeps until a frame may have arrived or the descriptor `also` (-1: none) is readable, at most
  // so long. False: it did not, because nothing tells the device that a frame has arrived.
  { device.sleep(most, also) } -> std::same_as<bool>;
  // A hint: frames have come, so that one may be sent soon.
  device.expect_transmit();
  { D::bytes(frame) } -> std::same_as<std::byte*>;
  { D::length(frame) } -> std::same_as<std::size_t>;
  D::set_length(frame, size);
  D::retain(frame);
  D::release(frame);
  { D::meta(frame) } -> std::same_as<FrameMeta<typename D::Frame>&>;
};

}  // namespace viaduct::link
