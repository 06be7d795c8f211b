// OwnProgress: a NIC that its program drives (VipNicOwnProgress). It has no thread of the library;
// its work is done in looks, which VipNicProgress, VipNicArm and functions that block take.
//
// VipNicProgress is called in every turn of a program's polling loop. So it costs a look-up and a
// read of the processor's time-stamp counter (TSC) as long as the last look is not long ago, and
// only then makes a system call:
//
//            |<-- interval -->|
//   look ----x-x-x-x-x-x-x-x-x-x---- look       x: VipNicProgress returns at once
//
// The interval is kShortest, or kShare times what a look that finds nothing costs here, if that is
// longer: so looking takes a few percent of a program's time at most, whatever a system call costs.
// For a moment after a look that found work it is a tenth of that, because the next message of the
// same connection is on its way. hurry() ends it.
//
// Owned by Nic. Any thread may call any function.
#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <mutex>

#include "libvipl/connection/socket/deadline.hpp"
#include "libvipl/core/slot_table.hpp"

namespace viaduct::vipl {

class OwnProgress {
 public:
  // What a look has found: `more`: another one should follow at once.
  enum class Found { nothing, work, more };
  // Does all that is ready and due, and never blocks.
  using Look = std::function<Found()>;

  // `fd` is readable when a look has work to do.
  OwnProgress(Handle nic, int fd, Look look);
  ~OwnProgress();
  OwnProgress(const OwnProgress&) = delete;
  OwnProgress& operator=(const OwnProgress&) = delete;

  // Whether the NIC is one that its program drives, and nothing is due yet. False is no promise.
  static bool is_early(Handle nic) {
    const Last& last = last_of(nic);
    return last.nic.load(std::memory_order_acquire) == nic &&
           ticks() - last.at.load(std::memory_order_relaxed) <
               last.interval.load(std::memory_order_relaxed);
  }
  // Takes a look, unless another thread is taking one.
  void look();
  // The next call of VipNicProgress is to take a look. Any lock may be held.
  void hurry();
  // Drive (deadline.hpp): sleeps until there is work, and takes a look.
  void sleep(Deadline deadline);
  // The shortest time between two looks, in ticks, given that `ticks` passed in `time`. If the
  // counter was set back, as a machine that was suspended does, `ticks` is huge and says nothing.
  static std::uint64_t shortest_interval(std::uint64_t ticks, std::chrono::nanoseconds time);

 private:
  // The last look of a NIC. The entry of a handle is found without a lock. A NIC whose entry is
  // another's does without: then each call takes a look.
  struct Last {
    std::atomic<Handle> nic;
    std::atomic<std::uint64_t> at, interval;  // in ticks
  };
  // The shortest time between two looks, in nanoseconds: a connection waits for one on both sides,
  // and takes longer.
  static constexpr std::uint64_t kShortest = 50'000;
  static constexpr std::size_t kEntries = 64;

  static Last& last_of(Handle nic) { return last_[(nic >> kUseShift) % kEntries]; }
  // A counter that needs no system call to read, unlike the clock on some virtual machines. If it
  // goes backwards, the difference is huge and the next look early.
  static std::uint64_t ticks() {
#if defined(__x86_64__)
    return __builtin_ia32_rdtsc();
#else
    return static_cast<std::uint64_t>(Clock::now().time_since_epoch().count());
#endif
  }
  void look_locked();

  inline static constinit std::array<Last, kEntries> last_{};

  const Handle nic_;
  const int fd_;
  const Look look_;
  std::mutex mutex_;                                 // of one look at a time
  std::uint64_t found_work_ = 0;                     // when, in ticks
  std::uint64_t cheapest_ = std::uint64_t{1} << 40;  // look so far, in ticks
  std::uint64_t shortest_ = kShortest;  // time between two looks, in ticks, when last compared
  unsigned looks_ = 0;
  // Where the ticks and the clock began, which gives the length of a tick.
  const std::uint64_t first_ticks_ = ticks();
  const Clock::time_point first_time_ = Clock::now();
};

}  // namespace viaduct::vipl
