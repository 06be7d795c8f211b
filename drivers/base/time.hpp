// The types of time. The link and the drivers take the time as an argument of each entry point and
// never read a clock, so that the same code runs on a TSC and on a simulated clock.
#pragma once

#include <chrono>
#include <string>

#include "drivers/base/cxx20.hpp"

namespace viaduct::base {

using Duration = std::chrono::nanoseconds;

// A monotonic clock without now(), which gives Time a type of its own: a Time cannot be mixed up
// with a time point of another clock. The zero point means nothing; only differences do.
struct Clock {
  using duration = Duration;
  using rep = duration::rep;
  using period = duration::period;
  using time_point = std::chrono::time_point<Clock>;
  static constexpr bool is_steady = true;
};
using Time = Clock::time_point;

// A span with a fitting unit, for people: "850 ns", "12.3 us", "61.0 s".
std::string text(Duration span);

}  // namespace viaduct::base
