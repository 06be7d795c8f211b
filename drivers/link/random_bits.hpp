// Bits that nobody can tell, whatever others he has been given: for keys and tokens.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>

namespace viaduct::link {

// From the system, many at a time: it takes a system call.
class RandomBits {
 public:
  // Each once. Nothing where the system gives none (a kernel without getrandom(2), seccomp).
  std::optional<std::uint64_t> next();

 private:
  std::array<std::uint64_t, 32> bits_{};  // 256 bytes, the most that getentropy(3) gives
  std::size_t next_ = bits_.size();
};

}  // namespace viaduct::link
