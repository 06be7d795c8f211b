// Copies what has just been made.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

namespace viaduct::mpi {

// Heads have just been written, word by word. Reading them in larger units would have to wait until
// those writes have left the store buffer, behind the misses of a ring.
inline void copy_words(std::byte* to, std::span<const std::byte> words) {
  for (std::size_t at = 0; at + 8 <= words.size(); at += 8) {
    std::uint64_t word;
    std::memcpy(&word, words.data() + at, sizeof word);
    asm("" : "+r"(word));  // one by one
    std::memcpy(to + at, &word, sizeof word);
  }
  if (const std::size_t rest = words.size() % 8)
    std::memcpy(to + words.size() - rest, words.data() + words.size() - rest, rest);
}

}  // namespace viaduct::mpi
