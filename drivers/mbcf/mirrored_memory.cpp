#include "drivers/mbcf/mirrored_memory.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "drivers/link/types.hpp"

namespace viaduct::mbcf {

namespace {

// 0 or an errno. In pieces: a signal undoes the one that is under way, and those that come often
// would never let all of it be done.
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
  const int file = ::memfd_create("viaduct-fifo", MFD_CLOEXEC);
  void* base = MAP_FAILED;
  bool mapped = file >= 0;
  if (mapped) {  // reserves it, so that there is an error here rather than a signal later
    errno = reserve(file, size);
    mapped = errno == 0;
  }
  if (mapped) {
    base = ::mmap(nullptr, 2 * size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    mapped = base != MAP_FAILED;
  }
  for (std::size_t half = 0; mapped && half < 2; ++half) {
    void* at = static_cast<std::byte*>(base) + half * size;
    // All of it is there from the start: a page fault would come in the middle of receiving.
    mapped = ::mmap(at, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED | MAP_POPULATE, file,
                    0) == at;
  }
  const int error = errno;
  if (file >= 0) ::close(file);
  if (!mapped) {
    if (base != MAP_FAILED) ::munmap(base, 2 * size);
    throw base::SetupError("a FIFO of " + std::to_string(size) +
                               " bytes cannot be mapped: " + std::strerror(error) +
                               "; ask for a smaller one or raise the limits (ulimit -v, -n)",
                           error == ENOSPC ? ENOMEM : error);
  }
  base_ = static_cast<std::byte*>(base);
}

MirroredMemory::~MirroredMemory() {
  ::munmap(base_, 2 * size_);
}

}  // namespace viaduct::mbcf
