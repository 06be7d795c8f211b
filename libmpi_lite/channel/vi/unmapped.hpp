// Memory that the program gives back to the kernel while it is still registered with a NIC: its
// pages stay pinned, but the addresses may soon mean other pages. So whoever keeps registrations
// must hear of it.
//
// The C library's functions that end or replace mappings (munmap, mremap, mmap with MAP_FIXED,
// madvise, brk, shmdt) are replaced, for the whole process and as long as a watch is open: a jump
// is written over the first bytes of each. So free() and realloc() are seen, too, which call them
// inside the C library. Not seen: system calls that a program makes without these functions.
//
// (libucm of UCX does the same. Its version 1.13 loses the fifth argument of mremap, which then
// fails with MREMAP_FIXED; and merely loading it has this effect.)
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace viaduct::mpi {

// Bytes [begin, end) of the address space.
struct AddressRange {
  std::uintptr_t begin = 0, end = 0;
  bool overlaps(const AddressRange& other) const { return begin < other.end && other.begin < end; }
};

// One of a process at a time. Memory may be given back by any thread; everything else is for the
// thread that owns the watch.
class UnmappedWatch {
 public:
  // Replaces the functions. Other threads must not be inside them.
  UnmappedWatch();
  ~UnmappedWatch();
  UnmappedWatch(const UnmappedWatch&) = delete;
  UnmappedWatch& operator=(const UnmappedWatch&) = delete;

  // false: this system does not let a process change its code, or the C library is another one.
  bool works() const { return works_; }
  // From now on memory in that range is reported, and no other.
  void set_interest(const AddressRange& range);
  // Whether there is something to take; one load.
  static bool any();
  // The ranges given back since the last call, oldest first, at most as many as fit. `all`: there
  // were more than can be remembered, and any memory may have been given back.
  static std::span<const AddressRange> take(std::span<AddressRange> room, bool& all);

 private:
  bool watching_ = false;  // this is the one of the process
  bool works_ = false;
};

}  // namespace viaduct::mpi
