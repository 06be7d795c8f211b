// Fetching cache lines before they are needed.
#pragma once

#include "drivers/base/cxx20.hpp"

namespace viaduct::base {

// Fetches the cache line at an address in exclusive state, for a write that follows soon. A hint:
// an address without memory behind it does no harm. (__builtin_prefetch(line, 1) would fetch the
// line for reading only, unless the whole program is compiled for a processor known to have
// PREFETCHW.)
inline void prefetch_for_write(const void* line) {
#if defined(__x86_64__)
  asm volatile("prefetchw %0" ::"m"(*static_cast<const char*>(line)));
#else
  __builtin_prefetch(line, 1);
#endif
}

}  // namespace viaduct::base
