// The memory of a window at one process: which bytes other processes may name, and where they are
// in this process. Also the shared memory that windows are allocated in within a node.
//
// Threads: one thread at a time is in the library. The bytes themselves may be accessed by the
// program and, if they are shared, by other processes at any time.
#pragma once

#include <mpi.h>

#include <cstddef>
#include <map>

#include "drivers/base/unique_fd.hpp"

namespace viaduct::mpi {

class WindowMemory {
 public:
  // One block; `shared`: other processes access it directly, too.
  WindowMemory(void* base, MPI_Aint size, bool shared)
      : base_(static_cast<std::byte*>(base)), size_(size), shared_(shared), dynamic_(false) {}
  // Of a dynamic window: nothing is attached yet.
  WindowMemory() = default;

  bool dynamic() const { return dynamic_; }
  bool shared() const { return shared_; }
  std::byte* base() const { return base_; }
  MPI_Aint size() const { return size_; }

  // Where the bytes [offset, offset + length) are; nullptr: not all of them are in the window. In
  // dynamic windows the offset is an address, and the bytes must be in one attached block.
  std::byte* find(MPI_Aint offset, MPI_Aint length) const {
    if (offset < 0 || length < 0) return nullptr;
    if (dynamic_) return find_attached(offset, length);
    return offset <= size_ && length <= size_ - offset ? base_ + offset : nullptr;
  }

  // Dynamic windows: attaches a block. false: it overlaps one that is attached.
  bool attach(void* base, MPI_Aint size);
  // false: no attached block begins there.
  bool detach(const void* base);

 private:
  std::byte* find_attached(MPI_Aint offset, MPI_Aint length) const;

  std::byte* base_ = nullptr;
  MPI_Aint size_ = 0;
  bool shared_ = false;
  bool dynamic_ = true;
  std::map<MPI_Aint, MPI_Aint> attached_;  // address -> size, not overlapping
};

// A mapping of anonymous memory that processes of a node share (memfd). The one that makes it has
// the descriptor, by which the others open it through /proc; it is gone with the last mapping.
class SharedBlock {
 public:
  SharedBlock() = default;
  SharedBlock(SharedBlock&& other) noexcept;
  SharedBlock& operator=(SharedBlock&& other) noexcept;
  ~SharedBlock();

  // Both return false if the system refuses; then there is no mapping.
  bool create(std::size_t bytes);
  bool open(int pid, int fd, std::size_t bytes);
  void close_fd() { fd_ = base::UniqueFd(); }  // once all others have opened it

  int fd() const { return fd_.get(); }
  std::byte* data() const { return data_; }

 private:
  bool map(int fd, std::size_t bytes);

  base::UniqueFd fd_;
  std::byte* data_ = nullptr;
  std::size_t bytes_ = 0;
};

}  // namespace viaduct::mpi
