// Buffers that must not share memory (MPI 5.0, section 2.3): what is read and what is written.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "libmpi_lite/transfer/transfer.hpp"

namespace viaduct::mpi {

// Addresses, from the first byte that is touched to behind the last one.
struct AddressRange {
  std::uintptr_t from = ~std::uintptr_t{0}, to = 0;

  void add(const AddressRange& other) {
    from = std::min(from, other.from);
    to = std::max(to, other.to);
  }
  bool meets(const AddressRange& other) const { return from < other.to && other.from < to; }
};

// Of items without a byte it may be any range.
AddressRange reach_with_gaps(Items items);
inline AddressRange reach(Items items) {
  if (!items.type->contiguous()) [[unlikely]]
    return reach_with_gaps(items);
  const auto start = reinterpret_cast<std::uintptr_t>(items.first_byte());
  return {start, start + static_cast<std::uintptr_t>(items.bytes())};
}

// The usual case, decided by two comparisons: blocks without gaps that are apart. Others may be
// apart as well.
inline bool plainly_apart(const Items& a, const Items& b) {
  return a.type->contiguous() && b.type->contiguous() && !reach(a).meets(reach(b));
}

// Whether the blocks of two arguments share a byte for certain. Of types with gaps the bytes count,
// not the gaps; of long blocks of such types only the first ones are looked at.
bool share_bytes(const std::vector<Items>& a, const std::vector<Items>& b);

}  // namespace viaduct::mpi
