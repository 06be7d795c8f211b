// What the link and the protocols above it exchange: message types, send results, received
// messages, the receive handler (ReceiveHandler), and the reasons for which a connection ends.
#pragma once

#include "drivers/link/types.hpp"

namespace viaduct::link {

// Protocols that share a link; each has at most one receive handler (Link::attach). The number is
// on the wire (docs/wire.md).
enum class Protocol : std::uint8_t { startx = 1, mbcf = 2, test = 15 };
inline constexpr std::size_t kProtocols = 16;

struct MessageType {
  Protocol protocol;
  std::uint8_t kind;  // the protocol's own; the link only carries it
};

// What became of a message that was given to Link::try_send. Except for `sent` the link has copied
// nothing and keeps nothing.
enum class SendStatus : std::uint8_t {
  sent,       // copied: the link delivers the message exactly once, or reports the peer as down
  try_again,  // the lane's backlog or the frame pool is full, or the message may fit once the
              // peer's MTU is known: poll, then try again
  too_big,    // larger than max_message()
  peer_down,  // that incarnation of the peer has ended
};

// When a message leaves.
// `now`: the link hands the message to the device before try_send returns (lowest latency). If
// kMaxAlone frames of the same lane are unacknowledged, the message waits as with `batch`: the peer
// is busy with those frames, and sharing a frame with later messages costs both sides less.
// `batch`: the message leaves with the next poll, in one frame with other messages that go the same
// way (highest rate).
enum class Urgency : std::uint8_t { now, batch };
inline constexpr std::uint32_t kMaxAlone = 4;

// A received message. `bytes` lie in the received frame and are valid during on_message only.
struct Incoming {
  PeerId from;
  Lane lane;
  Order order;
  std::uint8_t kind;  // MessageType::kind
  Time now;           // of the poll that received or re-offered the message
  std::span<const std::byte> bytes;
};

// Why a connection, or the attempt to make one, has ended.
enum class DownReason : std::uint8_t {
  silent,     // no frame for LinkConfig::dead_after, although keepalives asked for an answer
  left,       // the peer said goodbye, and every message that it knew to have arrived is delivered
  restarted,  // a new incarnation of the peer has connected
  refused,    // the connection requests went unanswered: no link at that address, or another job's
  no_room,    // the peer answered that its connection table is full
  path_mtu,   // the peer answers, but not even frames of kMinMtu bytes get through
  closed,     // our side called disconnect
};
// A phrase for log messages; a static string.
const char* text(DownReason reason);

// What a receive handler did with a message.
enum class RxResult : std::uint8_t {
  consumed,      // the link may free the frame
  backpressure,  // the link offers the same message again at a later poll; only the lane of the
                 // message waits meanwhile
};

// The receive handler of one protocol. The link calls it on the owner thread, from Link::poll (and
// on_peer_down from disconnect, too). A handler may call try_send; it must not call poll or
// disconnect, nor destroy the link. The link does not own its handlers.
class ReceiveHandler {
 public:
  virtual RxResult on_message(const Incoming& message) = 0;
  // The connection is made, whichever side asked for it.
  virtual void on_peer_up(PeerId, const Address&) {}
  // Called once for each incarnation, also for a peer that our side has named and that never came
  // up. Messages that were sent and not yet acknowledged may or may not have been delivered.
  virtual void on_peer_down(PeerId, const Address&, DownReason) {}

 protected:
  ~ReceiveHandler() = default;
};

}  // namespace viaduct::link
