// What puts, gets and accumulates do to a window's memory. The target's library calls these
// functions for messages that arrive; an origin calls them itself where it can reach the memory. So
// each operation has one implementation.
//
// Atomicity (MPI 5.0, section 12.7.1: accumulates are atomic for each element of a predefined
// type). Memory that only one process accesses needs nothing, as one thread at a time is in the
// library. In shared memory, elements of 1, 2, 4 and 8 bytes at aligned addresses are changed by
// CPU atomics, whoever does it. All others are changed by the target's process only.
#pragma once

#include <span>

#include "libmpi_lite/core/data/op.hpp"
#include "libmpi_lite/rma/memory.hpp"

namespace viaduct::mpi {

// Bytes of a window in the order in which they are sent.
struct Region {
  MPI_Aint offset;                // from the window's base; an address in dynamic windows
  MPI_Count length;               // bytes of data
  std::span<const Strip> strips;  // relative to `offset`; none: one block

  // All bytes are in the window, and the strips have `length` bytes together. To be checked before
  // the functions below are called.
  bool inside(const WindowMemory& memory) const;
};

// How the elements of a region are combined with those that come.
struct Combination {
  const Op* op;
  const Datatype* type;  // predefined

  // Whether the operation is defined for the type (section 12.3.4), and the region consists of
  // whole elements.
  bool valid(const Region& region) const;
  // Whether any process that reaches the memory may do it, by CPU atomics.
  bool by_cpu_atomics(const WindowMemory& memory, const Region& region) const;
  bool fetches_only() const {
    return op->constant() == reinterpret_cast<std::uintptr_t>(MPI_NO_OP);
  }
};

void write(const WindowMemory& memory, const Region& region, const std::byte* from);
void read(const WindowMemory& memory, const Region& region, std::byte* into);
// `from`: packed elements; unused by MPI_NO_OP. `before`: gets what was there, packed; nullptr: not
// wanted. They must not overlap with the memory.
void accumulate(const WindowMemory& memory, const Region& region, const Combination& how,
                const std::byte* from, std::byte* before);
// One element: stores `next` if the element is equal to `expected`; `before` gets what was there.
void compare_and_swap(const WindowMemory& memory, const Region& region, const std::byte* expected,
                      const std::byte* next, std::byte* before);

}  // namespace viaduct::mpi
