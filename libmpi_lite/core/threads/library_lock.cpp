// The cold half of library_lock.hpp: how threads wait for the lock.
#include "libmpi_lite/core/threads/library_lock.hpp"

#include <sched.h>

#include <chrono>
#include <utility>

#include "drivers/base/blocking_wait.hpp"
#include "libmpi_lite/core/threads/thread_signal.hpp"

namespace viaduct::mpi {
namespace {

constexpr int kSpins = 40;  // looks before a yield; some 1 to 2 us
constexpr int kYields = 4;  // before the first sleep
constexpr int kStarving = kYields + 2;
constexpr std::chrono::nanoseconds kSleep{1'000'000};

}  // namespace

bool LibraryLock::try_lock() {
  return held_.load(std::memory_order_relaxed) == 0 &&
         held_.exchange(1, std::memory_order_acquire) == 0;
}

void LibraryLock::lock_slowly() {
  contenders_.fetch_add(1);
  for (int tries = 0;; ++tries) {
    int spins = 0;
    while (spins < kSpins && !try_lock()) {
      ++spins;
      pause_cpu();
    }
    if (spins < kSpins) {
      if (tries >= kStarving) starving_.fetch_sub(1);
      break;
    }
    if (tries < kYields) {
      ::sched_yield();
      continue;
    }
    if (tries + 1 == kStarving) starving_.fetch_add(1);
    asleep_.store(1);
    futex_wait(held_, 1, kSleep);
  }
  // Those that sleep are woken one at a time.
  if (contenders_.fetch_sub(1) > 1) asleep_.store(1);
}

// Runs in the thread that has just given the lock back.
void LibraryLock::let_others() {
  if (asleep_.exchange(0) != 0) futex_wake(held_);
  constexpr int kMost = 50;  // some 50 us: the starving thread may not get a CPU
  for (int i = 0; i < kMost; ++i) {
    if (starving_.load() == 0 || held_.load(std::memory_order_relaxed) != 0) return;
    ::sched_yield();
  }
}

bool LibraryLock::lock_for_good() {
  if (owned()) return true;
  const auto until = std::chrono::steady_clock::now() + std::chrono::milliseconds(100);
  contenders_.fetch_add(1);
  while (!try_lock()) {
    if (std::chrono::steady_clock::now() > until) return false;
    ::sched_yield();
  }
  owner_.store(this_thread(), std::memory_order_relaxed);
  depth_ = 1;
  return true;
}

void LibraryLock::reset_in_child() {
  contenders_ = starving_ = asleep_ = 0;
  at_release_ = nullptr;
  if (owned()) return;  // a function of the program, called by the library, has forked
  held_ = 0;
  owner_ = 0;
  depth_ = 0;
}

void LibraryLock::give_turn() {
  if (!wanted()) return;
  const Unlocked others_turn;
  const auto taken = [] { return !wanted() || held_.load(std::memory_order_relaxed) != 0; };
  for (int i = 0; i < kSpins && !taken(); ++i) pause_cpu();
  if (!taken()) ::sched_yield();
}

unsigned LibraryLock::give_up() {
  if (!owned()) return 0;
  const unsigned depth = std::exchange(depth_, 0);
  release();
  return depth;
}

void LibraryLock::take_again(unsigned depth) {
  lock();
  depth_ = depth;
}

void LibraryLock::set_shared(bool shared) {
  shared_ = shared;
  shared ? base::BlockingWait::set(give_up, take_again) : base::BlockingWait::set(nullptr, nullptr);
}

}  // namespace viaduct::mpi
