// Buffers that must not share memory (MPI 5.0, section 2.3): what an operation reads and what it
// writes.
//
// The check has three steps, each more expensive than the one before it, because nearly all calls
// pass the first: certainly_disjoint() compares two ranges; span_of() gives the range that a block
// with gaps spans; share_bytes() looks at the single bytes of the datatypes. Used by collectives
// (collective_arguments.cpp) and MPI_Reduce_local. Pure functions on addresses: no memory of
// the program is read.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "libmpi_lite/transfer/transfer.hpp"

namespace viaduct::mpi {

// A half-open range of addresses, from the first byte that is touched to behind the last one. The
// initial value is empty, and add() extends it.
struct AddressRange {
  std::uintptr_t from = ~std::uintptr_t{0}, to = 0;

  void add(const AddressRange& other) {
    from = std::min(from, other.from);
    to = std::max(to, other.to);
  }
  bool overlaps(const AddressRange& other) const { return from < other.to && other.from < to; }
};

// The range from the lowest to the highest byte of the items, gaps included. span_of() is for all
// types; span_with_gaps() is the slow half of span_of(). If the items have no bytes, the result is
// unspecified.
AddressRange span_with_gaps(Items items);
inline AddressRange span_of(Items items) {
  if (!items.type->contiguous()) [[unlikely]]
    return span_with_gaps(items);
  const auto start = reinterpret_cast<std::uintptr_t>(items.first_byte());
  return {start, start + static_cast<std::uintptr_t>(items.bytes())};
}

// True for the usual case, which two comparisons decide: blocks without gaps that do not overlap.
// False says nothing: the blocks may be apart all the same.
inline bool certainly_disjoint(const Items& a, const Items& b) {
  return a.type->contiguous() && b.type->contiguous() && !span_of(a).overlaps(span_of(b));
}

// Whether a block of `a` and a block of `b` share a byte for certain. In types with gaps the bytes
// of the data count and the gaps do not: two columns of one matrix are apart. Of a block with gaps
// only the first 4096 bytes of data are looked at, so false may be wrong there, true never is.
bool share_bytes(const std::vector<Items>& a, const std::vector<Items>& b);

}  // namespace viaduct::mpi
