// Timeouts of VIPL functions as points in time of a clock that is never set back.
#pragma once

#include <chrono>
#include <optional>

#include <vipl.h>

namespace viaduct::vipl {

using Clock = std::chrono::steady_clock;
using Deadline = std::optional<Clock::time_point>;  // nullopt: never

// The deadline that is `milliseconds` from now. Programs write VIP_INFINITE as 32 or as 64
// one-bits, depending on the header they were written for, and both mean no deadline. More than a
// century would overflow the clock, and means no deadline too.
inline Deadline deadline_after(VIP_ULONG milliseconds) {
  constexpr VIP_ULONG kCentury = VIP_ULONG{100} * 366 * 24 * 3600 * 1000;
  if (milliseconds == 0xffffffff || milliseconds > kCentury) return std::nullopt;
  return Clock::now() + std::chrono::milliseconds(milliseconds);
}

}  // namespace viaduct::vipl
