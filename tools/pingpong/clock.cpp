// Calibrates the time-stamp counter (clock.hpp).
#include "tools/pingpong/clock.hpp"

namespace viaduct::pingpong {

namespace {

// The counter is read right after the clock at both ends, so the error is one reading of the clock
// in 20 ms.
double calibrate() {
  using Clock = std::chrono::steady_clock;
  const auto start = Clock::now();
  const std::uint64_t first = ticks();
  Clock::time_point end;
  do end = Clock::now();
  while (end - start < std::chrono::milliseconds{20});
  const std::uint64_t last = ticks();
  return std::chrono::duration<double, std::nano>(end - start).count() /
         static_cast<double>(last - first);
}

}  // namespace

double nanoseconds_per_tick() {
  static const double value = calibrate();
  return value;
}

}  // namespace viaduct::pingpong
