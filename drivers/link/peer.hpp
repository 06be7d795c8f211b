// All that a link knows of one incarnation of one peer: the state of the connection, the
// headers of its frames, a flow for each lane, and the peer's places in the link's lists.
// Link owns its peers (by slot of the connection table) and is the only code that changes them. One
// owner thread.
#pragma once

#include "drivers/base/deadline_heap.hpp"
#include "drivers/link/message.hpp"
#include "drivers/link/rtt.hpp"
#include "drivers/link/rx_lane.hpp"
#include "drivers/link/tx_lane.hpp"

namespace viaduct::link {

// An address as the key of a hash map: its six bytes, zero-extended.
inline std::uint64_t address_key(const Address& a) {
  std::uint64_t key = 0;
  std::memcpy(&key, a.bytes.data(), a.bytes.size());
  return key;
}

// The life of a connection. H is a hello with a good cookie, W a welcome, F any frame of the
// connection that is no handshake (data, ack, goodbye). "Ended" means that
// Link::end_connection frees the Peer and reports a DownReason; nothing is reported of a half-open
// peer that our side never named.
//
//   Link::peer()
//        |
//        v              H                     H from an address without a Peer, or from a new
//      fresh ---------------------.           incarnation of a peer that is up (a second Peer)
//        |  connect(), or the     |                |
//        |  first message         |                |
//        v                        v                |
//   request_sent ---- H ----> accept_sent <--------'
//        |                      |  |  ^
//        | W     .---- W -------'  |  |  H of another incarnation
//        v       v                 |  |  (accept_sent: stays, with a new token)
//   accept_received ---------------|--'
//        |                         |
//        | F                     F |
//        v                         |
//        up <----------------------'
//        |
//        | goodbye, while a receive handler is busy
//        v
//     draining ----- the handlers have taken every message ------> ended (left)
//
// A peer in accept_sent that our side has named, but does not want to be connected to, returns to
// fresh after half_open_for.
//
// To "ended" lead also:
//   any state                 disconnect()                                        closed
//   request_sent,             our side wants the connection, and it is not up     refused, or
//   accept_sent,              after dead_after (an H that changes the state, or   no_room
//   accept_received           of another incarnation, begins that time anew)
//                             our small hellos are answered (retry), but not      path_mtu
//                             even padded ones of kMinMtu bytes
//   accept_sent               our side has not named the peer, and half_open_for  (unreported)
//                             has passed, or the peer is evicted for another one
//   accept_sent,              the peer is a successor, and the peer before it     (unreported)
//   as a successor            ends, or an H of yet another incarnation arrives
//   up                        goodbye, and no handler is busy                     left
//                             dead_after without a frame, keepalives unanswered   silent
//                             F of the new incarnation's connection               restarted
enum class PeerState : std::uint8_t {
  fresh,            // named by the user; nothing sent
  request_sent,     // hello sent
  accept_sent,      // hello with a good cookie received, welcome sent: half-open, until a frame
                    // proves that the peer has heard the welcome
  accept_received,  // welcome received and acknowledged: not up before a frame shows that the peer
                    // is up, since the peer may have forgotten the connection before our side read
                    // the welcome
  up,
  draining,  // the peer said goodbye; busy handlers have still to take messages that our side has
             // acknowledged
};

// A phrase for dumps and tools; a static string.
const char* text(PeerState state);

// A peer's membership in one of the link's lists of peers with work to do.
template <class Peer>
struct PeerHook {
  Peer* previous = nullptr;
  Peer* next = nullptr;
  bool linked = false;
};

// A doubly linked, intrusive list of peers: adding and removing are O(1), allocate nothing, and do
// nothing if the peer is already in the list, or not in it. Removing needs no search, so a peer
// that ends leaves all lists at once.
template <class Peer, PeerHook<Peer> Peer::*Hook>
class PeerList {
 public:
  Peer* front() const { return head_; }
  static Peer* next(Peer* p) { return (p->*Hook).next; }
  void add(Peer* p) {
    auto& hook = p->*Hook;
    if (hook.linked) return;
    hook = {tail_, nullptr, true};
    (tail_ ? (tail_->*Hook).next : head_) = p;
    tail_ = p;
  }
  void add_front(Peer* p) {
    auto& hook = p->*Hook;
    if (hook.linked) return;
    hook = {nullptr, head_, true};
    (head_ ? (head_->*Hook).previous : tail_) = p;
    head_ = p;
  }
  void remove(Peer* p) {
    auto& hook = p->*Hook;
    if (!hook.linked) return;
    (hook.previous ? (hook.previous->*Hook).next : head_) = hook.next;
    (hook.next ? (hook.next->*Hook).previous : tail_) = hook.previous;
    hook = {};
  }

 private:
  Peer* head_ = nullptr;
  Peer* tail_ = nullptr;
};

template <PacketDevice Device>
struct Peer;

// One lane of one peer, in both directions: the state of what is sent and of what is received. A
// member of its peer, which owns it: a flow lives as long as its peer, never moves, and names both
// its peer and its lane, so a reference to a flow is all that the link's members pass on.
template <PacketDevice Device>
struct Flow {
  Flow(Peer<Device>& of, Lane in) : peer(of), lane(in) {}
  Flow(const Flow&) = delete;  // nor can a Peer be copied: the copy's flows would name the original
  Flow& operator=(const Flow&) = delete;

  Peer<Device>& peer;
  const Lane lane;
  TxLane<Device> send;
  RxLane<Device> receive;
};

template <PacketDevice Device>
struct Peer {
  using Hook = PeerHook<Peer>;

  PeerId id;
  Address address;
  PeerState state = PeerState::fresh;
  bool checksums = true;         // frames of the connection carry a CRC32C, in both directions
  bool wanted = false;           // our side has asked for the connection
  bool cookie_returned = false;  // the last hello that was sent had a cookie
  bool no_room = false;          // the peer has answered that its connection table is full
  std::uint16_t mtu = kMinMtu;   // Ethernet payload both sides can take

  FrameHeader outgoing{};              // the route of each frame to this peer
  std::uint32_t outgoing_sum = 0;      // route_checksum of the peer's seed and `outgoing`
  FrameHeader incoming{};              // the route of each frame from this peer
  std::uint32_t incoming_seed = 0;     // our secret, with which the checksums of those frames begin
  std::uint32_t incoming_sum = 0;      // route_checksum of `incoming_seed` and `incoming`
  std::uint64_t incarnation = 0;       // the peer's; 0: not known
  PeerId successor;                    // a new incarnation of this peer, not up yet
  std::uint32_t handshake_rounds = 0;  // of hello or welcome, for the back-off
  std::uint16_t tried_mtu = 0;         // the size of our hellos with a cookie; 0: none has gone
  std::uint16_t mtu_tries = 0;         // hellos of that size that went unanswered
  Time handshake_at{};                 // when to repeat hello or welcome
  Time handshake_sent_at{};            // when they were last sent

  std::array<Flow<Device>, kLanes> flows{
      {{*this, Lane::high}, {*this, Lane::low}, {*this, Lane::bulk}}};
  RttEstimator rtt;

  // When a frame of the connection last arrived (during the handshake: when the handshake began),
  // and when the last keepalive or window probe left.
  Time last_heard{}, probe_sent_at{};
  std::uint32_t unanswered_probes = 0;  // since last_heard

  // Memberships in the link's lists of the same names.
  Hook pending_hook, ack_hook, stalled_hook, credit_waiter_hook;
  Hook half_open_hook;  // made by an incoming hello, not yet up, and not named by our side
  Time ack_at{};        // when an ack frame is due; valid while ack_hook is linked
  // The peer's one timer, in the link's DeadlineHeap.
  Time timer_at{};
  std::uint32_t timer_position = base::kNotQueued;

  Flow<Device>& flow(Lane lane) { return flows[index_of(lane)]; }
  const Flow<Device>& flow(Lane lane) const { return flows[index_of(lane)]; }
  // Bytes of messages, their headers included, that a data frame to this peer can carry.
  std::size_t payload_capacity() const { return mtu - kLinkHeader; }
  bool up() const { return state == PeerState::up; }
  // The next frame of the connection that is no handshake brings the connection up.
  bool nearly_up() const {
    return state == PeerState::accept_sent || state == PeerState::accept_received;
  }
  bool draining() const { return state == PeerState::draining; }
  bool half_open() const { return half_open_hook.linked; }
};

// A copy of what Link::view tells tools and tests of a peer.
struct PeerView {
  Address address;
  PeerState state = PeerState::fresh;
  bool answered = false;  // the peer has answered our connection requests, in whatever way
  bool no_room = false;   // the peer has answered that its connection table is full
  std::size_t mtu = 0;
  Duration round_trip{0}, timeout{0};
  struct LaneView {
    std::uint32_t backlog, in_flight, credit;  // sending, in frames
    std::uint32_t held, window;                // receiving, in frames
  } lanes[kLanes]{};
};

}  // namespace viaduct::link
