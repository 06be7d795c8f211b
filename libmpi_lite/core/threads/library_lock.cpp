// The cold half of library_lock.hpp: how threads wait for the lock.
#include "libmpi_lite/core/threads/library_lock.hpp"

#include <linux/membarrier.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <chrono>
#include <thread>
#include <utility>

#include "drivers/base/blocking_wait.hpp"
#include "libmpi_lite/core/threads/thread_signal.hpp"

namespace viaduct::mpi {
namespace {

constexpr int kSpins = 40;  // looks before a yield; some 1 to 2 us
constexpr int kYields = 4;  // before the first sleep
constexpr int kStarving = kYields + 2;
constexpr std::chrono::nanoseconds kSleep{1'000'000};
constexpr std::chrono::milliseconds kPatienceAtTheEnd{100};

bool membarrier(int command) {
  return ::syscall(SYS_membarrier, command, 0, 0) == 0;
}

}  // namespace

bool LibraryLock::try_lock() {
  return held_.load(std::memory_order_relaxed) == 0 &&
         held_.exchange(1, std::memory_order_acquire) == 0;
}

void LibraryLock::lock_unbiased() {
  if (held_.exchange(1, std::memory_order_acquire) != 0) [[unlikely]]
    wait_for_held();
  if (biased_to_.load(std::memory_order_relaxed) != 0) [[unlikely]]
    revoke_bias();
  owner_.store(this_thread(), std::memory_order_relaxed);
  depth_ = 1;
}

void LibraryLock::wait_for_held() {
  contenders_.fetch_add(1);
  for (int tries = 0;; ++tries) {
    int spins = 0;
    while (spins < kSpins && !try_lock()) {
      ++spins;
      pause_cpu();
    }
    if (spins < kSpins) {
      if (tries >= kStarving) in_need_.fetch_sub(1);
      break;
    }
    if (tries < kYields) {
      ::sched_yield();
      continue;
    }
    if (tries + 1 == kStarving) in_need_.fetch_add(1);
    in_need_.fetch_or(kAsleep);
    futex_wait(held_, 1, kSleep);
  }
  // Those that sleep are woken one at a time.
  if (contenders_.fetch_sub(1) > 1) in_need_.fetch_or(kAsleep);
}

// Runs in the thread that has just given the lock back.
void LibraryLock::let_others() {
  if ((in_need_.fetch_and(~kAsleep) & kAsleep) != 0) futex_wake(held_);
  constexpr int kMost = 50;  // some 50 us: the starving thread may not get a CPU
  for (int i = 0; i < kMost; ++i) {
    if ((in_need_.load() & ~kAsleep) == 0 || held_.load(std::memory_order_relaxed) != 0) return;
    ::sched_yield();
  }
}

bool LibraryLock::revoke_bias(bool patient) {
  // After the barrier the other thread sees that there is no bias, or this one sees its flag.
  biased_to_.store(0);
  membarrier(MEMBARRIER_CMD_PRIVATE_EXPEDITED);
  const auto until = std::chrono::steady_clock::now() + kPatienceAtTheEnd;
  contenders_.fetch_add(1);
  bool free;
  for (int tries = 0; !(free = !biased_held_.load(std::memory_order_acquire)); ++tries) {
    if (!patient && std::chrono::steady_clock::now() > until) break;
    if (tries < kYields)
      ::sched_yield();
    else  // once in a process
      std::this_thread::sleep_for(std::chrono::microseconds(50));
  }
  contenders_.fetch_sub(1);
  return free;
}

bool LibraryLock::lock_for_good() {
  if (owned()) return true;
  const auto until = std::chrono::steady_clock::now() + kPatienceAtTheEnd;
  contenders_.fetch_add(1);
  while (!try_lock()) {
    if (std::chrono::steady_clock::now() > until) return false;
    ::sched_yield();
  }
  if (!revoke_bias(false)) return false;
  owner_.store(this_thread(), std::memory_order_relaxed);
  depth_ = 1;
  return true;
}

void LibraryLock::reset_in_child() {
  contenders_ = in_need_ = 0;
  at_release_ = nullptr;
  biased_to_ = 0;
  // Otherwise a function of the program, called by the library, has forked. Another thread may have
  // held_ and wait for this one.
  if (owned()) {
    held_ = biased_held_ ? 0 : 1;
    return;
  }
  biased_held_ = false;
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

// Only who has held_ may bias the lock: others look for a bias when they have it. It stays when the
// lock is not shared any more, as functions that are allowed at any time still take it. Where the
// kernel has no such barrier, or a sandbox denies it, there is no bias.
void LibraryLock::set_shared(bool shared) {
  if (shared && owned() && !biased_held_ && membarrier(MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED))
    biased_to_ = this_thread();
  shared_ = shared;
  shared ? base::BlockingWait::set(give_up, take_again) : base::BlockingWait::set(nullptr, nullptr);
}

}  // namespace viaduct::mpi
