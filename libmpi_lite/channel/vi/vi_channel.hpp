// The MPI channel over Virtual Interfaces (docs/mpi.md), after "Impact of On-Demand Connection
// Management in MPI over VIA" (CLUSTER 2002). It uses VIPL as any program does (vipl.h).
//
//  * A control message is one VIPL send from a registered slot. The receiver hands it to the sink
//  in
//    the slot in which it arrived.
//  * A long transfer is RDMA writes from the sender's buffer into the receiver's; the last one
//    carries immediate data, which tells the receiver. If a buffer cannot be registered, the data
//    goes through slots, in pieces.
//  * Credits: each side keeps `window` receive descriptors posted for the other's messages, and two
//    more for messages with nothing but credits. A message uses one credit; credits travel back
//    with every message, and alone as soon as half the window is to be returned. At most two such
//    messages can be on their way: each returns at least half of the window, and only what is out
//    can be returned. So no message finds the receive queue empty.
//
// Connections (connections.cpp) are made when two processes first talk; the static managers
// (static_managers.cpp) make all of them in MPI_Init.
//
// Thread rule: that of Channel. No thread of the channel or of VIPL runs beside it.
#pragma once

#include <chrono>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "libmpi_lite/channel/channel.hpp"
#include "libmpi_lite/channel/pending_failures.hpp"
#include "libmpi_lite/channel/vi/counters.hpp"
#include "libmpi_lite/channel/vi/nic.hpp"
#include "libmpi_lite/channel/vi/slots.hpp"
#include "libmpi_lite/channel/vi/wire.hpp"
#include "libmpi_lite/launch/launch.hpp"

namespace viaduct::mpi {

enum class ViManager { on_demand, static_peer, static_client_server };

struct ViConfig {
  std::string nic = "nic0";
  std::uint64_t job_key = 0;
  ViManager manager = ViManager::on_demand;
  std::size_t eager = 8192;         // Channel::Limits::eager
  std::uint32_t credits = 12;       // the largest window
  std::size_t limit = 0;            // of Virtual Interfaces at a time; 0: none
  std::size_t pinned = 1ull << 30;  // bytes of registered buffers
};
// From the environment. Throws SetupError.
ViConfig vi_config(const Launch& launch);

// A process of the job and the Virtual Interface to it.
//
//       want(): a VI is made, and asks     VIPL: connected       the peer's hello
//   none -------------------------> asking -------------> greeting --------> connected
//    ^  ^                             |                      |                   |
//    |  |  withdraw(), or the peer    |                      |     close(): to   |
//    |  '-- has taken its request ----'----------------------'     make room, or |
//    |      back                                                the peer closes  |
//    |                                                                           v
//    '--------------------- both sides have sent `close` ------------------- closing
//
//   asking: refused, or nobody there; connected, closing: the connection ends ----> lost
//
// Nothing leads out of `lost`.
struct ViPeer {
  enum class State : std::uint8_t { none, asking, greeting, connected, closing, lost };
  int rank = -1;
  State state = State::none;
  VIP_VI_HANDLE vi = nullptr;  // in all states between
  std::uint32_t credits = 0;   // messages that the peer has room for
  std::uint32_t owed = 0;      // credits that the next message returns
  std::uint32_t window = 0;    // credits of this side that are owed, at the peer or on their way
  std::uint32_t posted = 0;    // sends that the device has not completed
  std::uint32_t received = 0;  // messages on this VI, behind the hello
  std::uint32_t sent = 0;      // ... as well
  std::uint32_t sending = 0;   // long transfers to the peer that are not complete
  bool wanted = false;         // is in wanted_, or will be when its VI has gone
  bool answers = false;        // asking because the peer asks
  bool hello_received = false;
  bool close_sent = false;  // `close` is posted
  bool close_received = false;
  bool ending = false;          // is in ending_
  bool left = false;            // has said goodbye
  std::uint64_t last_used = 0;  // when a message was last sent or received, in polls
  std::chrono::steady_clock::time_point since{};  // asking or connected; for limits and warnings
  bool send_waits = false;                        // a send has found no connection
  bool warned = false;                            // the user knows that the peer does not answer
  std::optional<ViAddress> address;               // once it was looked up, or the peer has asked
  std::string end_reason;                         // lost
};

class ViChannel final : public Channel {
 public:
  // Opens the NIC and publishes its address. Throws SetupError.
  ViChannel(ChannelSink& sink, Launch& launch, const ViConfig& config);
  ~ViChannel() override;

  const char* name() const override { return "vi"; }
  Limits limits() const override { return limits_; }
  bool between_nodes() const override { return true; }
  bool send_control(int to, Bytes head, Bytes body) override;
  void offer(int, Bytes, RemoteKey&) override {}  // the receiver's remote key says all
  bool open_receive(int from, MutableBytes into, const RemoteKey* offered, Cookie cookie,
                    RemoteKey& remote_key) override;
  void close_receive(int from, const RemoteKey& remote_key) override;
  bool start_send(int to, Bytes data, const RemoteKey& remote_key, Cookie cookie) override;
  void watch(int rank) override;
  void connect_all() override;
  bool poll() override;
  bool busy() const override;
  bool sleep(std::chrono::microseconds most, int bell) override;
  void finished() override { say_goodbye(0); }
  void ends_early() override { say_goodbye(1); }
  std::string describe(int rank) const override;
  std::vector<base::NamedCounter> all_counters() const override;
  std::string dump(int rank) const override;

  const base::CounterSet<ViCounter>& counters() const { return counters_; }

 private:
  using State = ViPeer::State;
  using Registration = Registrations::Registration;

  // Entries of the completion queue taken in one poll, so that the other channels are polled, too.
  static constexpr std::size_t kBatch = 64;
  // The window with which every connection starts; both ends count on it.
  static constexpr std::uint32_t kFirstWindow = 4;
  // Receive descriptors for messages with nothing but credits.
  static constexpr std::uint32_t kForCredits = 2;
  // After so many messages a connection gets the full window.
  static constexpr std::uint32_t kBusy = 32;
  // Sends that the device may have at once, one of them for credits alone.
  static constexpr std::uint32_t kSends = 15;

  // A receive that is open for one long transfer. Its place in receives_ is its number.
  struct OpenReceive {
    Cookie cookie = 0;
    int from = -1;  // -1: the place is free
    MutableBytes into;
    std::size_t arrived = 0;  // bytes that came in pieces
    Registration* registration = nullptr;
  };
  // A long transfer of this process. Its place in sends_ is named in its slots.
  struct LongSend {
    Cookie cookie = 0;
    int to = -1;  // -1: the place is free
    Bytes data;
    std::size_t started = 0;               // bytes posted
    std::uint32_t parts = 0;               // posted and not complete
    bool whole = false;                    // all parts are posted
    bool failed = false;                   // the device could not send a part
    Registration* registration = nullptr;  // nullptr: in pieces
    ViRemoteKey key;
  };

  ViPeer& peer(int rank) { return peers_[static_cast<std::size_t>(rank)]; }
  const ViPeer& peer(int rank) const { return peers_[static_cast<std::size_t>(rank)]; }

  // ---- vi_channel.cpp: messages ----
  // A control or other message can be sent to the peer at once.
  bool may_send(const ViPeer& p) const {
    return p.state == State::connected && p.credits != 0 && p.posted < kSends - 1;
  }
  [[gnu::noinline]] bool cannot_send(ViPeer& p);
  // Posts a send of the slot's first `bytes`. Uses a credit, except with Kind::credits.
  // `send`: the place of the long transfer that the message is a part of.
  void post(ViPeer& p, ViSlot& slot, ViKind kind, std::size_t bytes, std::uint32_t number = 0,
            std::uint32_t send = ViSlot::kNoSend);
  void set_immediate(ViPeer& p, ViSlot& slot, ViKind kind, std::uint32_t number);
  void submit(ViPeer& p, ViSlot& slot);
  bool post_receive(ViPeer& p, ViSlot& slot);
  void take_received(ViPeer& p);
  void take_sent(ViPeer& p);
  // A message has come; it is in the slot.
  void deliver(ViPeer& p, ViSlot& slot);
  [[gnu::noinline]] void deliver_other(ViPeer& p, ViSlot& slot, ViKind kind);
  // The receive descriptor is the peer's again.
  void return_credit(ViPeer& p, ViKind kind);
  void send_credits_or_later(ViPeer& p);
  bool send_credits(ViPeer& p);
  // Sends what waits in this channel: credits, `close`, parts of long transfers.
  [[gnu::noinline]] bool send_waiting();
  bool work_waits() const { return !owing_.empty() || !unsent_.empty() || closing_ != 0; }
  void say_goodbye(std::uint32_t number);

  // ---- connections.cpp ----
  // The peer is to be connected: now, or when there is room.
  void want(ViPeer& p, bool answers = false);
  bool has_room() const { return limit_ == 0 || open_vis_ < limit_; }
  // none -> asking, or lost.
  void request(ViPeer& p);
  // Makes the peer's VI with its first receives. false: no_room() has been called.
  bool make_vi(ViPeer& p);
  // The device or the kernel has nothing left for another VI.
  void no_room(ViPeer& p);
  void request_again(ViPeer& p);
  bool resolve(ViPeer& p);
  bool take_connect_events();
  void on_outcome(const VIP_CONNECT_EVENT& event);
  void on_peer_asks(VIP_CONNECT_EVENT& event);
  void greet(ViPeer& p);
  void on_hello(ViPeer& p, std::uint32_t version);
  void connected(ViPeer& p);
  // Asks for those that are wanted, as far as there is room, and makes room for the others.
  [[gnu::noinline]] void connect_wanted();
  void make_room(const ViPeer& wanted);
  // Closes the VI in an orderly way: it ends when both sides have sent all they have.
  void close(ViPeer& p);
  bool send_close(ViPeer& p);
  void close_if_done(ViPeer& p);
  // Takes back the request.
  void withdraw(ViPeer& p);
  // The VI is to be destroyed at the end of this poll: it was closed, or its connection has ended.
  void end_soon(ViPeer& p);
  [[gnu::noinline]] void end_vis();
  // `delivers`: what has arrived is handed to the sink.
  void destroy_vi(ViPeer& p, bool delivers);
  void mark_lost(ViPeer& p, std::string_view why);
  void end_transfers(int rank);
  [[gnu::noinline]] bool report_failures();
  void warn_unanswered();

  // ---- static_managers.cpp ----
  void connect_peers();
  void connect_clients_and_servers();
  void wait_for_all(std::chrono::steady_clock::time_point until);
  void connect_to_server(ViPeer& server);
  void connect_to_client(ViPeer& client);
  [[noreturn]] void fail_start(const ViPeer& p, std::string_view why);

  // ---- long_transfers.cpp ----
  void forget_unmapped();
  Registration* registration_of(const void* address, std::size_t bytes);
  // Posts parts of the transfer as far as there are credits; true: all of them.
  bool post_parts(std::uint32_t place);
  bool post_write(LongSend& send, std::uint32_t place);
  bool post_piece(LongSend& send, std::uint32_t place);
  void part_sent(std::uint32_t place, bool ok);
  void end_send(std::uint32_t place, bool ok);
  void take_piece(const ViPeer& p, Bytes message);
  void end_receive(std::uint32_t number, bool ok);
  OpenReceive* open_receive_of(int from, std::uint32_t number);

  ChannelSink& sink_;
  Launch& launch_;
  const ViConfig config_;
  const Limits limits_;
  ViNic nic_;
  UnmappedWatch unmapped_;
  Registrations registrations_;
  ViSlots slots_;
  std::vector<ViPeer> peers_;  // by rank
  std::uint64_t now_ = 0;      // in polls
  std::size_t limit_;          // of VIs at a time; 0: none
  std::size_t open_vis_ = 0;   // peers with a VI
  std::size_t closing_ = 0;    // peers that are `closing`
  std::size_t posted_ = 0;     // sends of all VIs that are not complete
  std::deque<int> wanted_;     // ranks to connect when there is room, oldest first
  std::vector<int> asking_;    // ranks whose requests are looked after by warn_unanswered()
  std::vector<int> ending_;    // ranks whose VIs end with this poll
  std::vector<int> owing_;     // ranks that wait for credits that could not be sent
  std::vector<OpenReceive> receives_;
  std::vector<std::uint32_t> free_receives_;
  std::vector<LongSend> sends_;
  std::vector<std::uint32_t> free_sends_;
  std::vector<std::uint32_t> unsent_;  // places in sends_ with parts to post, oldest first
  PendingFailures pending_failures_;
  base::CounterSet<ViCounter> counters_;
};

// Opens the channel and publishes its address. A fence of the job has to follow before anything is
// sent. Throws SetupError.
std::unique_ptr<Channel> open_vi_channel(ChannelSink& sink, Launch& launch);

}  // namespace viaduct::mpi
