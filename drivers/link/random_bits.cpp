#include "drivers/link/random_bits.hpp"

#include <unistd.h>

#include <utility>

namespace viaduct::link {

std::optional<std::uint64_t> RandomBits::next() {
  if (next_ == bits_.size()) {
    if (::getentropy(bits_.data(), sizeof bits_) != 0) return std::nullopt;
    next_ = 0;
  }
  return std::exchange(bits_[next_++], 0);
}

}  // namespace viaduct::link
