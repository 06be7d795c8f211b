// The frames (mbufs) of one port: a DPDK mempool with operations of our own, which count the owners
// of a frame.
//
// The link keeps a sent frame until it is acknowledged, so the frame has two owners: the link and
// the DPDK driver. If the mbuf's own reference count said so, the driver would free the frame with
// an atomic instruction. That instruction waits until all earlier stores (the copy into shared
// memory, on a memif) have left the CPU. So to a driver each frame looks singly owned. The driver
// returns the frame to its pool, and the pool only counts down as long as there is another owner.
//
// Thread rule: the port's owner thread allocates, retains and releases. Any thread may return a
// frame to the pool (on a loop-back device the receiver's does); that takes one or two atomic
// instructions.
//
//   uninitialised --first taken--> in use --the owner thread releases the last reference--> free
//                                   ^  |                                                    ^ |
//                                   |  '-another thread returns it-> freed remotely -counted' |
//                                   '------------------------ taken --------------------------'
//
// The owner thread counts remote frees when frames run short. A frame with other owners is then
// still in use.
//
// (Not a boost::lockfree::stack, which takes its nodes from a second lock-free list:
// ThreadSanitizer reports data races in that, a return and its collection take 1.1 to 1.2 times as
// long, returns by two threads at once twice as long, and a pool of 8191 frames takes 256 KiB
// more.)
//
// The free frames are a stack. A frame is initialised (its headers are written) when it is first
// taken, so a port that keeps a hundred frames busy has touched the memory of a hundred frames and
// not of all.
#pragma once

#include <rte_mbuf.h>
#include <rte_mempool.h>

#include <atomic>
#include <string>
#include <vector>

#include "drivers/link/packet_device.hpp"

namespace viaduct::port {

// The private area behind each mbuf.
struct FrameState {
  link::FrameMeta<rte_mbuf> meta;
  std::uint32_t retained;                   // owners beyond the first; the owner thread's
  std::atomic<std::uint32_t> remote_frees;  // by other threads, not yet counted by the owner
  rte_mbuf* next_remote_freed;              // in FrameStack::remote_freed
};
// DPDK demands a multiple of its alignment.
inline constexpr std::uint16_t kPrivateArea = RTE_ALIGN(sizeof(FrameState), RTE_MBUF_PRIV_ALIGN);

inline FrameState& frame_state(rte_mbuf* f) {
  return *static_cast<FrameState*>(rte_mbuf_to_priv(f));
}

enum class PoolKind : std::uint8_t {
  ordinary,
  copied,  // no device reaches into these frames, as the driver copies them (af_packet, and memif
           // without zero-copy)
  umem,    // AF_XDP's: frames lie without gaps and are all initialised at once, as the kernel pins
           // them all
};
// A pool of frames that hold `room` bytes each, headroom included, on NUMA node `socket`. nullptr:
// rte_errno tells why. The calling thread becomes the owner thread. The caller frees the pool with
// rte_mempool_free().
rte_mempool* create_frame_pool(const std::string& name, std::size_t frames, std::uint16_t room,
                               int socket, PoolKind kind = PoolKind::ordinary);

namespace detail {
// An address that no other thread has: a thread id that costs no call.
inline const void* thread_id() {
  static thread_local char mark;
  return &mark;
}
// The state of one pool (rte_mempool::pool_data).
struct FrameStack {
  const void* owner;          // thread_id() of the owner thread
  bool populated;             // false while DPDK fills the pool: no frame is initialised yet
  std::size_t uninitialised;  // number of free frames, at the bottom of `free`
  rte_mempool_populate_obj_cb_t* obj_cb;  // DPDK's part in initialising a frame, with its argument
  void* obj_cb_arg;
  std::vector<rte_mbuf*> free;          // the stack; its top is at the end
  std::atomic<rte_mbuf*> remote_freed;  // list of frames that other threads have returned
};
}  // namespace detail

// Makes the calling thread the owner of the pool. The earlier owner must have stopped using it.
// Reads before it writes, so that the usual call leaves the cache line shared.
inline void own_frame_pool(rte_mempool* pool) {
  auto* const stack = static_cast<detail::FrameStack*>(pool->pool_data);
  const void* const self = detail::thread_id();
  if (stack->owner != self) stack->owner = self;
}

}  // namespace viaduct::port
