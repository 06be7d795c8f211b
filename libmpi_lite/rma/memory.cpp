#include "libmpi_lite/rma/memory.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>
#include <string>
#include <utility>

namespace viaduct::mpi {

std::byte* WindowMemory::find_attached(MPI_Aint offset, MPI_Aint length) const {
  const auto behind = attached_.upper_bound(offset);
  if (behind == attached_.begin()) return nullptr;
  const auto& [begin, size] = *std::prev(behind);
  const MPI_Aint within = offset - begin;
  if (within > size || length > size - within) return nullptr;
  return reinterpret_cast<std::byte*>(offset);
}

bool WindowMemory::attach(void* base, MPI_Aint size) {
  const auto begin = reinterpret_cast<MPI_Aint>(base);
  const auto behind = attached_.lower_bound(begin);
  if (behind != attached_.end() && (behind->first == begin || behind->first - begin < size))
    return false;
  if (behind != attached_.begin()) {
    const auto& [before, length] = *std::prev(behind);
    if (begin - before < length) return false;
  }
  attached_.emplace(begin, size);
  return true;
}

bool WindowMemory::detach(const void* base) {
  return attached_.erase(reinterpret_cast<MPI_Aint>(base)) > 0;
}

// ---- shared memory -----------------------------------------------------------------------------

SharedBlock::SharedBlock(SharedBlock&& other) noexcept {
  *this = std::move(other);
}

SharedBlock& SharedBlock::operator=(SharedBlock&& other) noexcept {
  std::swap(fd_, other.fd_);
  std::swap(data_, other.data_);
  std::swap(bytes_, other.bytes_);
  return *this;
}

SharedBlock::~SharedBlock() {
  if (data_) ::munmap(data_, bytes_);
}

bool SharedBlock::map(int fd, std::size_t bytes) {
  void* const at = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  if (at == MAP_FAILED) return false;
  data_ = static_cast<std::byte*>(at);
  bytes_ = bytes;
  return true;
}

bool SharedBlock::create(std::size_t bytes) {
  fd_ = base::UniqueFd(::memfd_create("viaduct-window", MFD_CLOEXEC));
  return fd_ && ::ftruncate(fd_.get(), static_cast<off_t>(bytes)) == 0 && map(fd_.get(), bytes);
}

bool SharedBlock::open(int pid, int fd, std::size_t bytes) {
  const std::string path = "/proc/" + std::to_string(pid) + "/fd/" + std::to_string(fd);
  const base::UniqueFd file(::open(path.c_str(), O_RDWR | O_CLOEXEC));
  return file && map(file.get(), bytes);
}

}  // namespace viaduct::mpi
