// NetChannel: what the two channels over an Ethernet link (mbcf, startx) have in common. It owns
// one port per process, the link on that port and the driver on that link. It publishes the
// endpoint address (business card) through the process manager, looks up a peer's on first
// use, keeps the mapping between ranks and link peers, and reports the loss of a peer.
//
// Connections are made on demand: when the first message to a peer is sent, or when the peer's
// first message arrives. ("On-demand connection management" for MPI over VIA does the same.) The
// first message that a process sends to a peer is an introduction: its rank, and where it receives.
// So the receiver of a connection need not ask the process manager.
//
// With a lost peer everything goes on as if the network were slow: what is sent to it is accepted
// and vanishes, and its long transfers end with false.
//
// Thread rule: that of Channel; one thread, no call blocks, except that the first use of a peer
// asks the process manager and waits for the answer.
//
// net.hpp declares NetChannel and has its data path; net_impl.hpp has the rest of it; net.cpp has
// what does not depend on the driver.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "drivers/link/event_queue.hpp"
#include "drivers/link/link.hpp"
#include "drivers/port/eal.hpp"
#include "drivers/port/port.hpp"
#include "drivers/sim/sim_network.hpp"
#include "libmpi_lite/channel/channel.hpp"
#include "libmpi_lite/channel/pending_failures.hpp"
#include "libmpi_lite/launch/launch.hpp"

namespace viaduct::mpi {

// The endpoint address (business card) that a process publishes: its end of the channel.
struct EndpointAddress {
  link::Address address;      // MAC address of the port
  std::uint64_t key = 0;      // what else a peer has to know; mbcf: key of the FIFO
  std::uint64_t control = 0;  // Channel::Limits::control

  // "MAC/key in hexadecimal/control in decimal", without blanks: what Launch::put() takes.
  std::string text() const;
  // Nothing: the text is not such an address.
  static std::optional<EndpointAddress> parse(std::string_view text);
};

struct NetConfig {
  std::string port;       // as the user has named it; empty: it was open already
  link::LinkConfig link;  // configuration of the link, with the job's key
  std::size_t eager = 0;  // Channel::Limits::eager
  // mbcf: false: long transfers go through the FIFO, too, and nothing by Remote Write (the NSR of
  // MPI/MBCF).
  bool remote_write = true;
};
// The configuration for a process of this job, read from the environment. `eager_var` names the
// configuration variable that holds the eager limit of the channel. Throws SetupError.
NetConfig net_config(const Launch& launch, std::string_view eager_var);
// Opens the port that VIADUCT_PORTS gives to this process's local rank, and notes its name in
// `config`. Throws SetupError.
std::shared_ptr<port::Port> open_net_port(const Launch& launch, NetConfig& config);

// How many long transfers in each direction a process of a job of that size can have under way.
std::size_t net_transfers(int job_size);

// The clock of a packet device: the TSC for ports, the simulated network's clock in tests.
template <link::PacketDevice D>
struct ClockOf {
  link::Time operator()() const { return port::now(); }
};
template <>
struct ClockOf<sim::SimPort> {
  std::function<link::Time()> read;  // the test may suspend the reader here, as a scheduler would
  link::Time operator()() const { return read(); }
};

// A process of the job as the network channel sees it, whether or not there is a connection.
//
//            resolve(): address from the process manager
//   unknown  --------------------------------------->  resolved
//      |     on_introduction(): the peer's introduction  |  |
//      |                                                 |  |  try_introduce(): our introduction
//      |  resolve(): no usable address,                  |  |  has been sent
//      |  or no room in the link                         |  +---------------------> ready
//      |                                                 |                            |
//      |           mark_lost(): the link reports peer_down, or a request is refused   |
//      +-----------------------> lost <------------------+----------------------------+
//
// Nothing leads out of `lost`: a process that died does not come back under its rank.
struct NetPeer {
  enum class State : std::uint8_t {
    unknown,   // neither looked up nor heard of
    resolved,  // its link peer id is known; nothing has been sent to it yet
    ready,     // the introduction has been sent: whatever is sent now arrives behind it
    lost,      // cannot be reached any more; what is sent to it vanishes
  };
  State state = State::unknown;
  link::PeerId id;         // its incarnation on the link; 0 while `unknown`
  std::string end_reason;  // if lost: how it ended, for describe()
};

// The common base of the network channels, by static polymorphism. `Self` is the channel, derived
// from this class. `Driver` is the engine of MBCF or the NIU of StarT-X: made of a link and a
// `DriverConfig`, polled instead of the link. `Peer` is a NetPeer with what Self keeps for each
// process.
//
// Self has these members for NetChannel:
//  * receive(most): hands up to `most` received messages to the sink; true: there were some.
//  * take_completions(): reports finished transfers to the sink; true: there were some.
//  * send_introduction(rank): sends the introduction to a `resolved` peer; true: it is now `ready`.
//  * store_key(peer, key): takes note of the key that a peer has published or sent.
//  * end_transfers(rank): ends the transfers of a lost peer that the driver does not end itself.
//  * transfers(): how many long operations of its own it still waits for.
//  * detail(): text for describe().
//  * kRemoteKeyBytes, kWritesNow: for limits(); kDriverCounterInfo: for all_counters().
template <class Self, link::PacketDevice D, class Driver, class DriverConfig, class Peer>
class NetChannel : public Channel {
 public:
  Limits limits() const final { return limits_; }
  bool between_nodes() const final { return true; }
  void offer(int, Bytes, RemoteKey&) final {}  // the receiver's remote key says all

  bool poll() final {
    // Messages come before events: what a peer has sent before it went is still delivered.
    // Completions come before failures: the sink hears of a lost peer after the end of its
    // transfers.
    const InPoll guard(*this);
    driver_.poll(now_);
    bool any = self().receive(kBatch);
    any |= self().take_completions();
    link::Event event;
    if (driver_.next_event(event)) [[unlikely]]
      any |= take_events(event);
    if (!pending_failures_.empty()) [[unlikely]]
      any |= report_failures();
    if (!connecting_.empty()) [[unlikely]]
      warn_unanswered();
    // A long transfer makes progress frame by frame without a message to the sink. So every frame
    // for this process counts as something that happened, and the caller does not fall asleep.
    const std::uint64_t frames = link_.counters()[link::Counter::frames_received] -
                                 link_.counters()[link::Counter::drop_foreign];
    any |= frames != std::exchange(frames_seen_, frames);
    return any;
  }

  bool busy() const final;
  bool sleep(std::chrono::microseconds most, int bell) final {
    // Do not sleep while the sink has still to be told something: only the next poll does that.
    if (!pending_failures_.empty()) return false;
    const link::Time at = clock_();
    const link::Time until = std::min(at + most, link_.next_work());
    return until > at && device_->sleep(until - at, bell);
  }
  std::string describe(int peer) const final;
  std::vector<base::NamedCounter> all_counters() const final;
  std::string counted(int peer) const final;
  std::string dump(int peer) const final;
  std::optional<std::chrono::nanoseconds> last_seen(int peer) const final;
  void ask(int rank) final { link_.ask(peer(rank).id, now()); }

 protected:
  using State = NetPeer::State;

  // Takes a share in `device`. Throws SetupError on a configuration that the link refuses.
  NetChannel(ChannelSink& sink, Launch& launch, std::shared_ptr<D> device, const NetConfig& config,
             const DriverConfig& driver, ClockOf<D> clock);
  ~NetChannel() override = default;

  // Publishes this process's endpoint address; `key` is what store_key() gets at the others.
  void publish(std::uint64_t key);

  // Within poll() the time at its start, so that one poll reads the clock once.
  link::Time now() const { return in_poll_ ? now_ : clock_(); }
  Peer& peer(int rank) { return peers_[static_cast<std::size_t>(rank)]; }
  // The rank of a link peer; -1: that peer has not introduced itself, or it is lost.
  int rank_of(link::PeerId id) const {
    const RankBinding& n = bindings_[id.value & 0xffff];
    return n.id == id ? n.rank : -1;
  }
  // Whether something may be sent to that rank now; introduces this process to it if need be.
  // false: not yet (try again), or lost: lost() tells which.
  bool ready(int rank) {
    const State state = peer(rank).state;
    return state == State::ready || (state != State::lost && try_introduce(rank));
  }
  bool lost(int rank) { return peer(rank).state == State::lost; }
  // Whether the link peer of that rank is known; looks its address up at the process manager if
  // need be, which blocks for the manager's answer. false: the peer is lost.
  bool resolve(int rank);
  // An introduction has arrived: the link peer `id` is that rank. Not trusted: ranks out of range,
  // and this process's own, are ignored.
  void on_introduction(link::PeerId id, std::uint32_t rank, std::uint64_t key);

  // Declares the peer lost, for the reason `why`, and disconnects it. The sink hears of it at the
  // next poll, not now: mark_lost() may be called from inside a call that the sink has made.
  void mark_lost(int rank, std::string_view why);
  // Ends a transfer with a lost peer. The sink hears of it at the next poll, for the same reason.
  void queue_failed_send(Cookie cookie) { pending_failures_.add_send(cookie); }
  void queue_failed_receive(Cookie cookie) { pending_failures_.add_receive(cookie); }

  ChannelSink& sink_;
  Launch& launch_;

 private:
  // Messages handed to the sink in one poll at most, so that the other channels are polled, too.
  static constexpr std::size_t kBatch = 64;
  // How long busy() stays true after the last message or repetition, in retransmission timeouts. A
  // peer whose acknowledgement was lost sends again after one timeout, then after two, four, ...;
  // and its first timeout may be several times the usual one where many frames were lost. 128
  // timeouts leave time for several of these repetitions, each of which is acknowledged.
  static constexpr int kLinger = 128;
  // ... and no longer than this: MPI_Finalize waits for it.
  static constexpr link::Duration kMaxLinger = std::chrono::milliseconds{200};

  // If a peer has not answered for so long, the user is told, once for each peer.
  static constexpr link::Duration kAnswerTimeout = std::chrono::seconds{10};

  // Marks the time in which poll() runs: now() is constant in it.
  struct InPoll {
    explicit InPoll(NetChannel& channel) : channel(channel) {
      channel.now_ = channel.clock_();
      channel.in_poll_ = true;
    }
    ~InPoll() { channel.in_poll_ = false; }
    InPoll(const InPoll&) = delete;
    InPoll& operator=(const InPoll&) = delete;
    NetChannel& channel;
  };
  // What rank a link peer is. The full id is compared, since a slot may pass to another peer.
  struct RankBinding {
    link::PeerId id;
    int rank = -1;
  };
  // A peer that this process has begun to connect to, and that has perhaps not answered yet.
  struct ConnectingPeer {
    int rank;
    link::Time since;
  };

  Self& self() { return static_cast<Self&>(*this); }
  const Self& self() const { return static_cast<const Self&>(*this); }
  // Brings a peer to `ready` if that is possible now.
  bool try_introduce(int rank);
  // How long busy() waits for repetitions.
  link::Duration linger() const;
  // unknown -> resolved.
  void bind_rank(int rank, link::PeerId id, std::uint64_t key);
  // The id no longer means a rank: what still comes from that peer is dropped.
  void unbind_rank(link::PeerId id);
  // The rare parts of poll(), kept out of its instruction cache lines.
  [[gnu::noinline]] bool take_events(link::Event event);
  [[gnu::noinline]] bool report_failures();
  [[gnu::noinline]] void warn_unanswered();

  const NetConfig config_;
  const Limits limits_;
  const ClockOf<D> clock_;
  link::Time now_{};                         // of the poll that is running
  bool in_poll_ = false;                     // now_ holds
  std::uint64_t frames_seen_ = 0;            // frames received when poll() last looked
  mutable std::uint64_t activity_seen_ = 0;  // messages and repetitions when busy() last looked
  mutable link::Time idle_since_{};          // when activity_seen_ changed last
  std::vector<Peer> peers_;                  // by rank
  std::vector<RankBinding> bindings_;        // by the slot in their PeerId (its low 16 bits)
  std::vector<ConnectingPeer> connecting_;   // looked through by each poll until it is empty
  PendingFailures pending_failures_;
  std::shared_ptr<D> device_;  // outlives the link, which outlives the driver: order of destruction

 protected:
  link::Link<D> link_;
  Driver driver_;
};

}  // namespace viaduct::mpi
