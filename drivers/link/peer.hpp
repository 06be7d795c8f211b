// All that a link knows of one life of one peer.
#pragma once

#include "drivers/base/deadline_heap.hpp"
#include "drivers/link/message.hpp"
#include "drivers/link/rtt.hpp"
#include "drivers/link/rx_lane.hpp"
#include "drivers/link/tx_lane.hpp"

namespace viaduct::link {

// An address as a hash map's key.
inline std::uint64_t address_key(const Address& a) {
  std::uint64_t key = 0;
  std::memcpy(&key, a.bytes.data(), a.bytes.size());
  return key;
}

enum class PeerState : std::uint8_t {
  fresh,       // named by the user; nothing sent
  greeting,    // hello sent
  answering,   // hello with a good cookie received, welcome sent: half-open, until the peer proves
               // that it heard us
  confirming,  // welcome received and acknowledged: not up until the peer shows that it is, as it
               // may have forgotten us before that welcome was read
  up,
  leaving,  // said goodbye; sinks have still to take what it was told has arrived
};

const char* text(PeerState state);

// Membership in one of the link's lists of peers with something to do.
template <class Peer>
struct PeerHook {
  Peer* previous = nullptr;
  Peer* next = nullptr;
  bool linked = false;
};

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
struct Peer {
  using Hook = PeerHook<Peer>;

  PeerId id;
  Address address;
  PeerState state = PeerState::fresh;
  bool checksum = true;
  bool wanted = false;          // our side has asked for the connection
  bool tried = false;           // a hello with a cookie went since the last one without
  bool no_room = false;         // the peer has said that it has none
  std::uint16_t mtu = kMinMtu;  // Ethernet payload both sides can take

  FrameHeader outgoing{};          // the route of each frame to this peer
  std::uint32_t outgoing_sum = 0;  // the checksum of its seed and it
  FrameHeader incoming{};          // the route of each frame from it
  std::uint32_t seed = 0;          // what their checksums begin with
  std::uint32_t incoming_sum = 0;
  std::uint64_t incarnation = 0;  // the peer's; 0: not known
  PeerId successor;               // a new incarnation of it that is still answering
  std::uint32_t greetings = 0;    // hellos or welcomes sent in this handshake
  std::uint16_t probed_mtu = 0;   // of our hellos with a cookie; 0: none has gone
  std::uint16_t probes = 0;       // of those of that size that went unanswered
  Time handshake_at{};            // when to send the next ones
  Time greeted_at{};              // when the last ones were sent

  std::array<TxLane<Device>, kLanes> send;
  std::array<RxLane<Device>, kLanes> receive;
  RttEstimator rtt;

  Time last_heard{}, probe_sent_at{};   // the last probe of any kind
  std::uint32_t unanswered_probes = 0;  // since last_heard

  Hook pending_hook, ack_hook, stalled_hook, credit_waiter_hook;
  Hook half_open_hook;  // made by an incoming hello, not yet up, and unknown to our side
  Time ack_at{};
  Time timer_at{};
  std::uint32_t timer_position = base::kNotQueued;

  std::size_t payload_capacity() const { return mtu - kLinkHeader; }
  bool up() const { return state == PeerState::up; }
  // Any frame of the connection brings it up.
  bool nearly_up() const { return state == PeerState::answering || state == PeerState::confirming; }
  bool leaving() const { return state == PeerState::leaving; }
  bool half_open() const { return half_open_hook.linked; }
};

// For tools and tests.
struct PeerView {
  Address address;
  PeerState state = PeerState::fresh;
  bool answered = false;  // our connection requests, whatever came of it
  bool no_room = false;   // and said that there is no room for us
  std::size_t mtu = 0;
  Duration round_trip{0}, timeout{0};
  struct LaneView {
    std::uint32_t backlog, in_flight, credit;  // sending
    std::uint32_t held, window;                // receiving
  } lanes[kLanes]{};
};

}  // namespace viaduct::link
