// Works around: DPDK's memif driver (seen with 22.11), which prefetches nothing and has no receive
// interrupt.
// Safe with another version: the rings stay unknown unless the client speaks protocol 2.0, which
// fixes their layout, and each offset in them has been checked. Costs: a look at the ring in each
// poll, in place of the driver's empty receive, which takes longer.
//
// The memory that both ends of a memif share, as its control messages tell of it (memif
// protocol 2.0), how to have its cache lines in the cache when they are needed, and the eventfd
// that the other end rings.
#pragma once

#include <rte_config.h>
#include <sys/types.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>

#include "drivers/base/prefetch.hpp"
#include "drivers/base/unique_fd.hpp"

namespace viaduct::port {

// One direction, seen from either end. The frame's descriptor and buffer, and the index that tells
// of it, were last in the cache of the other end's CPU; a driver fetches them one after the other,
// when it comes to them. docs/link.md tells what it is worth to be there first.
class MemifRing {
 public:
  MemifRing() = default;  // unknown
  // `filled` counts the frames that were put into the ring, `taken` and `ahead` those that were
  // taken from it: *taken - ahead. The arrays begin with slot 0; `slots` is a power of two.
  MemifRing(const volatile std::uint16_t* filled, const volatile std::uint16_t* taken,
            std::size_t ahead, std::span<const std::byte> descriptors, const std::byte* buffers,
            std::size_t buffer_bytes)
      : filled_(filled),
        taken_(taken),
        ahead_(static_cast<std::uint16_t>(ahead)),
        mask_(descriptors.size() / kDescriptor - 1),
        descriptors_(descriptors.data()),
        buffers_(buffers),
        buffer_bytes_(buffer_bytes) {}

  explicit operator bool() const { return filled_ != nullptr; }

  // The end that sends. `bytes`: how long the frame may be.
  std::size_t next_slot() const { return *filled_ & mask_; }
  void fetch_next(std::size_t bytes) const {
    const std::size_t slot = next_slot();
    __builtin_prefetch(const_cast<const std::uint16_t*>(taken_));
    base::prefetch_for_write(descriptors_ + slot * kDescriptor);
    bytes = std::min(bytes, kMaxFetched);
    for (std::size_t at = 0; at < bytes; at += kLine) base::prefetch_for_write(buffer(slot) + at);
  }

  // The end that receives.
  bool any() const { return *filled_ != taken(); }
  std::size_t first_slot() const { return taken() & mask_; }
  void fetch_first(std::size_t bytes) const {
    const std::size_t slot = first_slot();
    __builtin_prefetch(descriptors_ + slot * kDescriptor);
    bytes = std::min(bytes, kMaxFetched);
    for (std::size_t at = 0; at < bytes; at += kLine) __builtin_prefetch(buffer(slot) + at);
  }

  static constexpr std::size_t kDescriptor = 16;
  static constexpr std::size_t kLine = RTE_CACHE_LINE_SIZE;

 private:
  // As many lines as a CPU can wait for at a time; who copies more has the rest fetched by that.
  static constexpr std::size_t kMaxFetched = 16 * kLine;

  std::uint16_t taken() const { return static_cast<std::uint16_t>(*taken_ - ahead_); }
  const std::byte* buffer(std::size_t slot) const { return buffers_ + slot * buffer_bytes_; }

  const volatile std::uint16_t* filled_ = nullptr;
  const volatile std::uint16_t* taken_ = nullptr;
  std::uint16_t ahead_ = 0;
  std::size_t mask_ = 0;
  const std::byte* descriptors_ = nullptr;
  const std::byte* buffers_ = nullptr;
  std::size_t buffer_bytes_ = 0;
};

// How the end that receives is woken: who sends writes to the event, an eventfd that both ends
// have, unless the ring's flags say not to. DPDK's driver says so for good; we ask while we sleep.
class MemifInterrupt {
 public:
  MemifInterrupt() = default;  // unknown
  MemifInterrupt(volatile std::uint16_t* flags, int event) : flags_(flags), event_(event) {}

  explicit operator bool() const { return flags_ != nullptr; }
  int event() const { return event_; }
  void unmask() const { *flags_ = static_cast<std::uint16_t>(*flags_ & ~kMasked); }
  // And forgets what was written.
  void mask() const;

 private:
  static constexpr std::uint16_t kMasked = 1;

  volatile std::uint16_t* flags_ = nullptr;
  int event_ = -1;
};

// Maps the memory a second time, so that it is there as long as we want it, whatever the driver or
// another port of this process does with its own mapping.
class MemifRings {
 public:
  MemifRings() = default;
  ~MemifRings() { forget(); }
  MemifRings(const MemifRings&) = delete;
  MemifRings& operator=(const MemifRings&) = delete;

  // To be called with each message from the client to the server, and the file it carries (-1:
  // none). Nothing in it is believed that can be checked.
  void learn(std::span<const std::byte> message, int file);
  // Once both drivers have mapped the memory: maps all its pages everywhere in this process.
  void populate() const;
  // The ring in which that end sends. Unknown, if the client speaks another version of the
  // protocol, or its buffers are not in fixed places of that memory, one behind the other
  // (zero-copy clients, other programs than DPDK).
  enum Sender : std::uint8_t { kServer, kClient };
  MemifRing ring(Sender sender) const;
  // Of a ring that is known. Unknown, if its event was not sent.
  MemifInterrupt interrupt(Sender sender) const;
  // What was given out is no longer valid.
  void forget();

 private:
  struct RingLayout {
    std::uint16_t region = 0;
    std::size_t offset = 0, slots = 0;  // no slots: unknown
    base::UniqueFd event;               // of its interrupt
  };
  void map(int file);

  bool known_version_ = true;  // of the protocol, as far as the client has told
  RingLayout layouts_[2];
  std::uint16_t region_ = 0;  // number of the region that is mapped
  std::byte* memory_ = nullptr;
  std::size_t bytes_ = 0;
  dev_t device_ = 0;  // of the file, to know other mappings of it by
  ino_t inode_ = 0;
};

}  // namespace viaduct::port
