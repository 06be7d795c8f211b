// What crosses the border between the link and the protocols above it.
#pragma once

#include "drivers/link/types.hpp"

namespace viaduct::link {

// Protocols that share a link. The number is on the wire (docs/wire.md).
enum class Protocol : std::uint8_t { startx = 1, mbcf = 2, test = 15 };
inline constexpr std::size_t kProtocols = 16;

// `kind` belongs to the protocol.
struct MessageType {
  Protocol protocol;
  std::uint8_t kind;
};

enum class SendStatus : std::uint8_t {
  sent,       // taken over: it will be delivered exactly once, or the peer goes down
  try_again,  // the lane's queue or the frame pool is full: poll, then try again
  too_big,    // larger than max_message()
  peer_down,  // that peer has ended
};

// `now`: hand it to the device before returning (lowest latency), unless kMaxAlone frames that
// went the same way are unacknowledged: the peer is busy with those, and a frame shared with what
// follows costs both sides less. `batch`, and what `now` held back: leave with the next poll,
// sharing a frame with what else goes the same way (highest rate).
enum class Urgency : std::uint8_t { now, batch };
inline constexpr std::uint32_t kMaxAlone = 4;

// A message that has arrived. The bytes lie in the received frame: valid during on_message only.
struct Incoming {
  PeerId from;
  Lane lane;
  Order order;
  std::uint8_t kind;
  Time now;
  std::span<const std::byte> bytes;
};

enum class DownReason : std::uint8_t {
  silent,     // nothing heard for LinkConfig::dead_after
  left,       // it said goodbye, and all that it knew to have arrived has been delivered
  restarted,  // a new incarnation of it has connected
  refused,    // nobody answered the connection requests, or another job got them
  no_room,    // it answered that it has no room for another peer
  path_mtu,   // not even frames of the least size that every port must carry get through
  closed,     // we disconnected
};
const char* text(DownReason reason);

enum class Verdict : std::uint8_t {
  taken,
  busy,  // no room: the same message is offered again at a later poll; only its lane waits
};

// One protocol's receiving side. Called from Link::poll on the owner thread. May call try_send,
// must not call poll, disconnect or destroy the link.
class MessageSink {
 public:
  virtual Verdict on_message(const Incoming& message) = 0;
  // Connected; also for a peer that connected to us.
  virtual void on_peer_up(PeerId, const Address&) {}
  // Told once a life. What was sent and not yet acknowledged may or may not have been delivered.
  virtual void on_peer_down(PeerId, const Address&, DownReason) {}

 protected:
  ~MessageSink() = default;
};

}  // namespace viaduct::link
