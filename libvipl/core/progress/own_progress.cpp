// When a NIC that its program drives is looked at. nic.cpp says what a look does.
#include "libvipl/core/progress/own_progress.hpp"

#include <poll.h>

#include <algorithm>
#include <utility>

namespace viaduct::vipl {
namespace {

// How many times the cost of a look that finds nothing lies between two of them; and the longest
// time, in shortest intervals.
constexpr std::uint64_t kShare = 50, kLongest = 20;
// How much more often, and for how many shortest intervals, after a look that found work.
constexpr std::uint64_t kOften = 10, kMoment = 20;
// Before that, ticks and clock have not run for long enough to be compared. A tick is taken for a
// nanosecond then, which makes looks too frequent on faster counters.
constexpr auto kComparable = std::chrono::milliseconds(1);
// Looks between two comparisons of ticks and clock. Reading the clock is a system call on some
// virtual machines, as dear as the look itself.
constexpr unsigned kCompareEvery = 256;
// More ticks in a nanosecond than any processor's counter has.
constexpr double kTooFast = 16;
// How long a blocked function sleeps at a time. Another thread may have done the work it waits for.
constexpr auto kLongestSleep = std::chrono::milliseconds(10);

}  // namespace

OwnProgress::OwnProgress(Handle nic, int fd, Look look)
    : nic_(nic), fd_(fd), look_(std::move(look)) {
  Handle nobody = 0;
  Last& last = last_of(nic_);
  last.nic.compare_exchange_strong(nobody, nic_);
}

OwnProgress::~OwnProgress() {
  Last& last = last_of(nic_);
  if (last.nic != nic_) return;
  last.interval = 0;
  last.nic = 0;
}

void OwnProgress::look() {
  const std::unique_lock lock(mutex_, std::try_to_lock);
  if (lock) look_locked();
}

void OwnProgress::look_locked() {
  const std::uint64_t began = ticks();
  Last& last = last_of(nic_);
  const bool has_entry = last.nic == nic_;
  if (looks_++ % kCompareEvery == 0 || shortest_ == kShortest)
    shortest_ = shortest_interval(began - first_ticks_, Clock::now() - first_time_);
  const std::uint64_t shortest = shortest_;
  // Before the look: a hurry() from here on counts.
  if (has_entry) last.interval = shortest;
  const Found found = look_();
  if (!has_entry) return;
  const std::uint64_t ended = ticks();
  cheapest_ = std::min(cheapest_, ended - began);
  if (found != Found::nothing) found_work_ = ended;
  std::uint64_t wanted = std::clamp(kShare * cheapest_, shortest, kLongest * shortest);
  if (found == Found::more)
    wanted = 0;
  else if (ended - found_work_ < kMoment * shortest)
    wanted /= kOften;
  std::uint64_t expected = shortest;
  last.interval.compare_exchange_strong(expected, wanted);
  last.at = ended;
}

std::uint64_t OwnProgress::shortest_interval(std::uint64_t ticks, std::chrono::nanoseconds time) {
  if (time < kComparable) return kShortest;
  const double ticks_of_one = static_cast<double>(ticks) / static_cast<double>(time.count());
  if (ticks_of_one > kTooFast) return kShortest;
  return static_cast<std::uint64_t>(ticks_of_one * static_cast<double>(kShortest));
}

void OwnProgress::hurry() {
  if (Last& last = last_of(nic_); last.nic == nic_) last.interval = 0;
}

void OwnProgress::sleep(Deadline deadline) {
  std::chrono::milliseconds longest = kLongestSleep;
  if (deadline)
    longest = std::clamp(std::chrono::ceil<std::chrono::milliseconds>(*deadline - Clock::now()),
                         std::chrono::milliseconds(0), longest);
  pollfd ready{fd_, POLLIN, 0};
  ::poll(&ready, 1, static_cast<int>(longest.count()));
  const std::lock_guard lock(mutex_);
  look_locked();
}

}  // namespace viaduct::vipl
