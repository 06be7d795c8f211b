// Copies into and out of the payload of packets.
#pragma once

#include <rte_memcpy.h>

#include <cstddef>

namespace viaduct::startx {

// Not memcpy(): gcc makes `rep movs` of one whose length it knows to be short, which takes longer
// than all else that is done with a packet.
inline void copy_payload(void* to, const void* from, std::size_t bytes) {
  rte_memcpy(to, from, bytes);
}

}  // namespace viaduct::startx
