// The reliable link: exactly-once messages to many peers over one unreliable packet device.
// docs/link.md tells how and why; docs/wire.md what is on the wire.
//
// Thread rule: one owner thread calls everything. There are no hidden threads: whoever owns a link
// calls poll() often. Nothing on the data path (try_send, push, poll) allocates, blocks or throws.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "drivers/base/random.hpp"
#include "drivers/link/config.hpp"
#include "drivers/link/cookie.hpp"
#include "drivers/link/counters.hpp"
#include "drivers/link/message.hpp"
#include "drivers/link/packet_device.hpp"
#include "drivers/link/peer.hpp"
#include "drivers/link/wire_format.hpp"

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
  // connection is made when the first message is sent. PeerId{} when max_peers are in use,
  // and for the port's own address. Allocates: not for the data path.
  PeerId peer(const Address& address);
  // Starts connecting without sending anything; on_peer_up tells when it is done.
  void connect(PeerId peer, Time now);
  // Ends the connection at once, unsent messages are lost; the peer is told (best effort).
  void disconnect(PeerId peer, Time now);

  // Sends head ++ body as one message. Before the connection is up messages are queued.
  SendStatus try_send(PeerId to, Lane lane, Order order, MessageType type,
                      std::span<const std::byte> head, std::span<const std::byte> body,
                      Urgency urgency, Time now);
  // Makes sure that the next message to that peer and lane will be taken, if it comes before any
  // other call: for protocols whose answer must not fail once they have acted. False: not now.
  bool secure(PeerId to, Lane lane);
  // Hands what is queued for all peers to the device now rather than at the next poll.
  void push(Time now);

  // All progress: receives, delivers, acknowledges, retransmits, detects dead peers.
  void poll(Time now);
  // When poll() will have something to do even if nothing arrives until then; Time::min(): now.
  Time next_work() const;

  // Largest head ++ body in bytes that fits a frame to this peer. Before the connection is up, what
  // fits any peer: larger messages are told to try_again until the peer's MTU is known.
  std::size_t max_message(PeerId peer) const;
  bool connected(PeerId peer) const;
  // Everything sent to the peer (to all, without an argument) has been acknowledged.
  bool idle(PeerId peer) const;
  bool idle() const;

  const LinkConfig& config() const { return config_; }
  Device& device() { return device_; }
  const Counters& counters() const { return counters_; }
  // What of it was seen to belong to one life of a peer: what went wrong or was sent again, not
  // what every message does. Known until another peer takes its place.
  const Counters& counters(PeerId peer) const;
  PeerView view(PeerId peer) const;     // what is known of a peer, for tools and tests
  std::vector<PeerId> peers() const;    // allocates: for tools
  std::size_t memory_per_peer() const;  // bytes a connected, idle peer costs
  std::size_t frames_held() const;      // frames in any queue of this link
  // When anything came from a connected peer last. Asks it to say something: who polls answers.
  std::optional<Time> last_heard(PeerId peer) const;
  void ask(PeerId peer, Time now);
  // The state of a connection (of all), as people read it: lanes, credit, timers, counters. A line
  // for each, two spaces in front of those that belong to the one before. Allocates.
  std::string dump(PeerId peer, Time now) const;
  std::string dump(Time now) const;

 private:
  using Peer = link::Peer<Device>;
  using Send = TxLane<Device>;
  using Receive = RxLane<Device>;
  static constexpr std::uint16_t kBurst = 32;
  static constexpr std::uint16_t kReceiveBurst = 8;
  static constexpr std::uint16_t kFewFrames = 2;       // in a poll: somebody may be about to answer
  static constexpr std::uint32_t kMaxUnanswered = 16;  // probes, before silence means death
  static constexpr Duration kMinAckDelay = std::chrono::microseconds{1};
  static constexpr Duration kTimerSlack = std::chrono::microseconds{20};
  static constexpr Duration kContention = std::chrono::milliseconds{10};

  // impl/connection_table.hpp: who is there
  Peer* find(PeerId id) const {
    const std::size_t slot = id.value & 0xffff;
    Peer* p = slot < peers_.size() ? peers_[slot].get() : nullptr;
    return p && p->id == id ? p : nullptr;
  }
  // On the wire a peer goes by its slot, from 1 on; the token tells its lives apart.
  Peer* find_connection(std::uint16_t connection) const {
    const std::size_t slot = connection - std::size_t{1};
    return slot < peers_.size() ? peers_[slot].get() : nullptr;
  }
  bool has_slot() const { return !free_slots_.empty() || peers_.size() < config_.max_peers; }
  Peer* create(const Address& address);
  void silence(Peer* peer);
  void destroy(Peer* peer);
  void announce(Peer* peer);
  void unname(Peer* peer);
  void draw_token(Peer* peer);
  void leave(Peer* peer);
  [[gnu::noinline]] void forget(Peer* peer, DownReason reason);

  // impl/handshake.hpp
  void greet(Peer* peer, Time now);
  void repeat_later(Peer* peer, Time now);
  void send_hello(Peer* peer, std::uint64_t cookie);
  void send_welcome(Peer* peer, Time now);
  void send_handshake(Peer* peer, FrameType type, std::size_t mtu, std::uint64_t cookie);
  void send_retry(const FrameHeader& header, const Handshake& hello, std::uint64_t cookie);
  void stage_handshake(const FrameHeader& route, FrameType type, Handshake body, std::size_t mtu,
                       std::uint32_t sum);
  void send_goodbye(Peer* peer);
  [[gnu::noinline]] void receive_handshake(Peer* peer, FrameType type, const FrameHeader& header,
                                           std::span<const std::byte> payload, Time now);
  void receive_hello(const FrameHeader& header, const Handshake& hello, Time now);
  Peer* accept(const Address& from, const Handshake& hello, Time now);
  Peer* open_half(const Address& from, Time now);
  void receive_welcome(Peer* peer, const Handshake& welcome, Time now);
  void receive_retry(Peer* peer, const Handshake& retry, Time now);
  bool lower_path_mtu(Peer* peer);
  void adopt(Peer* peer);
  void evict(Peer* half_open);
  std::uint16_t own_mtu() const {
    return static_cast<std::uint16_t>(std::min<std::size_t>(device_.mtu(), UINT16_MAX));
  }
  std::uint16_t smaller_mtu(std::uint16_t theirs) const { return std::min(own_mtu(), theirs); }
  void learn(Peer* peer, const Handshake& theirs);
  [[gnu::noinline]] void bring_up(Peer* peer, Time now);
  void handshake_timer(Peer* peer, Time now);

  // impl/transmit.hpp
  [[gnu::always_inline]] Frame* new_frame(Lane lane);
  bool enqueue(Peer* peer, Lane lane, Order order, MessageType type,
               std::span<const std::byte> head, std::span<const std::byte> body,
               std::size_t capacity);
  Frame* new_control_frame();
  [[gnu::always_inline]] bool can_send(Peer* peer, Lane lane, Time now);
  [[gnu::always_inline]] void build_header(Peer* peer, Lane lane, Frame* frame, std::uint32_t sum);
  [[gnu::always_inline]] void on_transmitted(Peer* peer, Lane lane, Frame* frame, Time now);
  void transmit_lane(Peer* peer, Lane lane, Time now);
  bool enqueue_tx(Frame* frame);  // adds a reference
  [[gnu::always_inline]] void flush();
  void send_pending(Time now);
  void release_sent(Frame* frame) {
    --frames_sending_;
    Device::release(frame);
  }

  // impl/receive.hpp
  void receive(Time now);
  [[gnu::always_inline]] void receive_frame(Frame* frame, Time now);
  [[gnu::noinline]] void receive_from_unknown(Frame* frame, Time now);
  [[gnu::always_inline]] void receive_data(Peer* peer, Frame* frame, const FrameHeader& header,
                                           Time now);
  [[gnu::noinline]] void receive_unusual(Peer* peer, Lane lane, Frame* frame,
                                         const FrameHeader& header, Time now);
  [[gnu::noinline]] void receive_control(Peer* peer, FrameType type, const FrameHeader& header,
                                         std::span<const std::byte> payload, Time now);
  [[gnu::always_inline]] bool deliver(Peer* peer, Lane lane, Order order, Frame* frame, Time now);
  [[gnu::noinline]] void stall(Peer* peer, Lane lane, Frame* frame, std::uint32_t sequence,
                               Time now);
  void settle_delivered();
  void deliver_held(Peer* peer, Lane lane, Time now);
  void offer_stalled(Time now);
  void drop(Counter reason) { counters_.add(reason); }
  // Something unusual that has to do with that peer.
  [[gnu::noinline]] void count(const Peer* peer, Counter what) {
    counters_.add(what);
    peer_counters_[peer->id.value & 0xffff].add(what);
  }

  // impl/credit.hpp
  [[gnu::always_inline]] void consumed(Peer* peer, Lane lane, Time now);
  void on_credit_wanted(Peer* peer, Lane lane, Time now);
  bool grant_credit(Peer* peer, Lane lane, Time now);
  void serve_credit_waiters(Time now);
  void reclaim_credit(Lane lane, Time now);
  void probe_for_credit(Peer* peer, Send& flow, Time now);

  // impl/ack.hpp
  void ack_later(Peer* peer, const Receive& flow, Time now);
  Duration ack_delay(const Peer* peer) const;
  [[gnu::noinline]] void send_due_acks(Time now);
  bool send_ack(Peer* peer, std::uint8_t flags, Time now);

  // impl/loss_recovery.hpp
  [[gnu::noinline]] void acknowledge(Peer* peer, Lane lane, const Acknowledgement& ack, Time now);
  void receive_ack(Peer* peer, std::span<const std::byte> payload, Time now);
  void resend(Peer* peer, Lane lane, Frame* frame, Time now);
  void resend_lost(Peer* peer, Lane lane, Time now);

  // impl/event_loop.hpp
  Duration timeout(const Peer* peer, const Send& flow) const;
  Time next_probe(const Peer* peer) const;
  Time next_deadline(const Peer* peer) const;
  [[gnu::noinline]] void run_timers(Time now);
  bool peer_timer(Peer* peer, Time now);
  void lane_timer(Peer* peer, Lane lane, Time now);
  bool probe(Peer* peer, Time now);
  void on_probe_sent(Peer* peer, Time now);

  // impl/invariants.hpp
  void check_invariants(Time now) const;
  bool timer_set(const Peer& peer, Time active, Time now) const;

  Device& device_;
  LinkConfig config_;
  Counters counters_;
  std::array<MessageSink*, kProtocols> sinks_{};

  std::vector<std::unique_ptr<Peer>> peers_;  // by slot

  PeerList<Peer, &Peer::pending_hook> pending_;  // have frames that can go
  PeerList<Peer, &Peer::ack_hook> acking_;       // have something to acknowledge
  PeerList<Peer, &Peer::stalled_hook> stalled_;  // have messages a sink was too busy for
  // Have asked for credit when there was none.
  PeerList<Peer, &Peer::credit_waiter_hook> credit_waiters_;
  base::DeadlineHeap<Peer> timers_;

  // Frames that were delivered and whose upkeep (freeing them, what they acknowledge, when to
  // acknowledge them) waits for the next poll, so that an answer can leave first.
  struct Delivered {
    Peer* peer;  // nullptr: it has ended since
    Frame* frame;
    Lane lane;
  };
  Delivered delivered_[kBurst];
  std::uint16_t delivered_count_ = 0;
  Time delivered_at_{};

  Frame* tx_burst_[kBurst];
  std::uint16_t tx_burst_size_ = 0;
  std::size_t frames_sending_ = 0;                   // in backlogs and in flight
  std::array<std::size_t, kLanes> sending_limit_{};  // frames_sending_ up to which a lane may add

  // Credit lent and credit there is, in frames; each lane has its own, so that a lane which is not
  // drained cannot take the others' memory.
  struct CreditPool {
    std::uint32_t capacity = 0, lent = 0;
    std::uint32_t promised = 0;   // of what is lent, the base windows, which are never taken back
    std::uint32_t borrowers = 0;  // flows with more than their base window
    Time contended_until{};       // somebody was refused: windows shrink to a fair share

    // What a window may grow by so that as much is left as it has then.
    std::uint32_t spare(std::uint32_t window) const {
      const std::uint32_t free = capacity - lent;
      return free > window ? (free - window + 1) / 2 : 0;
    }
    // Of so many flows, each of which leaves as much as it has.
    std::uint32_t share(std::uint32_t flows) const { return std::max(capacity / (flows + 1), 1u); }
  };
  std::array<CreditPool, kLanes> credit_;
  std::uint32_t clock_hand_ = 0;

  // Of making and ending peers; apart from what every message touches, which their presence in
  // between makes a percent of a round trip slower.
  std::vector<std::uint16_t> generations_;  // by slot
  std::vector<Counters> peer_counters_;     // by slot: of the peer that had it last
  std::vector<std::uint32_t> free_slots_;
  std::unordered_map<std::uint64_t, std::uint32_t> by_address_;  // to slot
  PeerList<Peer, &Peer::half_open_hook> half_open_;              // the oldest first
  std::size_t half_open_count_ = 0;
  std::uint64_t random_state_;
  std::uint64_t random();  // may be told from others that it has given: not for secrets
  base::RandomBits secrets_;
  Cookies cookies_{secrets_.next(), secrets_.next()};
};

}  // namespace viaduct::link
