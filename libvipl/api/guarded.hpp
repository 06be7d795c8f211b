// The border between C programs and C++ exceptions. Every function of the C API that can throw goes
// through guarded().
#pragma once

#include <cstdio>
#include <exception>
#include <new>

#include <vipl.h>

namespace viaduct::vipl {

// Returns what `function` returns. An exception becomes VIP_ERROR_RESOURCE. If it is not
// std::bad_alloc it has a sentence for the user, which goes to standard error, because a return
// code has no room for it.
template <class Function>
VIP_RETURN guarded(Function function) noexcept {
  try {
    return function();
  } catch (const std::bad_alloc&) {
  } catch (const std::exception& error) {
    std::fprintf(stderr, "vipl: %s\n", error.what());
  }
  return VIP_ERROR_RESOURCE;
}

}  // namespace viaduct::vipl
