// CRC32C (Castagnoli, RFC 3720 appendix B.4), the checksum that ends every frame's header. Short
// data are summed inline where the compiler may use SSE4.2; longer data by the fastest
// implementation that the CPU has (crc32c.cpp). Any thread may call these functions.
//
// Of longer data ISA-L takes the CRC, but on CPUs with AVX-512, where ours takes 43, 54 and 59 GB/s
// at 256, 1472 and 8960 bytes and ISA-L 28, 30 and 53, and copies in the same pass. Without AVX-512
// (AMD Zen 3, data in the first-level cache, median of 201 alternating rounds) ISA-L's 10.7, 20.1
// and 19.8 GB/s are near what three interleaved chains of CRC instructions gave, 14.3, 22.0 and
// 20.1, and with a copy before it, in blocks, it is nearly twice as fast as those fused with the
// copy.
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

// One way to compute CRC32C. All give the same result; tests and benchmarks compare them. `crc` and
// `copy` have the parameters of crc32c and crc32c_copy below.
struct Crc32cImplementation {
  std::string_view name;
  bool (*usable)();  // whether this CPU has the instructions
  std::uint32_t (*crc)(const std::byte* data, std::size_t size, std::uint32_t crc);
  std::uint32_t (*copy)(std::byte* to, const std::byte* from, std::size_t size, std::uint32_t crc);
};
// All that this build has, the fastest first; the last one works on any CPU.
std::span<const Crc32cImplementation> crc32c_implementations();

namespace detail {

std::uint32_t crc32c_any(const std::byte* data, std::size_t size, std::uint32_t crc);
std::uint32_t crc32c_copy_any(std::byte* to, const std::byte* from, std::size_t size,
                              std::uint32_t crc);

#if defined(__SSE4_2__)
// Bytes up to which a chain of single CRC instructions takes less time than a wider method (at 192
// bytes 24 ns, ISA-L 30).
inline constexpr std::size_t kCrc32cShort = 192;

// Reads the next word, copies it if wanted, and moves the pointers on.
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

// One CRC instruction for eight bytes, each waiting for the one before. `state` and the result are
// complements of the CRC.
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

// Continues `crc` over `size` bytes and returns the CRC of all bytes so far; start with 0. Data may
// be summed in pieces: crc32c(b, crc32c(a, 0)) == crc32c(a ++ b, 0).
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

// Continues `crc` over a word that is in a register, as if its bytes lay in memory.
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
