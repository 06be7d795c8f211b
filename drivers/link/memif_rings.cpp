#include "drivers/link/memif_rings.hpp"

#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include <cinttypes>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <string>

namespace viaduct::link {
namespace {

// Larger than any memory that we ask for; the other end may have said its size.
constexpr std::size_t kMostBytes = std::size_t{64} << 20;
constexpr unsigned kMostLog2 = 14;

// Control messages: a type, then
//   add region:  number (16 bits), bytes (64); carries the file
//   add ring:    flags (16), number (16), region (16), offset (32), log2 of the slots (8), ...
enum MessageType : std::uint16_t { kAddRegion = 4, kAddRing = 5 };
constexpr std::size_t kLongestFields = 13;
constexpr std::uint16_t kFromClient = 1;  // flag of a ring in which the client sends

// A ring: cookie (32), flags (16) and the head index (16); from the second cache line on the tail
// index (16); from the third on the descriptors: flags (16), region (16), length (32), offset (32)
// and metadata (32). A client's ring is filled at the head, that of a server at the tail.
constexpr std::size_t kHeadAt = 6, kTailAt = 64, kDescriptorsAt = 128;
constexpr std::size_t kRegionAt = 2, kOffsetAt = 8;

template <class Number>
Number number_at(const std::byte* bytes) {
  Number number;
  std::memcpy(&number, bytes, sizeof number);
  return number;
}

}  // namespace

void MemifRings::learn(std::span<const std::byte> message, int file) {
  if (message.size() < kLongestFields) return;
  const std::byte* const at = message.data();
  const auto type = number_at<std::uint16_t>(at);
  if (type == kAddRegion && file >= 0 && memory_ == nullptr) {
    region_ = number_at<std::uint16_t>(at + 2);
    map(file);
  } else if (type == kAddRing && !known_ && number_at<std::uint16_t>(at + 4) == 0 &&
             ((number_at<std::uint16_t>(at + 2) & kFromClient) == 0) == server_) {
    const auto log2 = number_at<std::uint8_t>(at + 12);
    if (log2 > kMostLog2) return;
    known_ = true;
    ring_region_ = number_at<std::uint16_t>(at + 6);
    offset_ = number_at<std::uint32_t>(at + 8);
    slots_ = std::size_t{1} << log2;
  }
}

void MemifRings::map(int file) {
  struct stat status {};
  if (::fstat(file, &status) != 0 || status.st_size <= 0 ||
      static_cast<std::size_t>(status.st_size) > kMostBytes)
    return;
  bytes_ = static_cast<std::size_t>(status.st_size);
  void* const memory = ::mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  if (memory == MAP_FAILED) return;
  memory_ = static_cast<std::byte*>(memory);
  device_ = status.st_dev;
  inode_ = status.st_ino;
}

// Before the first frame: else each of the first thousand frames each way costs a page fault,
// several times the frame's own time, and a prefetch of a page that is not mapped does nothing. The
// driver does not tell where it has mapped them.
void MemifRings::populate() const {
  if (memory_ == nullptr) return;
  std::ifstream maps("/proc/self/maps");
  for (std::string line; std::getline(maps, line);) {
    std::uintptr_t first = 0, end = 0;
    unsigned major = 0, minor = 0;
    std::uint64_t inode = 0;
    if (std::sscanf(line.c_str(), "%" SCNxPTR "-%" SCNxPTR " %*s %*s %x:%x %" SCNu64, &first, &end,
                    &major, &minor, &inode) == 5 &&
        inode == inode_ && makedev(major, minor) == device_)
      ::madvise(reinterpret_cast<void*>(first), end - first, MADV_POPULATE_WRITE);
  }
}

NextFrame MemifRings::next_frame() const {
  if (memory_ == nullptr || !known_ || ring_region_ != region_ ||
      offset_ % alignof(std::uint16_t) ||
      bytes_ < kDescriptorsAt + slots_ * NextFrame::kDescriptor ||
      offset_ > bytes_ - kDescriptorsAt - slots_ * NextFrame::kDescriptor)
    return {};
  const std::byte* const ring = memory_ + offset_;
  const std::byte* const descriptors = ring + kDescriptorsAt;
  const auto buffer = [&](std::size_t slot) -> std::size_t {
    return number_at<std::uint32_t>(descriptors + slot * NextFrame::kDescriptor + kOffsetAt);
  };
  const std::size_t first = buffer(0), apart = buffer(1 % slots_) - first;
  for (std::size_t slot = 0; slot < slots_; ++slot) {
    const std::size_t offset = buffer(slot);
    if (number_at<std::uint16_t>(descriptors + slot * NextFrame::kDescriptor + kRegionAt) !=
            region_ ||
        offset != first + slot * apart || offset >= bytes_ || (slot != 0 && offset <= first))
      return {};
  }
  const std::byte* const head = ring + kHeadAt;
  const std::byte* const tail = ring + kTailAt;
  return {reinterpret_cast<const volatile std::uint16_t*>(server_ ? tail : head),
          server_ ? head : tail,
          descriptors,
          memory_ + first,
          apart,
          slots_};
}

void MemifRings::forget() {
  if (memory_ != nullptr) ::munmap(memory_, bytes_);
  memory_ = nullptr;
  known_ = false;
}

}  // namespace viaduct::link
