#include "drivers/link/frame_pool.hpp"

#include <rte_errno.h>
#include <rte_mempool.h>

#include <cstring>
#include <new>
#include <type_traits>

namespace viaduct::link {
namespace {

using detail::FrameStack;

// DPDK puts a frame's data right behind the private area, and takes frames from the pool and
// returns them without constructors.
static_assert(std::is_trivially_destructible_v<FrameState> &&
              std::atomic<std::uint32_t>::is_always_lock_free);
static_assert(alignof(FrameState) <= RTE_MBUF_PRIV_ALIGN &&
                  sizeof(rte_mbuf) % alignof(FrameState) == 0,
              "the private area follows the mbuf");

constexpr const char* kOps = "viaduct";

FrameStack& stack_of(const rte_mempool* pool) {
  return *static_cast<FrameStack*>(pool->pool_data);
}

void give_back(FrameStack& stack, rte_mbuf* f) {
  std::uint32_t& retained = frame_state(f).retained;
  if (retained != 0)
    --retained;
  else
    stack.free.push_back(f);  // its capacity is the pool's size
}

// A frame is in the list once, however often it was returned.
void abandon(FrameStack& stack, rte_mbuf* f) {
  FrameState& state = frame_state(f);
  if (state.abandoned.fetch_add(1, std::memory_order_acq_rel) != 0) return;
  state.next_abandoned = stack.abandoned.load(std::memory_order_relaxed);
  while (!stack.abandoned.compare_exchange_weak(state.next_abandoned, f, std::memory_order_release,
                                                std::memory_order_relaxed))
    continue;
}

void collect_abandoned(FrameStack& stack) {
  rte_mbuf* f = stack.abandoned.exchange(nullptr, std::memory_order_acquire);
  while (f != nullptr) {
    FrameState& state = frame_state(f);
    rte_mbuf* const next = state.next_abandoned;  // before it can be put into the list again
    for (std::uint32_t n = state.abandoned.exchange(0, std::memory_order_acq_rel); n != 0; --n)
      give_back(stack, f);
    f = next;
  }
}

// --- DPDK's mempool operations -------------------------------------------------------------------

int start(rte_mempool* pool) {
  auto* const stack = new (std::nothrow) FrameStack{};
  if (stack == nullptr) return -ENOMEM;
  try {
    stack->free.reserve(pool->size);
  } catch (const std::bad_alloc&) {
    delete stack;
    return -ENOMEM;
  }
  stack->owner = detail::thread_mark();
  pool->pool_data = stack;
  return 0;
}

void stop(rte_mempool* pool) {
  delete static_cast<FrameStack*>(pool->pool_data);
}

int enqueue(rte_mempool* pool, void* const* objects, unsigned count) {
  FrameStack& stack = stack_of(pool);
  for (unsigned i = 0; i < count; ++i) {
    auto* const f = static_cast<rte_mbuf*>(objects[i]);
    if (!stack.counting) [[unlikely]]
      stack.free.push_back(f);
    else if (stack.owner == detail::thread_mark()) [[likely]]
      give_back(stack, f);
    else
      abandon(stack, f);
  }
  return 0;
}

int dequeue(rte_mempool* pool, void** objects, unsigned count) {
  FrameStack& stack = stack_of(pool);
  if (stack.free.size() < count) [[unlikely]] {
    collect_abandoned(stack);
    if (stack.free.size() < count) return -ENOBUFS;
  }
  for (unsigned i = 0; i < count; ++i) {
    objects[i] = stack.free.back();
    stack.free.pop_back();
  }
  return 0;
}

// To other threads than the owner only a snapshot.
unsigned available(const rte_mempool* pool) {
  FrameStack& stack = stack_of(pool);
  if (stack.owner == detail::thread_mark()) collect_abandoned(stack);
  return static_cast<unsigned>(stack.free.size());
}

bool register_operations() {
  rte_mempool_ops ops{};
  std::strcpy(ops.name, kOps);
  ops.alloc = start;
  ops.free = stop;
  ops.enqueue = enqueue;
  ops.dequeue = dequeue;
  ops.get_count = available;
  return rte_mempool_register_ops(&ops) >= 0;
}

}  // namespace

rte_mempool* create_frame_pool(const std::string& name, std::size_t frames, std::uint16_t room,
                               int socket, Spread spread) {
  static const bool registered = register_operations();
  if (!registered) {
    rte_errno = ENOSPC;
    return nullptr;
  }
  rte_pktmbuf_pool_private sizes{};
  sizes.mbuf_data_room_size = room;
  sizes.mbuf_priv_size = kPrivateArea;
  rte_mempool* const pool = rte_mempool_create_empty(
      name.c_str(), static_cast<unsigned>(frames),
      static_cast<unsigned>(sizeof(rte_mbuf) + kPrivateArea + room), 0, sizeof sizes, socket,
      spread == Spread::channels ? 0 : RTE_MEMPOOL_F_NO_SPREAD);
  if (pool == nullptr) return nullptr;
  rte_mempool_set_ops_byname(pool, kOps, nullptr);
  rte_pktmbuf_pool_init(pool, &sizes);
  if (const int result = rte_mempool_populate_default(pool); result < 0) {
    rte_mempool_free(pool);
    rte_errno = -result;
    return nullptr;
  }
  rte_mempool_obj_iter(pool, rte_pktmbuf_init, nullptr);
  for (rte_mbuf* f : stack_of(pool).free) new (&frame_state(f)) FrameState{};
  stack_of(pool).counting = true;
  return pool;
}

}  // namespace viaduct::link
