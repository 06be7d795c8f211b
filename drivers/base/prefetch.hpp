// Fetching cache lines before they are needed.
#pragma once

#include "drivers/base/cxx20.hpp"

namespace viaduct::base {

// Fetches a line that will be written; nothing happens if there is no memory. (__builtin_prefetch
// fetches it for reading, unless all of the program is compiled for processors of the last years.)
inline void own_soon(const void* line) {
#if defined(__x86_64__)
  asm volatile("prefetchw %0" ::"m"(*static_cast<const char*>(line)));
#else
  __builtin_prefetch(line, 1);
#endif
}

}  // namespace viaduct::base
