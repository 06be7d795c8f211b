// Memory that is mapped twice in a row in the address space (a mirrored ring buffer): what runs
// over its end goes on at its start. A ring of entries in it needs no padding, and each entry is
// one contiguous piece. Fifo keeps its entries in one.
#pragma once

#include <cstddef>
#include <utility>

#include "drivers/base/cxx20.hpp"

namespace viaduct::mbcf {

// Owns the mapping, which has twice size() bytes. Any thread may read and write the bytes.
class MirroredMemory {
 public:
  // `size` in bytes must be a multiple of the page size. All of it is backed by memory from the
  // start. Throws SetupError, with the errno, when the system does not give that.
  explicit MirroredMemory(std::size_t size);
  ~MirroredMemory();
  MirroredMemory(const MirroredMemory&) = delete;
  MirroredMemory& operator=(const MirroredMemory&) = delete;

  std::byte* data() const { return base_; }
  std::size_t size() const { return size_; }

 private:
  std::byte* base_;
  std::size_t size_;
};

}  // namespace viaduct::mbcf
