// Keeps spin loops from spinning for ever: they ask it now and then whether to go on.
#pragma once

#include <signal.h>

#include <atomic>
#include <chrono>

#include "tools/pingpong/clock.hpp"
#include "tools/pingpong/error.hpp"

namespace viaduct::pingpong {

// Set by the signals that ask us to stop.
extern std::atomic<bool> interrupted;
// SIGINT, SIGTERM, and SIGHUP unless it was ignored when we were started, as under nohup.
const sigset_t& interrupts();
// From now on those signals set `interrupted`.
void catch_interrupts();

class Watch {
 public:
  explicit Watch(std::chrono::nanoseconds patience) : patience_(to_ticks(patience)) {}

  // One turn of a loop without progress: true when it is time to look(). Polling an empty ring
  // takes less time than reading the clock, so that is done every few turns only.
  bool due() { return (++spins_ & kMask) == 0; }
  // False when patience has run out. Throws Interrupted.
  bool look() {
    if (interrupted.load(std::memory_order_relaxed)) throw Interrupted{};
    if (deadline_ == 0) deadline_ = ticks() + patience_;
    return ticks() < deadline_;
  }
  bool spin() { return !due() || look(); }
  void progress() { deadline_ = 0; }

 private:
  static constexpr std::uint32_t kMask = 0xff;

  std::uint64_t patience_;
  std::uint64_t deadline_ = 0;  // set at the first look after progress
  std::uint32_t spins_ = 0;
};

}  // namespace viaduct::pingpong
