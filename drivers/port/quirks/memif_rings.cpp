#include "drivers/port/quirks/memif_rings.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <algorithm>
#include <cinttypes>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <string>

namespace viaduct::port {
namespace {

// The other end may have said the size. A mapping costs nothing until it is used; what is populated
// is ours to pay for: two rings of 1024 jumbo frames and more.
constexpr std::size_t kMaxMapped = std::size_t{1} << 30;
constexpr std::size_t kMaxPopulated = std::size_t{64} << 20;
constexpr unsigned kMaxLog2 = 14;

// Control messages: a type, then
//   init:        version of the protocol (16 bits), ...; the client's first message
//   add region:  number (16 bits), bytes (64); carries the file
//   add ring:    flags (16), number (16), region (16), offset (32), log2 of the slots (8), ...;
//                carries the eventfd of the ring's interrupt
enum LayoutMessage : std::uint16_t { kInit = 3, kAddRegion = 4, kAddRing = 5 };
constexpr std::uint16_t kKnownVersion = 0x0200;  // whose rings are laid out as below
constexpr std::size_t kLongestFields = 13;
constexpr std::uint16_t kFromClient = 1;  // flag of a ring in which the client sends

// A ring: cookie (32), flags (16) and head (16); from the second cache line on tail (16); from the
// third on the descriptors: flags (16), region (16), length (32), offset (32), metadata (32).
// Where the client sends, head counts the frames filled and tail those taken. Where the server
// does, tail counts the frames filled, and head the buffers offered, which are always as many as
// fit.
constexpr std::size_t kFlagsAt = 4, kHeadAt = 6, kTailAt = MemifRing::kLine,
                      kDescriptorsAt = 2 * kTailAt;
constexpr std::size_t kRegionAt = 2, kOffsetAt = 8;

template <class Number>
Number number_at(const std::byte* bytes) {
  Number number;
  std::memcpy(&number, bytes, sizeof number);
  return number;
}

// Nothing: there is none, or reading it might block.
base::UniqueFd keep_event(int file) {
  if (file < 0 || (::fcntl(file, F_GETFL) & O_NONBLOCK) == 0) return {};
  return base::UniqueFd(::fcntl(file, F_DUPFD_CLOEXEC, 0));
}

}  // namespace

void MemifInterrupt::mask() const {
  *flags_ = static_cast<std::uint16_t>(*flags_ | kMasked);
  std::uint64_t times = 0;
  [[maybe_unused]] const ssize_t size = ::read(event_, &times, sizeof times);
}

void MemifRings::learn(std::span<const std::byte> message, int file) {
  if (message.size() < kLongestFields) return;
  const std::byte* const at = message.data();
  const auto type = number_at<std::uint16_t>(at);
  if (type == kInit) known_version_ = number_at<std::uint16_t>(at + 2) == kKnownVersion;
  if (!known_version_) return;
  if (type == kAddRegion && file >= 0 && memory_ == nullptr) {
    region_ = number_at<std::uint16_t>(at + 2);
    map(file);
  } else if (type == kAddRing && number_at<std::uint16_t>(at + 4) == 0) {
    const bool from_client = (number_at<std::uint16_t>(at + 2) & kFromClient) != 0;
    RingLayout& layout = layouts_[from_client ? kClient : kServer];
    const auto log2 = number_at<std::uint8_t>(at + 12);
    if (layout.slots != 0 || log2 > kMaxLog2) return;
    layout = {number_at<std::uint16_t>(at + 6), number_at<std::uint32_t>(at + 8),
              std::size_t{1} << log2, keep_event(file)};
  }
}

void MemifRings::map(int file) {
  struct stat status {};
  if (::fstat(file, &status) != 0 || status.st_size <= 0 ||
      static_cast<std::size_t>(status.st_size) > kMaxMapped)
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
      ::madvise(reinterpret_cast<void*>(first),
                std::min({std::size_t{end - first}, bytes_, kMaxPopulated}), MADV_POPULATE_WRITE);
  }
}

MemifRing MemifRings::ring(Sender sender) const {
  const std::uint16_t region = layouts_[sender].region;
  const std::size_t offset = layouts_[sender].offset, slots = layouts_[sender].slots;
  const std::size_t bytes = kDescriptorsAt + slots * MemifRing::kDescriptor;
  if (memory_ == nullptr || slots == 0 || region != region_ || bytes_ < bytes ||
      offset > bytes_ - bytes || offset % alignof(std::uint16_t) != 0)
    return {};
  const std::span descriptors(memory_ + offset + kDescriptorsAt, slots * MemifRing::kDescriptor);
  const auto buffer = [&](std::size_t slot) -> std::size_t {
    return number_at<std::uint32_t>(&descriptors[slot * MemifRing::kDescriptor + kOffsetAt]);
  };
  const std::size_t first = buffer(0), stride = buffer(1 % slots) - first;
  for (std::size_t slot = 0; slot < slots; ++slot) {
    const std::size_t at = buffer(slot);
    if (number_at<std::uint16_t>(&descriptors[slot * MemifRing::kDescriptor + kRegionAt]) !=
            region_ ||
        at != first + slot * stride || at >= bytes_ || (slot != 0 && at <= first))
      return {};
  }
  const auto index = [&](std::size_t at) {
    return reinterpret_cast<const volatile std::uint16_t*>(memory_ + offset + at);
  };
  if (sender == kClient)
    return {index(kHeadAt), index(kTailAt), 0, descriptors, memory_ + first, stride};
  return {index(kTailAt), index(kHeadAt), slots, descriptors, memory_ + first, stride};
}

MemifInterrupt MemifRings::interrupt(Sender sender) const {
  const RingLayout& layout = layouts_[sender];
  if (!ring(sender) || !layout.event) return {};
  return {reinterpret_cast<volatile std::uint16_t*>(memory_ + layout.offset + kFlagsAt),
          layout.event.get()};
}

void MemifRings::forget() {
  if (memory_ != nullptr) ::munmap(memory_, bytes_);
  memory_ = nullptr;
  known_version_ = true;
  for (RingLayout& layout : layouts_) layout = {};
}

}  // namespace viaduct::port
