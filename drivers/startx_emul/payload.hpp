// Copies into and out of the payload of packets, for the NIU and for MPI's StarT-X channel.
#pragma once

#include <rte_memcpy.h>

#include <cstddef>

namespace viaduct::startx {

// Copies a payload of up to 88 bytes; the ranges must not overlap. Not memcpy(): where gcc knows
// that the length is short it makes `rep movs` of memcpy(), and that takes longer than all other
// work on the packet.
inline void copy_payload(void* to, const void* from, std::size_t bytes) {
  rte_memcpy(to, from, bytes);
}

}  // namespace viaduct::startx
