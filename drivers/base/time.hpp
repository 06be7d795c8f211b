// Time: an argument of every entry point below the drivers, never read inside, so that the same
// code runs on a TSC and on a simulated clock.
#pragma once

#include <chrono>
#include <string>

#include "drivers/base/cxx20.hpp"

namespace viaduct::base {

using Duration = std::chrono::nanoseconds;

// A monotonic clock without now(). The zero point means nothing; only differences do.
struct Clock {
  using duration = Duration;
  using rep = duration::rep;
  using period = duration::period;
  using time_point = std::chrono::time_point<Clock>;
  static constexpr bool is_steady = true;
};
using Time = Clock::time_point;

// As people read it: "850 ns", "12.3 us", "61.0 s".
std::string text(Duration span);

}  // namespace viaduct::base
