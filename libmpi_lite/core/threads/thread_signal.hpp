// What threads of the process wait on: a futex, and a signal made of one.
#pragma once

#include <linux/futex.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdint>

namespace viaduct::mpi {

inline void pause_cpu() {
#if defined(__x86_64__) || defined(__i386__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

// Sleeps as long as `word` has that value, until futex_wake(), or for that time (below 1 s). May
// return for no reason.
inline void futex_wait(std::atomic<std::uint32_t>& word, std::uint32_t value,
                       std::chrono::nanoseconds most) {
  const timespec limit{0, most.count()};
  ::syscall(SYS_futex, &word, FUTEX_WAIT_PRIVATE, value, &limit, nullptr, 0);
}
inline void futex_wake(std::atomic<std::uint32_t>& word) {  // one thread
  ::syscall(SYS_futex, &word, FUTEX_WAKE_PRIVATE, 1, nullptr, nullptr, 0);
}

// One thread waits for it, others give it. A given signal stays given until clear().
class ThreadSignal {
 public:
  void give() {
    if (state_.exchange(kGiven) == kAsleep) futex_wake(state_);
  }
  bool given() const { return state_.load(std::memory_order_acquire) == kGiven; }
  void clear() { state_.store(kClear, std::memory_order_relaxed); }
  // Spins so many times, then sleeps for that time at most. Whether the signal was given.
  bool wait(int spins, std::chrono::nanoseconds most) {
    for (int i = 0; i < spins; ++i) {
      if (given()) return true;
      pause_cpu();
    }
    std::uint32_t expected = kClear;
    if (!state_.compare_exchange_strong(expected, kAsleep)) return true;
    futex_wait(state_, kAsleep, most);
    expected = kAsleep;
    return !state_.compare_exchange_strong(expected, kClear);
  }

 private:
  enum : std::uint32_t { kClear, kGiven, kAsleep };
  std::atomic<std::uint32_t> state_ = kClear;
};

}  // namespace viaduct::mpi
