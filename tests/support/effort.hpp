#pragma once
// How often a random or exhaustive test tries again.
#include <cstdint>
#include <cstdlib>

namespace viaduct::test {

// Sanitizers make every step ten times slower: builds with them get a tenth of the tries. All tries
// are made in builds without them, where no assert is checked; so a test of what asserts say (the
// link's invariants, in link_schedule_test.cpp) makes all its tries in both.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr std::uint64_t kShareOfEffort = 10;
#else
constexpr std::uint64_t kShareOfEffort = 1;
#endif

constexpr std::uint64_t effort(std::uint64_t tries) {
  return tries / kShareOfEffort;
}

// A number that whoever runs the test may choose, such as the seed of a run that has failed.
inline std::uint64_t from_environment(const char* name, std::uint64_t otherwise) {
  const char* text = std::getenv(name);
  return text ? std::strtoull(text, nullptr, 0) : otherwise;
}

}  // namespace viaduct::test
