// What stands between C programs and exceptions.
#pragma once

#include <cstdio>
#include <exception>
#include <new>

#include <vipl.h>

namespace viaduct::vipl {

// What `function` returns. Out of memory is VIP_ERROR_RESOURCE, and so is anything else that has a
// sentence for the user, who reads it on standard error: a code has no room for it.
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
