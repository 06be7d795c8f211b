// The frames of one port: a DPDK mempool that counts who else holds a frame by itself.
//
// A sent frame is kept until it is acknowledged, so two own it: the link and the driver. Were that
// said in the mbuf's own reference count, the driver would free it with an atomic instruction,
// which waits until everything stored before it (the copy into shared memory, on a memif) has left
// the CPU. So to a driver our frames look singly owned, it returns them to their pool as drivers
// do, and the pool knows better.
//
// Thread rule: the port's owner thread allocates, retains and releases. Any thread may return a
// frame (on a loop-back device the receiver does); that takes an atomic instruction or two.
//
// Frames are taken from a stack, and each is made (its headers are written) when it is first taken:
// a port that keeps a hundred frames busy has touched the memory of a hundred, not of all.
#pragma once

#include <rte_mbuf.h>
#include <rte_mempool.h>

#include <atomic>
#include <string>
#include <vector>

#include "drivers/link/packet_device.hpp"

namespace viaduct::port {

// Our own bytes behind each mbuf.
struct FrameState {
  link::FrameMeta<rte_mbuf> meta;
  std::uint32_t retained;                // owners beyond the first
  std::atomic<std::uint32_t> abandoned;  // by other threads, and not yet seen by the owner
  rte_mbuf* next_abandoned;
};
// DPDK wants it in whole units.
inline constexpr std::uint16_t kPrivateArea = RTE_ALIGN(sizeof(FrameState), RTE_MBUF_PRIV_ALIGN);

inline FrameState& frame_state(rte_mbuf* f) {
  return *static_cast<FrameState*>(rte_mbuf_to_priv(f));
}

// Frames that hold `room` bytes, headroom included. nullptr: rte_errno tells why. The calling
// thread owns it. Freed with rte_mempool_free.
enum class PoolKind : std::uint8_t {
  ordinary,
  umem,  // AF_XDP's: frames lie without gaps and are all made at once, as the kernel pins them all
};
rte_mempool* create_frame_pool(const std::string& name, std::size_t frames, std::uint16_t room,
                               int socket, PoolKind kind = PoolKind::ordinary);

namespace detail {
// An address that no other thread has.
inline const void* thread_mark() {
  static thread_local char mark;
  return &mark;
}
struct FrameStack {
  const void* owner;
  bool counting;                       // false while DPDK fills the pool: no frame is made yet
  std::size_t unmade;                  // of the free frames, those at the bottom
  rte_mempool_populate_obj_cb_t* add;  // DPDK's part in making a frame, with its argument
  void* add_argument;
  std::vector<rte_mbuf*> free;
  std::atomic<rte_mbuf*> abandoned;
};
}  // namespace detail

// From here on the calling thread owns the pool. Whoever did must have stopped using it.
inline void own_frame_pool(rte_mempool* pool) {
  auto* const stack = static_cast<detail::FrameStack*>(pool->pool_data);
  const void* const self = detail::thread_mark();
  if (stack->owner != self) stack->owner = self;
}

}  // namespace viaduct::port
