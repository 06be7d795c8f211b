// Unpredictable bits, for keys and tokens: a party that knows some of them cannot tell the others.
// (Link::random has numbers that need not be secret.)
#pragma once

#include <array>
#include <cstdint>

#include "drivers/base/cxx20.hpp"

namespace viaduct::base {

// SipHash-2-4, a keyed hash, of eight bytes in little-endian order (J.-P. Aumasson, D. J.
// Bernstein: "SipHash: a fast short-input PRF", 2012).
std::uint64_t siphash(const std::array<std::uint64_t, 2>& key, std::uint64_t word);

// A stream of random words: SipHash of a counter, under a key from the operating system. One system
// call at construction; next() makes none and cannot fail, so that a poll may call next().
class RandomBits {
 public:
  RandomBits();  // throws SetupError where the system has no random numbers
  std::uint64_t next() { return siphash(key_, count_++); }

 private:
  std::array<std::uint64_t, 2> key_;
  std::uint64_t count_ = 0;
};

}  // namespace viaduct::base
