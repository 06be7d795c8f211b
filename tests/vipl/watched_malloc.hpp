// In place of the C library's allocator, for the whole program, libraries included: counts the
// calls of threads that are watched. To be included in one file of a program. Not with
// AddressSanitizer, which replaces the allocator itself.
#pragma once

#include <atomic>
#include <cerrno>
#include <cstddef>

namespace viaduct::vipl_test {
inline thread_local bool watched = false;
inline std::atomic<std::size_t> allocations = 0;  // and releases
}  // namespace viaduct::vipl_test

extern "C" {
void* __libc_malloc(std::size_t bytes);
void* __libc_calloc(std::size_t count, std::size_t bytes);
void* __libc_realloc(void* old, std::size_t bytes);
void* __libc_memalign(std::size_t alignment, std::size_t bytes);
void __libc_free(void* old);

void* malloc(std::size_t bytes) {
  viaduct::vipl_test::allocations += viaduct::vipl_test::watched;
  return __libc_malloc(bytes);
}
void* calloc(std::size_t count, std::size_t bytes) {
  viaduct::vipl_test::allocations += viaduct::vipl_test::watched;
  return __libc_calloc(count, bytes);
}
void* realloc(void* old, std::size_t bytes) {
  viaduct::vipl_test::allocations += viaduct::vipl_test::watched;
  return __libc_realloc(old, bytes);
}
void* aligned_alloc(std::size_t alignment, std::size_t bytes) {
  viaduct::vipl_test::allocations += viaduct::vipl_test::watched;
  return __libc_memalign(alignment, bytes);
}
int posix_memalign(void** out, std::size_t alignment, std::size_t bytes) {
  *out = aligned_alloc(alignment, bytes);
  return *out == nullptr ? ENOMEM : 0;
}
void free(void* old) {
  viaduct::vipl_test::allocations += viaduct::vipl_test::watched && old != nullptr;
  __libc_free(old);
}
}
