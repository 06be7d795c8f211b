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

inline AddressRange reach(const Items& items) {
  if (items.bytes() == 0) return {};
  const MPI_Count last = (items.count - 1) * items.type->extent();
  const auto at = [&](MPI_Count offset) {
    return reinterpret_cast<std::uintptr_t>(byte_at(items.data, offset));
  };
  return {at(items.type->true_lb() + std::min<MPI_Count>(0, last)),
          at(items.type->true_ub() + std::max<MPI_Count>(0, last))};
}

// Whether the blocks of two arguments share a byte for certain. Of types with gaps the bytes count,
// not the gaps; of long blocks of such types only the first ones are looked at.
bool share_bytes(const std::vector<Items>& a, const std::vector<Items>& b);

}  // namespace viaduct::mpi
