#pragma once
// How often a random or exhaustive test tries again.
#include <cstdint>

namespace viaduct::test {

// Sanitizers make every step ten times slower, and look for what each of a few hundred tries shows
// as well as ten thousand do: they get a tenth of the tries.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr std::uint64_t kShareOfEffort = 10;
#else
constexpr std::uint64_t kShareOfEffort = 1;
#endif

constexpr std::uint64_t effort(std::uint64_t tries) {
  return tries / kShareOfEffort;
}

}  // namespace viaduct::test
