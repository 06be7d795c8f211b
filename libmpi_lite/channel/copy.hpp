// Copies of messages, most of which are short: the few bytes at the beginning of each control
// message and each packet are on the critical path of the round trip. Used by the channels and
// transfer/.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

namespace viaduct::mpi {

// Copies a protocol header, word by word. Headers have just been written in words of that size. A
// wider load would span several stores that are still in the store buffer; the processor cannot
// forward those, and the load would wait until they are in the cache, behind cache misses of a
// ring.
inline void copy_words(std::byte* to, std::span<const std::byte> words) {
  for (std::size_t at = 0; at + 8 <= words.size(); at += 8) {
    std::uint64_t word;
    std::memcpy(&word, words.data() + at, sizeof word);
    asm("" : "+r"(word));  // keeps the compiler from joining the words into vector loads
    std::memcpy(to + at, &word, sizeof word);
  }
  if (const std::size_t rest = words.size() % 8)
    std::memcpy(to + words.size() - rest, words.data() + words.size() - rest, rest);
}

// Copies the data of a message. For 8 to 16 bytes two words, which may overlap, are quicker than a
// call of memcpy with a length that is not known at compile time.
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
