// The clock of all measurements: the CPU's time-stamp counter, read without a system call. It does
// not need EAL, so that kernel layers and ethdev layers are measured with the same clock.
#pragma once

#include <rte_cycles.h>

#include <chrono>
#include <cstdint>

namespace viaduct::pingpong {

inline std::uint64_t ticks() {
  return rte_rdtsc();
}

// Measured against CLOCK_MONOTONIC at the first call (20 ms).
double nanoseconds_per_tick();

inline double to_nanoseconds(std::uint64_t t) {
  return static_cast<double>(t) * nanoseconds_per_tick();
}
inline std::uint64_t to_ticks(std::chrono::nanoseconds d) {
  return static_cast<std::uint64_t>(static_cast<double>(d.count()) / nanoseconds_per_tick());
}

}  // namespace viaduct::pingpong
