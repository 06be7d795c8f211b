// The frame pool's mempool operations: a stack of free frames for the owner thread, and a lock-free
// list by which other threads return frames. mbuf_pool.hpp tells why DPDK's own pools are not used.
#include "drivers/port/mbuf_pool.hpp"

#include <rte_eal.h>
#include <rte_errno.h>
#include <sys/mman.h>

#include <algorithm>
#include <new>
#include <string>
#include <type_traits>

namespace viaduct::port {
namespace {

using detail::FrameStack;

// DPDK takes frames from the pool and returns them without constructors and destructors.
static_assert(std::is_trivially_destructible_v<FrameState> &&
              std::atomic<std::uint32_t>::is_always_lock_free);
static_assert(alignof(FrameState) <= RTE_MBUF_PRIV_ALIGN &&
                  sizeof(rte_mbuf) % alignof(FrameState) == 0,
              "the private area follows the mbuf");

FrameStack& stack_of(const rte_mempool* pool) {
  return *static_cast<FrameStack*>(pool->pool_data);
}

// One owner of the frame has released it. By the owner thread.
void free_locally(FrameStack& stack, rte_mbuf* f) {
  std::uint32_t& retained = frame_state(f).retained;
  if (retained != 0)
    --retained;
  else
    stack.free.push_back(f);  // allocates nothing: the capacity is the pool's size
}

// Another thread releases the frame. The first return since the owner last looked puts the frame
// into the list; further ones only count. So a frame is in the list once. Its `retained` is the
// owner thread's and is not touched. The release order makes the frame's contents and
// next_remote_freed visible to the owner together with the list's head.
void free_remotely(FrameStack& stack, rte_mbuf* f) {
  FrameState& state = frame_state(f);
  if (state.remote_frees.fetch_add(1, std::memory_order_acq_rel) != 0) return;
  state.next_remote_freed = stack.remote_freed.load(std::memory_order_relaxed);
  while (!stack.remote_freed.compare_exchange_weak(
      state.next_remote_freed, f, std::memory_order_release, std::memory_order_relaxed))
    continue;
}

// By the owner thread: takes the whole list at once (so there is no ABA problem) and counts the
// returns.
void collect_remote_frees(FrameStack& stack) {
  rte_mbuf* f = stack.remote_freed.exchange(nullptr, std::memory_order_acquire);
  while (f != nullptr) {
    FrameState& state = frame_state(f);
    // Before the exchange: from 0 on another thread may put the frame into the list again.
    rte_mbuf* const next = state.next_remote_freed;
    for (std::uint32_t n = state.remote_frees.exchange(0, std::memory_order_acq_rel); n != 0; --n)
      free_locally(stack, f);
    f = next;
  }
}

// --- initialising frames ------------------------------------------------------------------------

// The I/O address of an object: that of its memory chunk and the distance from the chunk's start.
rte_iova_t iova_of(const rte_mempool* pool, const void* object) {
  const auto at = reinterpret_cast<std::uintptr_t>(object);
  const rte_mempool_memhdr* chunk = nullptr;
  STAILQ_FOREACH(chunk, &pool->mem_list, next) {
    const auto first = reinterpret_cast<std::uintptr_t>(chunk->addr);
    if (at - first < chunk->len)
      return chunk->iova == RTE_BAD_IOVA ? RTE_BAD_IOVA : chunk->iova + (at - first);
  }
  return RTE_BAD_IOVA;
}

// What DPDK does for each object when it fills a pool, done for one frame when it is first taken.
void init_frame(rte_mempool* pool, const FrameStack& stack, rte_mbuf* f) {
  stack.obj_cb(pool, stack.obj_cb_arg, f, iova_of(pool, f));
  rte_pktmbuf_init(pool, nullptr, f, 0);
  new (&frame_state(f)) FrameState{};
}

// Initialises those of the `count` topmost free frames that are still uninitialised. The
// uninitialised frames are at the bottom of the stack, because frames that are returned are pushed
// on top of them.
void init_topmost(rte_mempool* pool, FrameStack& stack, std::size_t count) {
  while (stack.uninitialised > stack.free.size() - count) {
    init_frame(pool, stack, stack.free[stack.uninitialised - 1]);
    --stack.uninitialised;
  }
}

// --- DPDK's mempool operations -------------------------------------------------------------------

// rte_mempool_ops::alloc: the pool has no frames yet.
int pool_alloc(rte_mempool* pool) {
  auto* const stack = new (std::nothrow) FrameStack{};
  if (stack == nullptr) return -ENOMEM;
  try {
    stack->free.reserve(pool->size);
  } catch (const std::bad_alloc&) {
    delete stack;
    return -ENOMEM;
  }
  stack->owner = detail::thread_id();
  pool->pool_data = stack;
  return 0;
}

void pool_free(rte_mempool* pool) {
  delete static_cast<FrameStack*>(pool->pool_data);
}

// Frames come back: from the owner thread, from another thread, or from DPDK as it fills the pool.
int pool_enqueue(rte_mempool* pool, void* const* objects, unsigned count) {
  FrameStack& stack = stack_of(pool);
  for (unsigned i = 0; i < count; ++i) {
    auto* const f = static_cast<rte_mbuf*>(objects[i]);
    if (!stack.populated) [[unlikely]]
      stack.free.push_back(f);
    else if (stack.owner == detail::thread_id()) [[likely]]
      free_locally(stack, f);
    else
      free_remotely(stack, f);
  }
  return 0;
}

// By the owner thread only. Returns by other threads are looked for only when frames run short, so
// that the usual case has no atomic instruction.
int pool_dequeue(rte_mempool* pool, void** objects, unsigned count) {
  FrameStack& stack = stack_of(pool);
  if (stack.free.size() < stack.uninitialised + count) [[unlikely]] {
    collect_remote_frees(stack);
    if (stack.free.size() < count) return -ENOBUFS;
    init_topmost(pool, stack, count);
  }
  for (unsigned i = 0; i < count; ++i) {
    objects[i] = stack.free.back();
    stack.free.pop_back();
  }
  return 0;
}

// rte_mempool_ops::populate: DPDK offers a chunk of memory. Splits the chunk into frames as DPDK
// does, but with a callback that leaves them untouched; `obj_cb` is kept for init_frame().
int pool_populate(rte_mempool* pool, unsigned most, void* memory, rte_iova_t iova,
                  std::size_t bytes, rte_mempool_populate_obj_cb_t* obj_cb, void* obj_cb_arg) {
  FrameStack& stack = stack_of(pool);
  stack.obj_cb = obj_cb;
  stack.obj_cb_arg = obj_cb_arg;
  // DPDK counts frames in `obj_cb`, which has not been called, so it would ask for too many.
  most = std::min(most, static_cast<unsigned>(pool->size - stack.free.size()));
  const int found = rte_mempool_op_populate_default(
      pool, most, memory, iova, bytes, [](rte_mempool*, void*, void*, rte_iova_t) {}, nullptr);
  stack.uninitialised = stack.free.size();
  return found;
}

// The number of free frames; for other threads than the owner only an estimate.
unsigned pool_get_count(const rte_mempool* pool) {
  FrameStack& stack = stack_of(pool);
  if (stack.owner == detail::thread_id()) collect_remote_frees(stack);
  return static_cast<unsigned>(stack.free.size());
}

// Takes memory for all frames from the kernel. DPDK writes to all memory that it takes back, so
// every frame that was never used would be touched when the port closes: 40 MB for a moment, and a
// quarter of the time of a short ping-pong. 0 or a negative errno.
int populate_from_kernel(rte_mempool* pool) {
  std::size_t smallest = 0, alignment = 0;
  const ssize_t bytes =
      rte_mempool_op_calc_mem_size_default(pool, pool->size, 0, &smallest, &alignment);
  if (bytes < 0) return static_cast<int>(bytes);
  const auto size = static_cast<std::size_t>(bytes);
  void* const memory =
      ::mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) return -ENOMEM;
  // The devices of these pools use no I/O addresses.
  const int found = rte_mempool_populate_iova(
      pool, static_cast<char*>(memory), RTE_BAD_IOVA, size,
      [](rte_mempool_memhdr* chunk, void*) { ::munmap(chunk->addr, chunk->len); }, nullptr);
  if (found <= 0) ::munmap(memory, size);  // else the pool does, when it is freed
  if (found < 0) return found;
  return static_cast<unsigned>(found) == pool->size ? 0 : -ENOMEM;
}

// A name for the operations of this copy of the code. A process may have several copies, one in
// each driver's shared library, and each has a thread_id() of its own, so they must not share
// operations.
const std::string& operations_name() {
  static const char own = 0;
  static const std::string name =
      "viaduct_" + std::to_string(reinterpret_cast<std::uintptr_t>(&own));
  return name;
}

bool register_operations() {
  rte_mempool_ops ops{};
  operations_name().copy(ops.name, sizeof ops.name - 1);
  ops.alloc = pool_alloc;
  ops.free = pool_free;
  ops.enqueue = pool_enqueue;
  ops.dequeue = pool_dequeue;
  ops.get_count = pool_get_count;
  ops.populate = pool_populate;
  return rte_mempool_register_ops(&ops) >= 0;
}

}  // namespace

rte_mempool* create_frame_pool(const std::string& name, std::size_t frames, std::uint16_t room,
                               int socket, PoolKind kind) {
  static const bool registered = register_operations();
  if (!registered) {
    rte_errno = ENOSPC;
    return nullptr;
  }
  rte_pktmbuf_pool_private sizes{};
  sizes.mbuf_data_room_size = room;
  sizes.mbuf_priv_size = kPrivateArea;
  // Huge pages are few, and DPDK has them already.
  const bool from_kernel = kind == PoolKind::copied && rte_eal_has_hugepages() == 0;
  rte_mempool* const pool = rte_mempool_create_empty(
      name.c_str(), static_cast<unsigned>(frames),
      static_cast<unsigned>(sizeof(rte_mbuf) + kPrivateArea + room), 0, sizeof sizes, socket,
      kind == PoolKind::umem ? RTE_MEMPOOL_F_NO_SPREAD
      : from_kernel          ? RTE_MEMPOOL_F_NO_IOVA_CONTIG  // frames may lie across pages
                             : 0);
  if (pool == nullptr) return nullptr;
  rte_mempool_set_ops_byname(pool, operations_name().c_str(), nullptr);
  rte_pktmbuf_pool_init(pool, &sizes);
  const int result = from_kernel ? populate_from_kernel(pool) : rte_mempool_populate_default(pool);
  if (result < 0) {
    rte_mempool_free(pool);
    rte_errno = -result;
    return nullptr;
  }
  FrameStack& stack = stack_of(pool);
  stack.populated = true;
  if (kind == PoolKind::umem) init_topmost(pool, stack, stack.free.size());
  return pool;
}

}  // namespace viaduct::port
