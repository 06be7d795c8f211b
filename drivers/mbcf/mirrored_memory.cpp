// Mirrored memory is a memfd (shared memory without a name) that is mapped at two addresses.
#include "drivers/mbcf/mirrored_memory.hpp"

#include <fcntl.h>
#include <sys/mman.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "drivers/base/unique_fd.hpp"
#include "drivers/link/types.hpp"

namespace viaduct::mbcf {

namespace {

// Backs the file with memory; 0 or an errno. In pieces, because a signal makes the kernel undo the
// call that is under way: with a periodic signal (a profiler's, say) one call for all of a large
// FIFO might never succeed.
int reserve(int file, std::size_t size) {
  constexpr std::size_t kPiece = std::size_t{1} << 22;
  for (std::size_t at = 0; at < size;) {
    const std::size_t piece = std::min(kPiece, size - at);
    const int error = ::posix_fallocate(file, static_cast<off_t>(at), static_cast<off_t>(piece));
    if (error == 0)
      at += piece;
    else if (error != EINTR)
      return error;
  }
  return 0;
}

}  // namespace

MirroredMemory::MirroredMemory(std::size_t size) : size_(size) {
  // Closed at the end of the scope: the mappings keep the memory.
  const base::UniqueFd file(::memfd_create("viaduct-fifo", MFD_CLOEXEC));
  void* base = MAP_FAILED;
  bool mapped{file};
  // Without the reservation a lack of shared memory would show as SIGBUS at the first access.
  if (mapped) {
    errno = reserve(file.get(), size);
    mapped = errno == 0;
  }
  if (mapped) {
    // Reserves addresses for both halves together, so that no other thread's mapping comes between.
    base = ::mmap(nullptr, 2 * size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    mapped = base != MAP_FAILED;
  }
  for (std::size_t half = 0; mapped && half < 2; ++half) {
    void* at = static_cast<std::byte*>(base) + half * size;
    // MAP_POPULATE: otherwise page faults would come while frames are being received.
    mapped = ::mmap(at, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED | MAP_POPULATE,
                    file.get(), 0) == at;
  }
  const int error = errno;
  if (!mapped) {
    if (base != MAP_FAILED) ::munmap(base, 2 * size);
    throw base::SetupError("a FIFO of " + std::to_string(size) +
                               " bytes cannot be mapped: " + std::strerror(error) +
                               "; ask for a smaller one or raise the limits (ulimit -v, -n)",
                           error == ENOSPC ? ENOMEM : error);  // ENOSPC: a memfd lacks memory
  }
  base_ = static_cast<std::byte*>(base);
}

MirroredMemory::~MirroredMemory() {
  ::munmap(base_, 2 * size_);
}

}  // namespace viaduct::mbcf
