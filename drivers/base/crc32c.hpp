// CRC32C (Castagnoli, RFC 3720 appendix B.4), the checksum that ends every frame's header.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string_view>

#if defined(__SSE4_2__)
#include <nmmintrin.h>
#endif

#include "drivers/base/cxx20.hpp"

namespace viaduct::base {

// One way to compute it. All give the same result; the fastest that this CPU has is used.
struct Crc32cImplementation {
  std::string_view name;
  bool (*usable)();
  std::uint32_t (*crc)(const std::byte* data, std::size_t size, std::uint32_t crc);
  std::uint32_t (*copy)(std::byte* to, const std::byte* from, std::size_t size, std::uint32_t crc);
};
// Fastest first; the last one works everywhere.
std::span<const Crc32cImplementation> crc32c_implementations();

namespace detail {

std::uint32_t crc32c_any(const std::byte* data, std::size_t size, std::uint32_t crc);
std::uint32_t crc32c_copy_any(std::byte* to, const std::byte* from, std::size_t size,
                              std::uint32_t crc);

#if defined(__SSE4_2__)
// Up to here a chain of single instructions is done before a wider method has started.
inline constexpr std::size_t kCrc32cShort = 128;

template <class Word, bool kCopy>
inline Word crc32c_step(std::byte*& to, const std::byte*& from) {
  Word word;
  std::memcpy(&word, from, sizeof word);
  from += sizeof word;
  if constexpr (kCopy) {
    std::memcpy(to, &word, sizeof word);
    to += sizeof word;
  }
  return word;
}

// One instruction every eight bytes, each waiting for the one before. `state` is the complement of
// the CRC.
template <bool kCopy>
inline std::uint32_t crc32c_serial(std::byte* to, const std::byte* from, std::size_t size,
                                   std::uint32_t state) {
  std::uint64_t wide = state;
  for (; size >= 8; size -= 8)
    wide = _mm_crc32_u64(wide, crc32c_step<std::uint64_t, kCopy>(to, from));
  state = static_cast<std::uint32_t>(wide);
  if ((size & 4) != 0) state = _mm_crc32_u32(state, crc32c_step<std::uint32_t, kCopy>(to, from));
  if ((size & 2) != 0) state = _mm_crc32_u16(state, crc32c_step<std::uint16_t, kCopy>(to, from));
  if ((size & 1) != 0) state = _mm_crc32_u8(state, crc32c_step<std::uint8_t, kCopy>(to, from));
  return state;
}
#endif

}  // namespace detail

// Continues `crc` over `size` bytes; start with 0. crc32c(b, crc32c(a, 0)) == crc32c(a ++ b, 0).
inline std::uint32_t crc32c(const std::byte* data, std::size_t size, std::uint32_t crc = 0) {
#if defined(__SSE4_2__)
  if (size <= detail::kCrc32cShort) return ~detail::crc32c_serial<false>(nullptr, data, size, ~crc);
#endif
  return detail::crc32c_any(data, size, crc);
}

// memcpy and crc32c in one pass over the source. The ranges must not overlap.
inline std::uint32_t crc32c_copy(std::byte* to, const std::byte* from, std::size_t size,
                                 std::uint32_t crc = 0) {
#if defined(__SSE4_2__)
  if (size <= detail::kCrc32cShort) return ~detail::crc32c_serial<true>(to, from, size, ~crc);
#endif
  return detail::crc32c_copy_any(to, from, size, crc);
}

// The same over one word as it would lie in memory, from a register.
template <class Word>
inline std::uint32_t crc32c_word(Word word, std::uint32_t crc) {
#if defined(__SSE4_2__)
  if constexpr (sizeof word == 8) return ~static_cast<std::uint32_t>(_mm_crc32_u64(~crc, word));
  if constexpr (sizeof word == 4) return ~_mm_crc32_u32(~crc, word);
  if constexpr (sizeof word == 2) return ~_mm_crc32_u16(~crc, word);
#endif
  return crc32c(reinterpret_cast<const std::byte*>(&word), sizeof word, crc);
}

}  // namespace viaduct::base
