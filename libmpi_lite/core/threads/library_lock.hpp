// The lock of the whole library, which lets several threads call MPI at the same time
// (MPI_THREAD_MULTIPLE, or a progress thread). Each MPI function takes it first and gives it back
// last (class Entry in api/call.hpp); wait.cpp gives it up whenever a waiting thread sleeps or
// yields, and between polls when another thread wants it. So below api/ one thread at a time is in
// the library, whatever the thread level, and nothing there locks.
//
// With a lower level, and without a progress thread, shared() is false and calls take no lock.
//
// One lock and not several, nor a queue of work for one owner: a short message takes little time in
// the library, less than to hand it from one CPU's cache to another's.
//
// As long as a single thread calls MPI, which is so for many programs that ask for
// MPI_THREAD_MULTIPLE, the lock is biased to it (biased locking): it takes the lock without an
// atomic instruction, by a flag of its own, biased_held_, which it sets before it looks a second
// time whether the bias is still there. The first other thread, when it has taken held_, revokes
// the bias for good: it says that there is none, makes that visible to all CPUs and theirs visible
// to it (membarrier(2)), and waits until the flag is cleared.
//
// A thread that finds the lock taken spins for a microsecond or two, yields, then sleeps. The
// thread that gives the lock back wakes a sleeper, but does not keep the lock for it: whoever runs
// takes it. A thread that has waited in vain for long is starving, and then whoever gives the lock
// back waits until it has been taken.
#pragma once

#include <atomic>
#include <cstdint>

namespace viaduct::mpi {

class LibraryLock {
 public:
  // Whether calls have to take the lock. Changes only where a single thread is in MPI, at its
  // beginning and its end. When it becomes shared, it is biased to its owner.
  static bool shared() { return shared_.load(std::memory_order_relaxed); }
  static void set_shared(bool shared);

  // The owner may lock again: functions of the program that the library calls may call MPI.
  static void lock() {
    const std::uintptr_t me = this_thread();
    if (owner_.load(std::memory_order_relaxed) == me) {
      ++depth_;
      return;
    }
    if (!try_lock_biased(me)) return lock_unbiased();
    owner_.store(me, std::memory_order_relaxed);
    depth_ = 1;
  }
  static void unlock() {
    if (--depth_ == 0) release();
  }
  // For a thread that may not own it.
  static void unlock_if_owned() {
    if (owned()) unlock();
  }
  static bool owned() { return owner_.load(std::memory_order_relaxed) == this_thread(); }
  // What the owner does each time that it gives the lock up, while it still owns it; nullptr:
  // nothing. To be set by the owner.
  static void set_at_release(void (*at_release)()) { at_release_ = at_release; }
  // Another thread waits for the lock.
  static bool wanted() { return contenders_.load(std::memory_order_relaxed) != 0; }
  // Lets a thread that waits for the lock have it in between. It may not run just now; then the
  // caller goes on after a few microseconds. The owner, who polls, calls this between polls.
  static void give_turn();
  // At the end of the process: takes the lock unless some thread keeps it for 100 ms.
  static bool lock_for_good();
  // In a child after fork(), where only the thread that has forked is left.
  static void reset_in_child();

  // While one of these lives, the thread does not own the lock, however often it has locked it.
  // Does nothing in a thread that does not own the lock, or where none is taken.
  class Unlocked {
   public:
    Unlocked() : depth_(shared() ? give_up() : 0) {}
    ~Unlocked() {
      if (depth_ != 0) take_again(depth_);
    }
    Unlocked(const Unlocked&) = delete;
    Unlocked& operator=(const Unlocked&) = delete;

   private:
    const unsigned depth_;
  };

 private:
  // A number that each thread has for itself: the address of a variable, which takes an
  // instruction or two.
  static std::uintptr_t this_thread() { return reinterpret_cast<std::uintptr_t>(&mark_); }
  // The flag is set before the second look. The fence holds the compiler to that; the CPU may look
  // first, which revoke_bias() allows for.
  static bool try_lock_biased(std::uintptr_t me) {
    if (biased_to_.load(std::memory_order_relaxed) != me) [[unlikely]]
      return false;
    biased_held_.store(true, std::memory_order_relaxed);
    std::atomic_signal_fence(std::memory_order_seq_cst);
    if (biased_to_.load(std::memory_order_relaxed) == me) [[likely]]
      return true;
    biased_held_.store(false, std::memory_order_release);
    return false;
  }
  // A plain store gives the lock back. It may become visible after the load that looks for
  // sleepers; a thread that goes to sleep has announced itself a microsecond before, and sleeps for
  // a limited time, so a wake-up that is missed delays it and no more.
  static void release() {
    if (at_release_ != nullptr) [[unlikely]]
      at_release_();
    owner_.store(0, std::memory_order_relaxed);
    if (biased_held_.load(std::memory_order_relaxed))
      biased_held_.store(false, std::memory_order_release);  // by the bias; held_ is not taken
    else
      held_.store(0, std::memory_order_release);
    if (in_need_.load(std::memory_order_relaxed) != 0) [[unlikely]]
      let_others();
  }
  static void lock_unbiased();
  static void wait_for_held();
  // In a thread that has just taken held_. `patient`: waits without end until the other thread has
  // left; else for 100 ms, and returns whether it has.
  static bool revoke_bias(bool patient = true);
  static bool try_lock();
  static void let_others();
  static unsigned give_up();  // the depth; 0: this thread does not own the lock
  static void take_again(unsigned depth);

  static inline constinit thread_local char mark_ [[gnu::tls_model("initial-exec")]] = 0;
  static inline std::atomic<bool> shared_ = false;
  static inline unsigned depth_ = 0;  // of the owner's locks
  static inline void (*at_release_)() = nullptr;
  alignas(64) static inline std::atomic<std::uint32_t> held_ = 0;
  static inline std::atomic<std::uintptr_t> owner_ = 0;
  static inline std::atomic<std::uintptr_t> biased_to_ = 0;  // a thread; 0: there is none
  static inline std::atomic<bool> biased_held_ = false;      // that thread owns the lock
  // The number of threads that starve, and kAsleep: a thread may sleep until held_ is 0.
  static constexpr std::uint32_t kAsleep = 1u << 31;
  static inline std::atomic<std::uint32_t> in_need_ = 0;
  static inline std::atomic<std::uint32_t> contenders_ = 0;  // threads that wait for the lock
};

}  // namespace viaduct::mpi
