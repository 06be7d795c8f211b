// The reliable link: exactly-once messages to many peers over one unreliable packet device.
// docs/link.md tells how and why; docs/wire.md what is on the wire.
//
// Thread rule: one owner thread calls everything. There are no hidden threads: whoever owns a link
// calls poll() often. Nothing on the data path (try_send, push, poll) allocates, blocks or throws.
#pragma once

#include <memory>
#include <vector>

#include "drivers/link/counters.hpp"
#include "drivers/link/frame.hpp"
#include "drivers/link/link_config.hpp"
#include "drivers/link/message.hpp"
#include "drivers/link/packet_device.hpp"
#include "drivers/link/peer.hpp"
#include "drivers/link/peer_table.hpp"
#include "drivers/link/timer_queue.hpp"

namespace viaduct::link {

template <PacketDevice Device>
class Link {
 public:
  using Frame = typename Device::Frame;

  // The device must outlive the link. Throws SetupError on impossible configuration.
  Link(Device& device, const LinkConfig& config);
  ~Link();  // says goodbye to connected peers (best effort) and releases every frame
  Link(const Link&) = delete;
  Link& operator=(const Link&) = delete;

  // Messages for `protocol` go to `sink` (nullptr: detach). The sink must outlive the link or be
  // detached.
  void attach(Protocol protocol, MessageSink* sink);

  // The present life of the peer at `address`; a new one if it has none. Sends nothing: the
  // connection is made when the first message is sent. PeerId{} when max_peers are in use.
  // Allocates: not for the data path.
  PeerId peer(const Address& address);
  // Starts connecting without sending anything; on_peer_up tells when it is done.
  void connect(PeerId peer, Time now);
  // Ends the connection at once, unsent messages are lost; the peer is told (best effort).
  void disconnect(PeerId peer, Time now);

  // Sends head ++ body as one message. Before the connection is up messages are queued.
  SendStatus try_send(PeerId to, Lane lane, Order order, MessageType type,
                      std::span<const std::byte> head, std::span<const std::byte> body,
                      Urgency urgency, Time now);
  // Hands what is queued for all peers to the device now rather than at the next poll.
  void push(Time now);

  // All progress: receives, delivers, acknowledges, retransmits, detects dead peers.
  void poll(Time now);

  // Largest head ++ body in bytes that fits a frame to this peer; before the connection is up, the
  // own port's limit.
  std::size_t max_message(PeerId peer) const;
  bool connected(PeerId peer) const;
  // Everything sent to the peer (to all, without an argument) has been acknowledged.
  bool idle(PeerId peer) const;
  bool idle() const;

  const LinkConfig& config() const { return config_; }
  Device& device() { return device_; }
  const Counters& counters() const { return counters_; }
  PeerView view(PeerId peer) const;           // what is known of a peer, for tools and tests
  std::vector<PeerId> peers() const;          // allocates: for tools
  std::size_t memory_per_peer() const;        // bytes a connected, idle peer costs
  std::size_t frames_held() const;            // frames in any queue of this link

#include "drivers/link/link_private.inc"
};

}  // namespace viaduct::link
