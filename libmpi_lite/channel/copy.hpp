// Copies of messages, most of which are short.
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

// The data of a message. Most are short: two words, which may overlap, are quicker than a call.
inline void copy_data(std::byte* to, std::span<const std::byte> data) {
  const std::size_t bytes = data.size();
  if (bytes >= 8 && bytes <= 16) {
    std::uint64_t first, last;
    std::memcpy(&first, data.data(), 8);
    std::memcpy(&last, data.data() + bytes - 8, 8);
    std::memcpy(to, &first, 8);
    std::memcpy(to + bytes - 8, &last, 8);
  } else if (bytes != 0) {
    std::memcpy(to, data.data(), bytes);
  }
}

}  // namespace viaduct::mpi
