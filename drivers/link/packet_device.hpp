// What the link needs of a packet device, as a concept, so that the data path has no virtual calls.
// Two classes model it: Port (a queue pair of a DPDK ethdev) and SimPort (a port of the simulated
// network).
#pragma once

#include <concepts>

#include "drivers/link/types.hpp"

namespace viaduct::link {

// The link's bookkeeping for one frame, in memory that the device reserves beside the frame. Sender
// and receiver have a part each because on a loop-back device (net_ring) both ends hold the very
// same frame. `next` is the link of FrameList.
template <class Frame>
struct FrameMeta {
  struct Sending {
    Frame* next;
    Time sent_at;                 // last transmission
    std::uint32_t sequence;       // number in its lane; given at the first transmission
    std::uint32_t sum;            // in the backlog: CRC32C of seed, route and payload so far
    std::uint16_t transmissions;  // 0: still in the backlog
    std::uint8_t order;           // Order of all messages in the frame
  } tx;
  struct Receiving {
    Frame* next;
    std::uint32_t sequence;  // set while the frame is held
    std::uint32_t consumed;  // bytes of the payload already delivered
  } rx;
};

// An unreliable device that sends and receives Ethernet frames in bursts. Frames are reference
// counted: the caller of allocate() or receive() owns one reference of each frame returned. The
// contents of a frame must not change once the frame was handed to transmit(), because the device
// may still be reading it, nor while the frame is shared. One owner thread.
template <class D>
concept PacketDevice = requires(D device, const D constant, typename D::Frame* frame,
                                typename D::Frame** burst, std::uint16_t count, std::size_t size,
                                Duration most, int also) {
  { constant.address() } -> std::same_as<Address>;
  // Largest Ethernet payload (after the 14-byte header) in bytes.
  { constant.mtu() } -> std::same_as<std::size_t>;
  // Frames that the device can receive without being polled: the size of its receive ring.
  { constant.receive_capacity() } -> std::same_as<std::size_t>;
  // Frames in the pool that allocate() draws from and the device receives into.
  { constant.pool_size() } -> std::same_as<std::size_t>;
  // An empty frame with one reference, or nullptr when the pool is exhausted.
  { device.allocate() } -> std::same_as<typename D::Frame*>;
  // Takes over one reference of each of the first k frames and returns k. The caller keeps the
  // references of the others and offers those frames again.
  { device.transmit(burst, count) } -> std::same_as<std::uint16_t>;
  // Fills `burst` with up to `count` frames and returns how many; the caller owns a reference each.
  { device.receive(burst, count) } -> std::same_as<std::uint16_t>;
  // False: receive() would find nothing. Cheaper than an empty receive() on some devices.
  { device.may_receive() } -> std::same_as<bool>;
  // Sleeps until a frame may have arrived or the file descriptor `also` (-1: none) is readable, for
  // `most` at the longest. False: the device did not sleep, because nothing would wake it when a
  // frame arrives.
  { device.sleep(most, also) } -> std::same_as<bool>;
  // A hint: frames have arrived, so an answer may be sent soon. A device can prefetch for it.
  device.expect_transmit();
  // A frame's contents begin with the Ethernet header; lengths count that header.
  { D::bytes(frame) } -> std::same_as<std::byte*>;
  { D::length(frame) } -> std::same_as<std::size_t>;
  D::set_length(frame, size);
  // Adds and drops one reference; the last release() returns the frame to its pool.
  D::retain(frame);
  D::release(frame);
  { D::meta(frame) } -> std::same_as<FrameMeta<typename D::Frame>&>;
};

}  // namespace viaduct::link
