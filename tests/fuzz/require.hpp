// What the targets use to say that something must hold, in every build.
#pragma once

#include <cstddef>
#include <cstdlib>

inline void require(bool condition) {
  if (!condition) std::abort();
}

// What lies around memory that a message may write to.
inline constexpr std::byte kCanary{0x5a};
