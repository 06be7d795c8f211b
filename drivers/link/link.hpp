// The reliable link: exactly-once messages to many peers over one unreliable packet device.
// docs/link.md tells how and why; docs/wire.md what is on the wire.
//
// This header declares the class; its members are in impl/, a file for each concern. The link owns
// its peers (peer.hpp) and every frame it holds, and uses a device that its user owns. The drivers
// (StarT-X, MBCF) attach as receive handlers (message.hpp) and send with try_send.
//
// Thread rule: one owner thread calls everything. There are no hidden threads: the owner of a link
// calls poll() often. Nothing on the data path (try_send, push, poll) blocks or throws. The data
// path does not allocate either; making a connection does.
//
// Time is an argument (`now`), never read inside, so that the same code runs on a TSC and on the
// clock of a simulation. Small steps back are harmless: a handler may answer with the `now` of the
// poll that brought the message.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>
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

  // Makes `sink` the receive handler of `protocol` (nullptr: detach). The handler must outlive the
  // link or be detached. Every attached handler hears of peers that come up and go down.
  void attach(Protocol protocol, ReceiveHandler* sink);

  // The present incarnation of the peer at `address`; a new entry of the connection table if there
  // is none. Sends nothing: the connection is made when the first message is sent. PeerId{} when
  // max_peers are in use, and for the port's own address. Allocates: not for the data path.
  PeerId peer(const Address& address);
  // Requests the connection without a message to send; on_peer_up or on_peer_down reports the
  // outcome. Nothing happens if the connection is up, or was requested before.
  void connect(PeerId peer, Time now);
  // Ends the connection at once and reports DownReason::closed before returning. Messages that are
  // not yet sent or acknowledged may be lost; one goodbye tells the peer (best effort).
  void disconnect(PeerId peer, Time now);

  // Sends head ++ body as one message; the link copies both before returning. Before the connection
  // is up, messages wait in the backlog, and the first one requests the connection. SendStatus says
  // what the caller has to do.
  SendStatus try_send(PeerId to, Lane lane, Order order, MessageType type,
                      std::span<const std::byte> head, std::span<const std::byte> body,
                      Urgency urgency, Time now);
  // Whether the next `messages` (at most kMaxSecured) calls of try_send, with max_message() bytes
  // or less each, to that peer and lane are sure not to say try_again, if no other call comes
  // between: for protocols that must not act on a request unless they can answer. True, too, for a
  // peer that has ended: try_send then says peer_down. Reserves nothing.
  bool secure(PeerId to, Lane lane, std::size_t messages = 1);
  static constexpr std::size_t kMaxSecured = 64;
  // Hands waiting frames of all peers to the device now rather than at the next poll, as far as
  // credit and device allow.
  void push(Time now);

  // All progress: receives, delivers, acknowledges, retransmits, detects dead peers. Calls the
  // receive handlers.
  void poll(Time now);
  // When poll() will have work even if no frame arrives until then, so the owner may sleep until
  // that time or the next frame. Time::min(): now; Time::max(): not without a frame.
  Time next_work() const;

  // The largest message (head and body together), in bytes, that fits a frame to this peer. Before
  // the connection is up: what fits any peer. try_send answers larger messages with try_again until
  // the peer's MTU is known.
  std::size_t max_message(PeerId peer) const;
  bool connected(PeerId peer) const;
  // Everything sent to the peer (without an argument: to all peers) has been acknowledged.
  bool idle(PeerId peer) const;
  bool idle() const;

  const LinkConfig& config() const { return config_; }
  Device& device() { return device_; }
  const Counters& counters() const { return counters_; }
  // The part of the counters that is unusual and belongs to one incarnation of a peer: losses,
  // retransmissions, drops; no counter of ordinary messages. Valid after the connection has ended,
  // until another peer takes its slot; then all zeros.
  const Counters& counters(PeerId peer) const;
  PeerView view(PeerId peer) const;     // for tools and tests; empty for a peer that has ended
  std::vector<PeerId> peers() const;    // in any state; allocates: for tools
  std::size_t memory_per_peer() const;  // bytes a connected, idle peer costs
  std::size_t frames_held() const;      // frames in any queue of this link
  // When a frame of a connected peer last arrived; nullopt: not connected.
  std::optional<Time> last_heard(PeerId peer) const;
  // Sends a connected peer a keepalive, which any peer that polls answers.
  void ask(PeerId peer, Time now);
  // The state of a connection (without a peer: of all) as text for people: a line for the
  // connection, then indented lines for its lanes and counters. Allocates.
  std::string dump(PeerId peer, Time now) const;
  std::string dump(Time now) const;

 private:
  using Peer = link::Peer<Device>;
  using Flow = link::Flow<Device>;
  using Send = TxLane<Device>;
  using Receive = RxLane<Device>;
  static constexpr std::uint16_t kBurst = 32;  // frames: a transmit burst; the most a poll receives
  static constexpr std::uint16_t kReceiveBurst = 8;    // frames that one call to the device fetches
  static constexpr std::uint16_t kFewFrames = 2;       // delivered in a poll: an answer may follow
  static constexpr std::uint32_t kMaxUnanswered = 16;  // probes, before silence means death
  static constexpr Duration kMinAckDelay = std::chrono::microseconds{1};
  // How much later timers run in a poll that has delivered frames; see poll().
  static constexpr Duration kTimerSlack = std::chrono::microseconds{20};
  // How long windows shrink after a peer was refused credit (CreditPool::contended_until).
  static constexpr Duration kContention = std::chrono::milliseconds{10};

  // Makes `now` the time of one call from outside (now_). A receive handler may call from within a
  // poll, which goes on with its own time afterwards. poll() sets now_ itself: a handler must
  // not call it, since a poll must not begin within a delivery.
  class CallTime {
   public:
    CallTime(Link& link, Time now) : link_(link), outer_(std::exchange(link.now_, now)) {}
    ~CallTime() { link_.now_ = outer_; }
    CallTime(const CallTime&) = delete;
    CallTime& operator=(const CallTime&) = delete;

   private:
    Link& link_;
    const Time outer_;
  };

  // Members that are [[gnu::always_inline]] make up the path of an ordinary message; rare paths are
  // [[gnu::noinline]] so that they do not lengthen that code.

  // impl/connection_table.hpp
  // nullptr: that incarnation has ended, or never was.
  Peer* find(PeerId id) const {
    const std::size_t slot = id.value & 0xffff;
    Peer* p = slot < peers_.size() ? peers_[slot].get() : nullptr;
    return p && p->id == id ? p : nullptr;
  }
  // On the wire a connection goes by its slot plus 1 (0: none, in a hello). The token in the route
  // tells the incarnations of a slot apart; the caller compares that.
  Peer* find_connection(std::uint16_t connection) const {
    const std::size_t slot = connection - std::size_t{1};
    return slot < peers_.size() ? peers_[slot].get() : nullptr;
  }
  bool has_slot() const { return !free_slots_.empty() || peers_.size() < config_.max_peers; }
  Peer* create_peer(const Address& address);
  void stop_sending(Peer* peer);
  void free_peer(Peer* peer);
  void report_up(Peer* peer);
  void release_address(Peer* peer);
  void draw_token(Peer* peer);
  void on_goodbye(Peer* peer);
  [[gnu::noinline]] void end_connection(Peer* peer, DownReason reason);

  // impl/handshake.hpp
  void send_request(Peer* peer);
  void repeat_later(Peer* peer);
  void send_hello(Peer* peer, std::uint64_t cookie);
  void send_welcome(Peer* peer);
  void send_handshake(Peer* peer, FrameType type, std::size_t mtu, std::uint64_t cookie);
  void send_retry(const FrameHeader& header, const Handshake& hello, std::uint64_t cookie);
  void enqueue_handshake(const FrameHeader& route, FrameType type, Handshake body, std::size_t mtu,
                         std::uint32_t sum);
  void send_goodbye(Peer* peer);
  [[gnu::noinline]] void receive_handshake(Peer* peer, FrameType type, const FrameHeader& header,
                                           std::span<const std::byte> payload);
  void receive_hello(const FrameHeader& header, const Handshake& hello);
  Peer* accept(const Address& from, const Handshake& hello);
  Peer* create_half_open(const Address& from);
  void receive_welcome(Peer* peer, const Handshake& welcome);
  void receive_retry(Peer* peer, const Handshake& retry);
  bool lower_path_mtu(Peer* peer);
  void remove_half_open(Peer* peer);
  void evict(Peer* half_open);
  std::uint16_t own_mtu() const {
    return static_cast<std::uint16_t>(std::min<std::size_t>(device_.mtu(), UINT16_MAX));
  }
  std::uint16_t smaller_mtu(std::uint16_t theirs) const { return std::min(own_mtu(), theirs); }
  void apply_handshake(Peer* peer, const Handshake& theirs);
  [[gnu::noinline]] void bring_up(Peer* peer);
  void handshake_timer(Peer* peer);

  // impl/transmit.hpp
  [[gnu::always_inline]] Frame* new_frame(Lane lane);
  bool enqueue(Flow& flow, Order order, MessageType type, std::span<const std::byte> head,
               std::span<const std::byte> body, std::size_t capacity);
  Frame* new_control_frame();
  [[gnu::always_inline]] bool can_send(Flow& flow);
  [[gnu::always_inline]] void build_header(Flow& flow, Frame* frame, std::uint32_t sum);
  [[gnu::always_inline]] void on_transmitted(Flow& flow, Frame* frame);
  void transmit_lane(Flow& flow);
  bool enqueue_tx(Frame* frame);  // adds a reference; false: the burst and the device are full
  [[gnu::always_inline]] void flush();
  void send_pending();
  void release_sent(Frame* frame) {
    --frames_sending_;
    Device::release(frame);
  }

  // impl/receive.hpp
  void receive();
  [[gnu::always_inline]] void receive_frame(Frame* frame);
  [[gnu::noinline]] void receive_from_unknown(Frame* frame);
  [[gnu::always_inline]] void receive_data(Peer* peer, Frame* frame, const FrameHeader& header);
  [[gnu::noinline]] void receive_unusual(Flow& flow, Frame* frame, const FrameHeader& header);
  [[gnu::noinline]] void receive_control(Peer* peer, FrameType type, const FrameHeader& header,
                                         std::span<const std::byte> payload);
  [[gnu::always_inline]] bool deliver(Flow& flow, Frame* frame);
  [[gnu::noinline]] void stall(Flow& flow, Frame* frame, std::uint32_t sequence);
  void finish_delivered();
  void deliver_held(Flow& flow);
  void offer_stalled();
  void drop(Counter reason) { counters_.add(reason); }
  // Counts something unusual, for the link and for the peer.
  [[gnu::noinline]] void count(const Peer* peer, Counter what) {
    counters_.add(what);
    peer_counters_[peer->id.value & 0xffff].add(what);
  }

  // impl/credit.hpp
  [[gnu::always_inline]] void on_consumed(Flow& flow);
  void on_credit_wanted(Flow& flow);
  bool grant_credit(Flow& flow);
  void serve_credit_waiters();
  void reclaim_credit(Lane lane);
  void probe_for_credit(Flow& flow);

  // impl/ack.hpp
  void ack_later(Flow& flow);
  Duration ack_delay(const Peer* peer) const;
  [[gnu::noinline]] void send_due_acks();
  bool send_ack(Peer* peer, std::uint8_t flags);

  // impl/loss_recovery.hpp
  [[gnu::noinline]] void acknowledge(Flow& flow, const Acknowledgement& ack, Time heard);
  void receive_ack(Peer* peer, std::span<const std::byte> payload);
  void resend(Flow& flow, Frame* frame, Time at);
  void resend_lost(Flow& flow, Time at);

  // impl/event_loop.hpp
  Duration timeout(const Flow& flow) const;
  Time next_probe(const Peer* peer) const;
  Time next_deadline(const Peer* peer) const;
  [[gnu::noinline]] void run_timers();
  bool peer_timer(Peer* peer);
  void lane_timer(Flow& flow);
  bool probe(Peer* peer);
  void on_probe_sent(Peer* peer);

  // impl/invariants.hpp
  void check_invariants() const;
  bool timer_set(const Peer& peer, Time active) const;

  Device& device_;
  LinkConfig config_;
  Counters counters_;
  std::array<ReceiveHandler*, kProtocols> sinks_{};  // receive handlers by Protocol; not owned

  // The connection table, by slot. A Peer never moves: lists and timers point to it. Not a
  // base::SlotMap: frames find their peer by slot and token, users by the id in the Peer's own
  // first cache line, and a slot's generation and counters can be asked for when its peer has
  // ended.
  std::vector<std::unique_ptr<Peer>> peers_;

  // Peers with work to do. A poll looks at these lists and the timers only, so idle peers cost
  // nothing.
  PeerList<Peer, &Peer::pending_hook> pending_;  // have frames that can leave
  PeerList<Peer, &Peer::ack_hook> acking_;       // have something to acknowledge; due ones in front
  PeerList<Peer, &Peer::stalled_hook> stalled_;  // have messages that a handler was too busy for
  // Asked for credit when there was none (credit waiters).
  PeerList<Peer, &Peer::credit_waiter_hook> credit_waiters_;
  base::DeadlineHeap<Peer> timers_;

  // Frames that were delivered and whose upkeep (freeing the frame, applying its acknowledgement,
  // scheduling ours) waits for the next poll, so that the user's answer can leave first.
  struct Delivered {
    Flow* flow;  // nullptr: the peer has ended since
    Frame* frame;
  };
  Delivered delivered_[kBurst];
  std::uint16_t delivered_count_ = 0;
  Time delivered_at_{};  // `now_` of the poll that received them
  // The time that the call under way was given: poll, connect, try_send, push or ask. Valid during
  // that call only; what those call reads it here. Between calls it is out of date.
  Time now_{};

  // Frames lined up for the device, with a reference each; what the device does not take stays
  // here.
  Frame* tx_burst_[kBurst];
  std::uint16_t tx_burst_size_ = 0;
  std::size_t frames_sending_ = 0;                   // in backlogs and in flight
  std::array<std::size_t, kLanes> sending_limit_{};  // frames_sending_ up to which a lane may add

  // The receiver's memory for one lane of all peers, in frames of credit. Each lane has a pool of
  // its own, so that a lane which is not drained cannot take the other lanes' memory. The rule is
  // the dynamic threshold of shared-memory switches (Choudhury and Hahne, 1998).
  struct CreditPool {
    std::uint32_t capacity = 0, granted = 0;  // in all; the sum of all peers' windows
    std::uint32_t base_granted = 0;           // of `granted`, the base windows: never taken back
    std::uint32_t lease_holders = 0;          // peers with more than their base window
    Time contended_until{};  // a peer was refused credit: until then windows shrink

    // What a window may grow by so that as much remains free as the window has then (one frame
    // less, if the free credit does not divide).
    std::uint32_t max_growth(std::uint32_t window) const {
      const std::uint32_t free = capacity - granted;
      return free > window ? (free - window + 1) / 2 : 0;
    }
    // The fair share of each of `flows` windows: with that share each, as much remains free as one
    // of them has.
    std::uint32_t fair_share(std::uint32_t flows) const {
      return std::max(capacity / (flows + 1), 1u);
    }
  };
  std::array<CreditPool, kLanes> credit_;
  std::uint32_t clock_hand_ = 0;  // the slot at which reclaim_credit stopped looking

  // Members for making and ending peers. They stand apart from the members that every message
  // touches: in between, they would make a round trip a percent slower.
  std::vector<std::uint16_t> generations_;  // by slot
  std::vector<Counters> peer_counters_;     // by slot: of the peer that had it last
  std::vector<std::uint32_t> free_slots_;   // of peers_; the last one is used first
  std::unordered_map<std::uint64_t, std::uint32_t> by_address_;  // to slot
  PeerList<Peer, &Peer::half_open_hook> half_open_;              // the oldest first
  std::size_t half_open_count_ = 0;
  base::SeededRandom random_;
  base::RandomBits secrets_;  // for tokens, seeds and the key of cookies
  Cookies cookies_{secrets_.next(), secrets_.next()};
};

}  // namespace viaduct::link
