// The clock of all measurements: the CPU's time-stamp counter (TSC), read without a system call. It
// does not need EAL, so kernel layers and ethdev layers are measured with the same clock. The TSC
// must be constant and must not stop (viaduct-info looks).
#pragma once

#include <rte_cycles.h>

#include <chrono>
#include <cstdint>

namespace viaduct::pingpong {

// The time in ticks of the TSC, since some start.
inline std::uint64_t ticks() {
  return rte_rdtsc();
}

// Measured against CLOCK_MONOTONIC at the first call, which takes 20 ms. main() makes that call
// before it measures anything.
double nanoseconds_per_tick();

inline double to_nanoseconds(std::uint64_t t) {
  return static_cast<double>(t) * nanoseconds_per_tick();
}
inline std::uint64_t to_ticks(std::chrono::nanoseconds d) {
  return static_cast<std::uint64_t>(static_cast<double>(d.count()) / nanoseconds_per_tick());
}

}  // namespace viaduct::pingpong
