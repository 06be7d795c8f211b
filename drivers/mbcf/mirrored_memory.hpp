// Memory that appears twice in a row in the address space: what runs over its end goes on at its
// start. A ring of entries in it needs no padding, and each entry is one contiguous piece.
#pragma once

#include <cstddef>
#include <utility>

#include "drivers/base/cxx20.hpp"

namespace viaduct::mbcf {

class MirroredMemory {
 public:
  // `size` must be a multiple of the page size. Throws SetupError.
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
