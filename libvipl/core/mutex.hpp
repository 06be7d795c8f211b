// Mutex: a lock of one word for the data path. Taking and releasing it without contention is a few
// inlined instructions; std::mutex needs some sixty, in calls. It is "mutex2" of Ulrich Drepper,
// "Futexes Are Tricky", on std::atomic::wait.
//
// Not recursive and not fair. Works with std::lock_guard and std::unique_lock.
#pragma once

#include <atomic>
#include <cstdint>

namespace viaduct::vipl {

class Mutex {
 public:
  void lock() {
    if (state_.exchange(kTaken, std::memory_order_acquire) != kFree) [[unlikely]]
      wait();
  }
  bool try_lock() {
    std::uint32_t free = kFree;
    return state_.compare_exchange_strong(free, kTaken, std::memory_order_acquire);
  }
  // Sequentially consistent, because it is also the barrier between posting a receive and looking
  // at the VI's state, see WorkQueue::post_receive().
  void unlock() {
    if (state_.exchange(kFree) == kWanted) [[unlikely]]
      wake();
  }

 private:
  // kWanted: taken, and a thread may be asleep waiting for it.
  static constexpr std::uint32_t kFree = 0, kTaken = 1, kWanted = 2;

  // The word becomes kWanted, not kTaken, when this thread gets the lock: other threads may be
  // asleep too, and lock() may have overwritten their kWanted with kTaken. The price is a wake-up
  // too many.
  [[gnu::cold]] void wait() {
    while (state_.exchange(kWanted, std::memory_order_acquire) != kFree)
      state_.wait(kWanted, std::memory_order_relaxed);
  }

  [[gnu::cold]] void wake() { state_.notify_one(); }

  std::atomic<std::uint32_t> state_{kFree};
};

}  // namespace viaduct::vipl
