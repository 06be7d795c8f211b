// A mutex of a word, for the locks of the data path: taking and giving back one that nobody else
// wants is a few instructions in place, where std::mutex takes some sixty in calls. (Mutex 2 of
// Drepper, "Futexes are tricky".)
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
  // Sequentially consistent: see WorkQueue::post_receive().
  void unlock() {
    if (state_.exchange(kFree) == kWanted) [[unlikely]]
      wake();
  }

 private:
  static constexpr std::uint32_t kFree = 0, kTaken = 1, kWanted = 2;

  // Others may be waiting too, so it stays wanted when this thread has it; and lock() may have
  // forgotten that it was.
  [[gnu::cold]] void wait() {
    while (state_.exchange(kWanted, std::memory_order_acquire) != kFree)
      state_.wait(kWanted, std::memory_order_relaxed);
  }

  [[gnu::cold]] void wake() { state_.notify_one(); }

  std::atomic<std::uint32_t> state_{kFree};
};

}  // namespace viaduct::vipl
