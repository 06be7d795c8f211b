#include "libmpi_lite/channel/shm_segment.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <string>
#include <utility>

namespace viaduct::mpi {
namespace {

[[noreturn]] void fail(const std::string& what, const std::string& remedy) {
  throw base::SetupError(what + ": " + std::strerror(errno) + "; " + remedy);
}

[[noreturn]] void refuse(int pid) {
  throw base::SetupError("the shared memory of process " + std::to_string(pid) +
                         " is not what it should be; run all ranks with the same version of the "
                         "library");
}

std::string opening_remedy(int error) {
  switch (error) {
    case ENOENT:
    case ESRCH:
      return "it has ended, or is in another container: run all ranks of a node in one, or set "
             "VIADUCT_SHM=off";
    case EMFILE:
    case ENFILE: return "raise the limit on open files (ulimit -n)";
    default: return "run all ranks of a node as one user, or set VIADUCT_SHM=off";
  }
}

Segment* map(int fd, std::size_t bytes) {
  void* memory = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  if (memory == MAP_FAILED) return nullptr;
  // Pages that nobody has used take no memory, and are not to: a core dump would make all of them,
  // and a huge page is eight rings.
  ::madvise(memory, bytes, MADV_DONTDUMP);
  ::madvise(memory, bytes, MADV_NOHUGEPAGE);
  return static_cast<Segment*>(memory);
}

}  // namespace

// A ring is taken by the one word that names its writer. That `claimed` follows is up to whoever
// takes the next one, if this process cannot do it any more: rings below it always have writers.
Ring* Segment::claim(int rank) {
  std::uint32_t n = claimed.load(std::memory_order_acquire);
  for (; n < rings; ++n) {
    std::uint32_t nobody = 0;
    if (ring(n).writer.compare_exchange_strong(nobody, static_cast<std::uint32_t>(rank) + 1,
                                               std::memory_order_acq_rel))
      break;
  }
  if (n >= rings) return nullptr;
  std::uint32_t known = claimed.load(std::memory_order_relaxed);
  while (known <= n && !claimed.compare_exchange_weak(known, n + 1, std::memory_order_release))
    continue;
  return &ring(n);
}

SegmentMap SegmentMap::create(std::uint32_t rings) {
  SegmentMap m;
  m.fd_ = base::UniqueFd(::memfd_create("viaduct-mpi", MFD_CLOEXEC));
  if (!m.fd_) fail("cannot make shared memory (memfd_create)", "set VIADUCT_SHM=off to do without");
  m.bytes_ = Segment::bytes(rings);
  if (::ftruncate(m.fd(), static_cast<off_t>(m.bytes_)) != 0)
    fail("cannot size shared memory to " + std::to_string(m.bytes_) + " bytes",
         "raise the limit on memory of this job or set VIADUCT_SHM=off");
  m.segment_ = map(m.fd(), m.bytes_);
  if (!m.segment_)
    fail("cannot map " + std::to_string(m.bytes_) + " bytes of shared memory",
         "raise the limit on address space (ulimit -v)");
  m.segment_->magic = Segment::kMagic;  // all else is zero as it comes
  m.segment_->rings = rings;
  return m;
}

SegmentMap SegmentMap::open(int pid, int fd, std::uint32_t rings) {
  const std::string path = "/proc/" + std::to_string(pid) + "/fd/" + std::to_string(fd);
  // Closed at the end of the scope: one for each peer would soon be too many.
  const base::UniqueFd file(::open(path.c_str(), O_RDWR | O_CLOEXEC));
  struct stat st {};
  if (!file || ::fstat(file.get(), &st) != 0)
    fail("cannot open the shared memory of process " + std::to_string(pid) + " (" + path + ")",
         opening_remedy(errno));
  SegmentMap m;
  m.bytes_ = Segment::bytes(rings);
  if (static_cast<std::size_t>(st.st_size) != m.bytes_) refuse(pid);
  m.segment_ = map(file.get(), m.bytes_);
  if (!m.segment_)
    fail("cannot map the shared memory of process " + std::to_string(pid),
         "raise the limit on address space (ulimit -v) or set VIADUCT_SHM=off");
  if (m.segment_->magic != Segment::kMagic || m.segment_->rings != rings) refuse(pid);
  return m;
}

SegmentMap::SegmentMap(SegmentMap&& other) noexcept {
  *this = std::move(other);
}

SegmentMap& SegmentMap::operator=(SegmentMap&& other) noexcept {
  std::swap(segment_, other.segment_);
  std::swap(bytes_, other.bytes_);
  std::swap(fd_, other.fd_);
  return *this;
}

SegmentMap::~SegmentMap() {
  if (segment_) ::munmap(segment_, bytes_);
}

}  // namespace viaduct::mpi
