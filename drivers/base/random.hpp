// Bits that nobody can tell, whatever others he has been given: for keys and tokens.
#pragma once

#include <array>
#include <cstdint>

#include "drivers/base/cxx20.hpp"

namespace viaduct::base {

// SipHash-2-4 of eight bytes (J.-P. Aumasson, D. J. Bernstein: "SipHash: a fast short-input PRF",
// 2012).
std::uint64_t siphash(const std::array<std::uint64_t, 2>& key, std::uint64_t word);

// That of a counter, under a key from the system: one system call at construction, none in a poll,
// and nothing that could fail there.
class RandomBits {
 public:
  RandomBits();  // throws SetupError where the system has no random numbers
  std::uint64_t next() { return siphash(key_, count_++); }

 private:
  std::array<std::uint64_t, 2> key_;
  std::uint64_t count_ = 0;
};

}  // namespace viaduct::base
