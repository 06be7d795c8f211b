// Timeouts of VIPL functions as points in time of a clock that is never set back, and what a
// blocked function does meanwhile.
#pragma once

#include <chrono>
#include <functional>
#include <optional>

#include <vipl.h>

namespace viaduct::vipl {

using Clock = std::chrono::steady_clock;
using Deadline = std::optional<Clock::time_point>;  // nullopt: never

// On a NIC that its program drives, no thread of the library does what a blocked function waits
// for. So that function calls this again and again: it sleeps until there is work for the NIC, not
// beyond the deadline and never for long, and does it. The caller must hold no lock. Throws
// nothing. Empty: the library's threads do it.
using Drive = std::function<void(Deadline)>;

// The deadline that is `milliseconds` from now. Programs write VIP_INFINITE as 32 or as 64
// one-bits, depending on the header they were written for, and both mean no deadline. More than a
// century would overflow the clock, and means no deadline too.
inline Deadline deadline_after(VIP_ULONG milliseconds) {
  constexpr VIP_ULONG kCentury = VIP_ULONG{100} * 366 * 24 * 3600 * 1000;
  if (milliseconds == 0xffffffff || milliseconds > kCentury) return std::nullopt;
  return Clock::now() + std::chrono::milliseconds(milliseconds);
}

}  // namespace viaduct::vipl
