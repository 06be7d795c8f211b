// Keeps spin loops from spinning for ever, and lets signals end them. A loop asks its Watch now and
// then whether to go on.
#pragma once

#include <signal.h>

#include <atomic>
#include <chrono>

#include "tools/pingpong/clock.hpp"
#include "tools/pingpong/error.hpp"

namespace viaduct::pingpong {

// Set by the signals that ask this process to stop; a signal handler and the measuring thread share
// it.
extern std::atomic<bool> interrupted;
// SIGINT, SIGTERM, and SIGHUP unless it was ignored when this process was started, as under nohup.
const sigset_t& interrupts();
// From now on those signals set `interrupted`.
void catch_interrupts();

// A deadline that moves with progress: patience runs out after so much time without any. Starts
// with the first look(), not with construction.
class Watch {
 public:
  explicit Watch(std::chrono::nanoseconds patience) : patience_(to_ticks(patience)) {}

  // One turn of a loop without progress: true when it is time to look(). Polling an empty ring
  // takes less time than reading the clock, so the clock is read every 256 turns only.
  bool due() { return (++spins_ & kMask) == 0; }
  // False when patience has run out. Throws Interrupted if a signal has come.
  bool look() {
    if (interrupted.load(std::memory_order_relaxed)) throw Interrupted{};
    if (deadline_ == 0) deadline_ = ticks() + patience_;
    return ticks() < deadline_;
  }
  // due() and look() in one: false when patience has run out.
  bool spin() { return !due() || look(); }
  // Something happened: patience begins anew.
  void progress() { deadline_ = 0; }

 private:
  static constexpr std::uint32_t kMask = 0xff;

  std::uint64_t patience_;      // ticks
  std::uint64_t deadline_ = 0;  // ticks; 0: set at the next look
  std::uint32_t spins_ = 0;
};

}  // namespace viaduct::pingpong
