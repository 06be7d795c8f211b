// The memory that both ends of a memif share, as its control messages tell of it (memif
// protocol 2.0, DPDK's guide to the memif poll mode driver), and in it the place of the frame that
// is sent next.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <span>

#include "drivers/link/prefetch.hpp"

namespace viaduct::link {

// Where a memif port writes its next frame. The descriptor, the buffer and the index that says how
// much room there is were last in the cache of the other end's CPU. Whoever answers a frame waits
// for those lines one after the other, unless they are fetched when the frame arrives: docs/link.md
// tells what that is worth.
class NextFrame {
 public:
  NextFrame() = default;  // nowhere
  // `own`: the index that the port itself advances, `theirs` the other; the arrays begin with slot
  // 0.
  NextFrame(const volatile std::uint16_t* own, const void* theirs, const std::byte* descriptors,
            const std::byte* buffers, std::size_t buffer_bytes, std::size_t slots)
      : own_(own),
        theirs_(theirs),
        descriptors_(descriptors),
        buffers_(buffers),
        buffer_bytes_(buffer_bytes),
        mask_(slots - 1) {}

  explicit operator bool() const { return own_ != nullptr; }
  std::size_t slot() const { return *own_ & mask_; }
  void fetch() const {
    const std::size_t at = slot();
    const std::byte* const buffer = buffers_ + at * buffer_bytes_;
    __builtin_prefetch(theirs_);
    own_soon(descriptors_ + at * kDescriptor);
    for (std::size_t line = 0; line < kLines; ++line) own_soon(buffer + line * kLine);
  }

  static constexpr std::size_t kDescriptor = 16;
  static constexpr std::size_t kLine = 64;
  // Enough for the headers and a few words of every protocol; copies of more fetch for themselves.
  static constexpr std::size_t kLines = 3;

 private:
  const volatile std::uint16_t* own_ = nullptr;
  const void* theirs_ = nullptr;
  const std::byte* descriptors_ = nullptr;
  const std::byte* buffers_ = nullptr;
  std::size_t buffer_bytes_ = 0, mask_ = 0;
};

// Maps the memory a second time, so that it is there as long as we want it, whatever the driver or
// another port of this process does with its own mapping.
class MemifRings {
 public:
  // The role of the port whose next frames are wanted.
  explicit MemifRings(bool server) : server_(server) {}
  ~MemifRings() { forget(); }
  MemifRings(const MemifRings&) = delete;
  MemifRings& operator=(const MemifRings&) = delete;

  // To be called with each message from the client to the server, and the file it carries (-1:
  // none). Nothing in it is believed that can be checked.
  void learn(std::span<const std::byte> message, int file);
  // Once both drivers have mapped the memory: maps all its pages everywhere in this process.
  void populate() const;
  // Nowhere, if the buffers are not in fixed places of that memory, one behind the other (zero-copy
  // clients, other programs than DPDK).
  NextFrame next_frame() const;
  // What next_frame() gave before is no longer valid.
  void forget();

 private:
  void map(int file);

  bool server_;
  std::uint16_t region_ = 0;  // number of the region that is mapped
  std::byte* memory_ = nullptr;
  std::size_t bytes_ = 0;
  dev_t device_ = 0;  // of the file, to know other mappings of it by
  ino_t inode_ = 0;

  // The ring in which this port sends.
  bool known_ = false;
  std::uint16_t ring_region_ = 0;
  std::size_t offset_ = 0, slots_ = 0;
};

}  // namespace viaduct::link
