// CRC32C (Castagnoli, RFC 3720 appendix B.4), the checksum that ends every frame's header.
#pragma once

#include <cstddef>
#include <cstdint>

namespace viaduct::link {

// Continues `crc` over `size` bytes; start with 0. crc32c(b, crc32c(a, 0)) == crc32c(a ++ b, 0).
std::uint32_t crc32c(const std::byte* data, std::size_t size, std::uint32_t crc = 0);

// memcpy and crc32c in one pass over the source. The ranges must not overlap.
std::uint32_t crc32c_copy(std::byte* to, const std::byte* from, std::size_t size,
                          std::uint32_t crc = 0);

}  // namespace viaduct::link
