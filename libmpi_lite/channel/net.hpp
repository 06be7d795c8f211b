// What the channels over an Ethernet link have in common: one port a process, addresses published
// through the process manager and looked up when they are first needed, who is who on the link, and
// what the end of a peer means.
//
// Connections are made when the first message is sent. The first thing that a process says to a
// peer is its rank (and where it receives), so that the one who is spoken to need not look anybody
// up. With a lost peer everything goes on as if the network were slow: what is sent to it is
// accepted and vanishes, and its long transfers end with false.
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
#include "libmpi_lite/launch/launch.hpp"

namespace viaduct::mpi {

// What a process publishes about its end of the channel.
struct Card {
  link::Address address;
  std::uint64_t key = 0;      // what else a peer has to know: the channel's business
  std::uint64_t control = 0;  // Channel::Limits::control

  std::string text() const;
  static std::optional<Card> parse(std::string_view text);
};

struct NetConfig {
  std::string port;  // as the user has named it; empty: it was open already
  link::LinkConfig link;
  std::size_t eager = 0;  // Channel::Limits::eager
};
// For a process of this job, `eager_var` is a configuration variable. Throws SetupError.
NetConfig net_config(const Launch& launch, std::string_view eager_var);
// The port of this process; notes its name.
std::shared_ptr<port::Port> open_net_port(const Launch& launch, NetConfig& config);

// How many long transfers a process of a job of that size can have under way.
std::size_t net_transfers(int job_size);

// The present time: of the TSC for ports, of the simulated network in tests.
template <link::PacketDevice D>
struct ClockOf {
  link::Time operator()() const { return port::now(); }
};
template <>
struct ClockOf<sim::SimPort> {
  std::function<link::Time()> read;  // who reads it may lose the CPU, as the test decides
  link::Time operator()() const { return read(); }
};

// Names for objects of which there is a bounded number, in no order.
template <class T>
class SlotTable {
 public:
  explicit SlotTable(std::size_t most) : most_(most) {}

  // nullptr: as many as there may be are in use.
  T* take(std::uint32_t& name) {
    if (!free_.empty()) {
      name = free_.back();
      free_.pop_back();
    } else {
      if (slots_.size() == most_) return nullptr;
      name = static_cast<std::uint32_t>(slots_.size());
      slots_.emplace_back();
      free_.reserve(slots_.capacity());
    }
    ++used_;
    return &slots_[name];
  }
  void give_back(std::uint32_t name) {
    free_.push_back(name);
    --used_;
  }
  T& operator[](std::uint32_t name) { return slots_[name]; }
  std::size_t size() const { return slots_.size(); }  // names are below it
  std::size_t used() const { return used_; }

 private:
  std::size_t most_, used_ = 0;
  std::vector<T> slots_;
  std::vector<std::uint32_t> free_;
};

struct NetPeer {
  enum class State : std::uint8_t {
    unknown,
    found,  // we know where it is
    ready,  // it has been sent our rank: whatever comes now comes behind that
    lost,
  };
  State state = State::unknown;
  link::PeerId id;
  std::string end;  // if lost: how it ended
};

// `Self` is the channel, derived from this; `Driver` what it drives the link with, made of a link
// and a `DriverConfig`; `Peer` a NetPeer with what Self keeps for each process.
//
// Self has: receive(most), which hands that many received messages to the sink, and
// take_completions(), both telling whether there was anything; introduce(rank), which brings a
// `found` peer to `ready` if it can; learn(peer, key) with what a peer has told or published;
// end_transfers(rank); transfers(), how many of its own it waits for; detail() for describe(); and
// driver_counted(), what the driver has counted, as text.
template <class Self, link::PacketDevice D, class Driver, class DriverConfig, class Peer>
class NetChannel : public Channel {
 public:
  Limits limits() const final { return limits_; }
  void offer(int, Bytes, RemoteKey&) final {}  // the receiver's remote key says all

  bool poll() final {
    const InPoll guard(*this);
    driver_.poll(now_);
    bool any = self().receive(kBatch);
    any |= self().take_completions();
    link::Event event;
    if (driver_.next_event(event)) [[unlikely]]
      any |= take_events(event);
    if (!troubles_.empty()) [[unlikely]]
      any |= tell_troubles();
    if (!awaited_.empty()) [[unlikely]]
      watch_awaited();
    // Long transfers make progress without telling anybody.
    const std::uint64_t heard = link_.counters()[link::Counter::frames_received] -
                                link_.counters()[link::Counter::drop_foreign];
    any |= heard != std::exchange(heard_, heard);
    return any;
  }

  bool busy() const final;
  bool sleep(std::chrono::microseconds most, int bell) final {
    if (!troubles_.empty()) return false;
    const link::Time at = clock_();
    const link::Time until = std::min(at + most, link_.next_work());
    return until > at && device_->sleep(until - at, bell);
  }
  std::string describe(int peer) const final;
  std::vector<std::string> counted() const final;
  std::string counted(int peer) const final;
  std::string dump(int peer) const final;
  std::optional<std::chrono::nanoseconds> last_seen(int peer) const final;
  void ask(int rank) final { link_.ask(peer(rank).id, now()); }

 protected:
  using State = NetPeer::State;

  NetChannel(ChannelSink& sink, Launch& launch, std::shared_ptr<D> device, const NetConfig& config,
             const DriverConfig& driver, ClockOf<D> clock);
  ~NetChannel() = default;

  void publish(std::uint64_t key);

  link::Time now() const { return in_poll_ ? now_ : clock_(); }
  Peer& peer(int rank) { return peers_[static_cast<std::size_t>(rank)]; }
  // Who that is; -1: nobody who has said so.
  int rank_of(link::PeerId id) const {
    const Neighbour& n = neighbours_[id.value & 0xffff];
    return n.id == id ? n.rank : -1;
  }
  // Whether something may be sent to that process. If not: not yet, or it is lost.
  bool ready(int rank) {
    const State state = peer(rank).state;
    return state == State::ready || (state != State::lost && prepare(rank));
  }
  bool lost(int rank) { return peer(rank).state == State::lost; }
  // Whether its name on the link is known; asks the process manager if need be.
  bool found(int rank);
  // A peer says who it is.
  void introduced(link::PeerId id, std::uint32_t rank, std::uint64_t key);

  // It is lost, and the sink hears why at the next poll.
  void give_up(int rank, std::string_view why);
  // A transfer with a lost peer, which the sink hears of at the next poll.
  void fail_send(Cookie cookie) { troubles_.push_back({Trouble::Kind::send, cookie, -1, {}}); }
  void fail_receive(Cookie cookie) {
    troubles_.push_back({Trouble::Kind::receive, cookie, -1, {}});
  }

  ChannelSink& sink_;
  Launch& launch_;

 private:
  // Messages handed over in one poll at most: others want to be polled, too.
  static constexpr std::size_t kBatch = 64;
  // How long a process that has nothing more to do answers those whose acknowledgement was lost: in
  // retransmission timeouts, of which each is twice the one before; and the first may be some times
  // the usual one, where much was lost before.
  static constexpr int kLinger = 128;
  static constexpr link::Duration kLongestLinger = std::chrono::milliseconds{200};

  // After that time without an answer the user hears of it, once for each peer.
  static constexpr link::Duration kAnswerExpected = std::chrono::seconds{10};

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
  struct Neighbour {
    link::PeerId id;
    int rank = -1;
  };
  // A peer that we have called and that has not answered yet.
  struct Awaited {
    int rank;
    link::Time since;
  };
  // What the sink has to hear, in order.
  struct Trouble {
    enum class Kind : std::uint8_t { send, receive, peer } kind;
    Cookie cookie;
    int rank;
    std::string why;
  };

  Self& self() { return static_cast<Self&>(*this); }
  const Self& self() const { return static_cast<const Self&>(*this); }
  bool prepare(int rank);
  link::Duration linger() const;
  void know(int rank, link::PeerId id, std::uint64_t key);
  void forget(link::PeerId id);
  [[gnu::noinline]] bool take_events(link::Event event);
  [[gnu::noinline]] bool tell_troubles();
  [[gnu::noinline]] void watch_awaited();

  const NetConfig config_;
  const Limits limits_;
  const ClockOf<D> clock_;
  link::Time now_{};  // of the poll that is running
  bool in_poll_ = false;
  std::uint64_t heard_ = 0;               // frames received before the last poll
  mutable std::uint64_t heard_idle_ = 0;  // messages and repetitions, when busy() was asked last
  mutable link::Time quiet_since_{};      // since when that has not changed
  std::vector<Peer> peers_;               // by rank
  std::vector<Neighbour> neighbours_;     // by the slot in their PeerId
  std::vector<Awaited> awaited_;
  std::vector<Trouble> troubles_;
  std::shared_ptr<D> device_;

 protected:
  link::Link<D> link_;
  Driver driver_;
};

}  // namespace viaduct::mpi
