// Timeouts of programs as points in time.
#pragma once

#include <chrono>
#include <optional>

#include <vipl.h>

namespace viaduct::vipl {

using Clock = std::chrono::steady_clock;
using Deadline = std::optional<Clock::time_point>;  // nullopt: never

// Milliseconds from now. Programs write "for ever" as 32 or as 64 one-bits, whatever their header
// had; what would overflow the clock is for ever too.
inline Deadline deadline_after(VIP_ULONG milliseconds) {
  constexpr VIP_ULONG kCentury = VIP_ULONG{100} * 366 * 24 * 3600 * 1000;
  if (milliseconds == 0xffffffff || milliseconds > kCentury) return std::nullopt;
  return Clock::now() + std::chrono::milliseconds(milliseconds);
}

}  // namespace viaduct::vipl
