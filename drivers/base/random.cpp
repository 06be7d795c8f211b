// SipHash, and the operating system's random numbers.

#include "drivers/base/random.hpp"

#include <unistd.h>

#include <bit>
#include <cerrno>
#include <cstring>
#include <string>

#include "drivers/base/setup_error.hpp"

namespace viaduct::base {

// The initial state, rotations and finalization are those of the paper. The message is one word;
// the second block is the padding, which has the message's length (8) in its top byte.
std::uint64_t siphash(const std::array<std::uint64_t, 2>& key, std::uint64_t word) {
  std::uint64_t v0 = key[0] ^ 0x736f6d6570736575, v1 = key[1] ^ 0x646f72616e646f6d;
  std::uint64_t v2 = key[0] ^ 0x6c7967656e657261, v3 = key[1] ^ 0x7465646279746573;
  const auto rounds = [&](int n) {
    for (; n != 0; --n) {
      v0 += v1, v1 = std::rotl(v1, 13) ^ v0, v0 = std::rotl(v0, 32);
      v2 += v3, v3 = std::rotl(v3, 16) ^ v2;
      v0 += v3, v3 = std::rotl(v3, 21) ^ v0;
      v2 += v1, v1 = std::rotl(v1, 17) ^ v2, v2 = std::rotl(v2, 32);
    }
  };
  for (const std::uint64_t m : {word, std::uint64_t{sizeof word} << 56}) {
    v3 ^= m;
    rounds(2);
    v0 ^= m;
  }
  v2 ^= 0xff;
  rounds(4);
  return v0 ^ v1 ^ v2 ^ v3;
}

std::uint64_t random_word() {
  std::uint64_t word;
  if (::getentropy(&word, sizeof word) != 0)
    throw SetupError(std::string("no random numbers: getentropy: ") + std::strerror(errno) +
                     "; allow getrandom(2) (seccomp?)");
  return word;
}

}  // namespace viaduct::base
