// The words in which a user of StarT-X remote DMA and the driver talk; rdma.hpp has the operations.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "drivers/link/types.hpp"

namespace viaduct::startx {

struct RdmaConfig {
  // Transfers open for receiving at once. 1 is the original's law: then two nodes that ask each
  // other head to head also take turns, the one with the lower Ethernet address first.
  std::size_t max_open = 16;
  std::size_t max_posted = 1024;  // receives, sends and unanswered requests known at once (each)
  std::size_t max_regions = 256;
};
inline constexpr std::size_t kMaxPosted = 32768;
inline constexpr std::size_t kMaxRegions = 65534;

// Memory that RDMA may use. Registered by the owner, who keeps it alive until deregistered.
struct RegionId {
  std::uint32_t value = 0;  // 0: none
  auto operator<=>(const RegionId&) const = default;
};

struct RegionBytes {
  RegionId region;
  std::uint64_t offset = 0;
  std::uint64_t length = 0;
};

// The right to write up to `length` bytes into a receiver, once. Plain data: may travel in a
// message.
struct Right {
  std::uint32_t slot = 0;
  std::uint32_t key = 0;
  std::uint64_t length = 0;
};

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

struct Completion {
  TransferId transfer;
  bool receiving;
  RdmaStatus status;
  link::PeerId peer;
  std::uint64_t length;  // bytes transferred
};

// What starting something gave: `transfer` is set only with RdmaStatus::ok.
struct Started {
  RdmaStatus status = RdmaStatus::ok;
  TransferId transfer;
};

}  // namespace viaduct::startx
