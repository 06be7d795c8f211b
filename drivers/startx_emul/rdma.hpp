// StarT-X remote DMA: memory to memory from registered regions. The right to write into a receiver
// is arranged by messages; frames are built and placed by the driver; both sides see completion.
//
//   receiver: post(peer, tag, region bytes)        sender: request(peer, tag, region bytes)
//             <- REQUEST(tag, length)  low lane
//             -> GRANT(right, key)     high lane
//             <- DATA(right, key, offset, bytes) bulk lane, unordered, placed on arrival
//             -> DONE                  high lane; completion on both sides
// Callers that exchange rights by their own messages skip the first two: grant() and write().
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "drivers/link/link.hpp"

namespace viaduct::startx {

struct RdmaConfig {
  std::size_t max_open = 16;      // transfers open for receiving at once; 1 = the original's law
  std::size_t max_posted = 1024;  // posts, requests and transfers known at once (each)
  std::size_t max_regions = 256;
};

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

// The right to write `length` bytes into a receiver, once. Plain data: may travel in a message.
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
  too_long,    // the sender asked for more than the receiver posted; nothing was written
  bad_region,  // not registered, or the range lies outside it
  no_room,     // max_posted reached: poll, take completions, try again
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

template <link::PacketDevice Device>
class Rdma {
 public:
  using Link = link::Link<Device>;

  // RegionId{} when max_regions are registered.
  RegionId register_memory(std::span<std::byte> memory);
  // false while a transfer uses it (nothing changes).
  bool deregister(RegionId region);

  // Receiver: take one transfer with this tag, from `from` or (PeerId{}) from anybody, in the
  // order posted.
  Started post(link::PeerId from, std::uint32_t tag, RegionBytes into);
  // Sender: transfer to whoever posted that tag at `to`. Waits for the post if it comes later.
  Started request(link::PeerId to, std::uint32_t tag, RegionBytes from, link::Time now);

  // The same in one step each, for callers who carry the right in a message of their own.
  Started grant(link::PeerId to, RegionBytes into, Right& right);
  Started write(link::PeerId to, const Right& right, RegionBytes from, link::Time now);

  // Finished transfers, oldest first; false when there is none.
  bool next_completion(Completion& completion);
};

}  // namespace viaduct::startx
