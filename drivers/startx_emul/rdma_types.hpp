// The types in the interface of StarT-X remote DMA; rdma.hpp has the operations. All are plain
// values: copies of them own nothing.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "drivers/link/types.hpp"

namespace viaduct::startx {

struct RdmaConfig {
  // Transfers that may be open for receiving at once. 1 is the rule of the original NIU, which
  // served one transfer at a time. Then two nodes that send to each other at the same time take
  // turns: the one with the lower Ethernet address sends first.
  std::size_t max_open = 16;
  std::size_t max_posted = 1024;  // receives, sends and unanswered requests known at once (each)
  std::size_t max_regions = 256;
};
// A transfer's name has 16 bits for its slot, and there are max_posted slots in each direction.
inline constexpr std::size_t kMaxPosted = 32768;
// A region's name has 16 bits for its slot.
inline constexpr std::size_t kMaxRegions = 65534;

// Names registered memory (a memory region). The memory belongs to the user, who keeps it alive
// until the region is deregistered.
struct RegionId {
  std::uint32_t value = 0;  // 0: none
  auto operator<=>(const RegionId&) const = default;
};

// A range of registered memory.
struct RegionBytes {
  RegionId region;
  std::uint64_t offset = 0;  // bytes from the start of the region
  std::uint64_t length = 0;  // bytes
};

// The right to write up to `length` bytes into a receiver, once. The user may send it to the writer
// in a message of any kind.
struct Right {
  std::uint32_t slot = 0;    // the receiver's index of the transfer
  std::uint32_t key = 0;     // remote key: tells this right from earlier ones in the same slot
  std::uint64_t length = 0;  // bytes that may be written at most
};

// Names a transfer at the side that started it. A name is not used again until its slot has been
// used 65535 times.
struct TransferId {
  std::uint32_t value = 0;  // 0: none
  auto operator<=>(const TransferId&) const = default;
};

enum class RdmaStatus : std::uint8_t {
  ok,
  peer_down,   // the peer ended before the transfer did; a receiver's bytes are undefined
  no_right,    // the right has been revoked or used; part of the data may have been written
  too_long,    // the sender has more than the receiver posted or granted; nothing was written
  bad_region,  // not registered, or the range lies outside it
  no_room,     // a table (max_posted, for grant() max_open) or the link's queue to that peer is
               // full: poll, take completions, try again
};

// A finished transfer: the driver does not touch the user's memory for it any more.
struct Completion {
  TransferId transfer;
  bool receiving;  // a post or a grant; false: a request or a write
  RdmaStatus status;
  link::PeerId peer;
  std::uint64_t length;  // bytes transferred
};

// The result of starting a transfer: `transfer` is set only with RdmaStatus::ok. Any other status
// means that nothing was started and no completion follows.
struct Started {
  RdmaStatus status = RdmaStatus::ok;
  TransferId transfer;
};

}  // namespace viaduct::startx
