// Where random numbers come from. Three sources, for three needs:
//
//   random_word()   now and then: a seed, a name, a nonce; a system call each
//   RandomBits      keys and tokens on the data path: who knows some cannot tell the others
//   SeededRandom    the same numbers for the same seed on any machine; not for secrets
//
// FaultInjector and tests draw from std::mt19937_64: failures are replayed by seeds that were
// noted. Thread rule: any thread may call random_word(); an object has one owner thread.
#pragma once

#include <array>
#include <cstdint>

#include "drivers/base/cxx20.hpp"

namespace viaduct::base {

// 64 bits from the operating system. Throws SetupError where it has no random numbers.
std::uint64_t random_word();

// SipHash-2-4, a keyed hash, of eight bytes in little-endian order (J.-P. Aumasson, D. J.
// Bernstein: "SipHash: a fast short-input PRF", 2012).
std::uint64_t siphash(const std::array<std::uint64_t, 2>& key, std::uint64_t word);

// A stream of unpredictable words: SipHash of a counter, under a key from the operating system.
// Construction may throw, as random_word(); next() makes no system call and cannot fail, so that a
// poll may call next().
class RandomBits {
 public:
  std::uint64_t next() { return siphash(key_, count_++); }

 private:
  std::array<std::uint64_t, 2> key_{random_word(), random_word()};
  std::uint64_t count_ = 0;
};

// splitmix64 (Steele, Lea and Flood, 2014).
class SeededRandom {
 public:
  explicit SeededRandom(std::uint64_t seed) : state_(seed) {}
  std::uint64_t next() {
    std::uint64_t z = state_ += 0x9e3779b97f4a7c15;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
    z = (z ^ z >> 27) * 0x94d049bb133111eb;
    return z ^ z >> 31;
  }

 private:
  std::uint64_t state_;
};

}  // namespace viaduct::base
