// CRC32C over longer data: ISA-L's on any CPU, ours on those with AVX-512, and the choice between
// them at run time. Each computes the CRC alone or together with a copy (kCopy). A program compiled
// for SSE4.2 sums short data inline (crc32c.hpp) and calls this file for longer data.

#include "drivers/base/crc32c.hpp"

#include <isa-l/crc.h>

#include <algorithm>
#include <atomic>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace viaduct::base {
namespace {

// --- any CPU: ISA-L ------------------------------------------------------------------------------

// ISA-L copies nothing. Blocks are summed while they are in the first-level cache; and on AMD Zen 3
// memcpy of 4 KiB or more (`rep movsb`) takes twenty times as long if the target lies less than 32
// bytes behind the source modulo 4096. What is summed is the copy: the source may change meanwhile.
constexpr std::size_t kBlock = 2048;

template <bool kCopy>
std::uint32_t by_isal(std::byte* to, const std::byte* from, std::size_t size, std::uint32_t crc) {
  std::uint32_t state = ~crc;
  while (size > 0) {
    const std::size_t bytes = std::min(size, kCopy ? kBlock : std::size_t{1} << 30);
    if constexpr (kCopy) std::memcpy(to, from, bytes);
    const std::byte* const summed = kCopy ? to : from;
    state = crc32_iscsi(const_cast<unsigned char*>(reinterpret_cast<const unsigned char*>(summed)),
                        static_cast<int>(bytes), state);
    if constexpr (kCopy) to += bytes;
    from += bytes;
    size -= bytes;
  }
  return ~state;
}

bool always() {
  return true;
}

#if defined(__x86_64__)

#define VIADUCT_SSE42 __attribute__((target("sse4.2")))
#define VIADUCT_AVX512 \
  __attribute__((target("sse4.2,pclmul,avx512f,avx512bw,avx512dq,avx512vl,vpclmulqdq")))

// --- AVX-512 and VPCLMULQDQ: 256 bytes at a time -------------------------------------------------

// What is too short for folding: one instruction every eight bytes.
template <bool kCopy>
VIADUCT_SSE42 std::uint32_t serial(std::byte* to, const std::byte* from, std::size_t size,
                                   std::uint32_t crc) {
  std::uint64_t state = ~crc;
  for (; size >= 8; size -= 8, from += 8) {
    std::uint64_t word;
    std::memcpy(&word, from, 8);
    if constexpr (kCopy) {
      std::memcpy(to, &word, 8);
      to += 8;
    }
    state = _mm_crc32_u64(state, word);
  }
  auto narrow = static_cast<std::uint32_t>(state);
  for (; size > 0; --size, ++from) {
    if constexpr (kCopy) *to++ = *from;
    narrow = _mm_crc32_u8(narrow, static_cast<unsigned char>(*from));
  }
  return ~narrow;
}

constexpr std::uint32_t kPolynomial = 0x82f63b78;  // Castagnoli, bits reflected

// x to the n-th, modulo the polynomial. Polynomials are reflected: bit 31 is the constant term.
constexpr std::uint32_t power_of_x(unsigned n) {
  std::uint32_t value = 0x80000000;
  for (; n > 0; --n) value = (value >> 1) ^ ((value & 1) != 0 ? kPolynomial : 0);
  return value;
}

// Folding (V. Gopal et al., "Fast CRC Computation for Generic Polynomials Using PCLMULQDQ
// Instruction", Intel, 2009): a 128-bit lane is moved over kBits bits by multiplying its halves
// with powers of x, and is then added to the data there. The carry-less product of two reflected
// numbers is short of one power of x; hence the 1 in the exponents.
constexpr long long factor(unsigned exponent) {
  const std::uint64_t reflected = std::uint64_t{power_of_x(exponent)} << 32;
  return static_cast<long long>(reflected);
}
template <unsigned kBits>
constexpr auto kLow = factor(kBits + 63);
template <unsigned kBits>
constexpr auto kHigh = factor(kBits - 1);

// The four lanes moved over kBits bits, and added to `onto`.
template <unsigned kBits>
VIADUCT_AVX512 inline __m512i fold(__m512i lanes, __m512i onto) {
  constexpr auto low = kLow<kBits>, high = kHigh<kBits>;
  const __m512i by = _mm512_set_epi64(high, low, high, low, high, low, high, low);
  return _mm512_ternarylogic_epi64(_mm512_clmulepi64_epi128(lanes, by, 0x00),
                                   _mm512_clmulepi64_epi128(lanes, by, 0x11), onto,
                                   0x96);  // xor of all three
}

// Folds the four lanes of a register onto the last lane. (The masks keep every lane: the intrinsics
// without a mask start from an undefined register, about which g++ 12 warns.)
VIADUCT_AVX512 inline __m128i fold_lanes(__m512i lanes) {
  const __m512i by =
      _mm512_set_epi64(0, 0, kHigh<128>, kLow<128>, kHigh<256>, kLow<256>, kHigh<384>, kLow<384>);
  const __m512i moved = _mm512_xor_si512(_mm512_clmulepi64_epi128(lanes, by, 0x00),
                                         _mm512_clmulepi64_epi128(lanes, by, 0x11));
  const __m256i half = _mm256_xor_si256(_mm512_maskz_extracti64x4_epi64(0xf, moved, 0),
                                        _mm512_maskz_extracti64x4_epi64(0xf, moved, 1));
  return _mm_xor_si128(
      _mm_xor_si128(_mm256_castsi256_si128(half), _mm256_extracti128_si256(half, 1)),
      _mm512_maskz_extracti64x2_epi64(0x3, lanes, 3));
}

// Loads the next 64 bytes, copies them if wanted, and moves the pointers on.
template <bool kCopy>
VIADUCT_AVX512 inline __m512i fetch_64(std::byte*& to, const std::byte*& from) {
  const __m512i data = _mm512_loadu_si512(from);
  from += 64;
  if constexpr (kCopy) {
    _mm512_storeu_si512(to, data);
    to += 64;
  }
  return data;
}

template <bool kCopy>
VIADUCT_AVX512 std::uint32_t folded(std::byte* to, const std::byte* from, std::size_t size,
                                    std::uint32_t crc) {
  if (size < 256) return serial<kCopy>(to, from, size, crc);
  __m512i a = fetch_64<kCopy>(to, from), b = fetch_64<kCopy>(to, from),
          c = fetch_64<kCopy>(to, from), d = fetch_64<kCopy>(to, from);
  // The state so far (the complement of `crc`) is added to the first four bytes.
  a = _mm512_xor_si512(a, _mm512_zextsi128_si512(_mm_cvtsi32_si128(static_cast<int>(~crc))));
  for (size -= 256; size >= 256; size -= 256) {
    a = fold<2048>(a, fetch_64<kCopy>(to, from));
    b = fold<2048>(b, fetch_64<kCopy>(to, from));
    c = fold<2048>(c, fetch_64<kCopy>(to, from));
    d = fold<2048>(d, fetch_64<kCopy>(to, from));
  }
  // Fold the first three registers onto the fourth, then 64 bytes at a time, then the lanes. Two
  // CRC instructions reduce the last 128 bits.
  d = _mm512_xor_si512(fold<1024>(b, d), fold<1536>(a, fold<512>(c, _mm512_setzero_si512())));
  for (; size >= 64; size -= 64) d = fold<512>(d, fetch_64<kCopy>(to, from));
  const __m128i rest = fold_lanes(d);
  std::uint64_t state = _mm_crc32_u64(0, static_cast<std::uint64_t>(_mm_cvtsi128_si64(rest)));
  state = _mm_crc32_u64(state, static_cast<std::uint64_t>(_mm_extract_epi64(rest, 1)));
  return serial<kCopy>(to, from, size, ~static_cast<std::uint32_t>(state));
}

bool has_vpclmul() {
  return __builtin_cpu_supports("avx512f") != 0 && __builtin_cpu_supports("avx512bw") != 0 &&
         __builtin_cpu_supports("avx512dq") != 0 && __builtin_cpu_supports("avx512vl") != 0 &&
         __builtin_cpu_supports("vpclmulqdq") != 0;
}

#endif

// An implementation without copying, in the form that Crc32cImplementation::crc has.
template <auto kFunction>
std::uint32_t only_crc(const std::byte* data, std::size_t size, std::uint32_t crc) {
  return kFunction(nullptr, data, size, crc);
}

constexpr Crc32cImplementation kImplementations[] = {
#if defined(__x86_64__)
    {"avx512-vpclmulqdq", has_vpclmul, only_crc<folded<false>>, folded<true>},
#endif
    {"isa-l", always, only_crc<by_isal<false>>, by_isal<true>},
};

const Crc32cImplementation& best() {
  for (const auto& implementation : kImplementations)
    if (implementation.usable()) return implementation;
  return kImplementations[std::size(kImplementations) - 1];
}

// The pointers begin at functions that choose the best implementation at the first call. constinit:
// the first call may come from another file's initialization, before this file's. Atomic, because
// links of several threads may make the first call at the same time; they all store the same value,
// so relaxed order is enough.
std::uint32_t first_crc(const std::byte* data, std::size_t size, std::uint32_t crc);
std::uint32_t first_copy(std::byte* to, const std::byte* from, std::size_t size, std::uint32_t crc);
constinit std::atomic<decltype(Crc32cImplementation::crc)> chosen_crc{first_crc};
constinit std::atomic<decltype(Crc32cImplementation::copy)> chosen_copy{first_copy};

std::uint32_t first_crc(const std::byte* data, std::size_t size, std::uint32_t crc) {
  chosen_crc.store(best().crc, std::memory_order_relaxed);
  return best().crc(data, size, crc);
}

std::uint32_t first_copy(std::byte* to, const std::byte* from, std::size_t size,
                         std::uint32_t crc) {
  chosen_copy.store(best().copy, std::memory_order_relaxed);
  return best().copy(to, from, size, crc);
}

}  // namespace

std::span<const Crc32cImplementation> crc32c_implementations() {
  return kImplementations;
}

std::uint32_t detail::crc32c_any(const std::byte* data, std::size_t size, std::uint32_t crc) {
  return chosen_crc.load(std::memory_order_relaxed)(data, size, crc);
}

std::uint32_t detail::crc32c_copy_any(std::byte* to, const std::byte* from, std::size_t size,
                                      std::uint32_t crc) {
  return chosen_copy.load(std::memory_order_relaxed)(to, from, size, crc);
}

}  // namespace viaduct::base
