// The engine of point-to-point communication: one for each process, between MPI_Init and
// MPI_Finalize. transfer.hpp is what others use.
//
//   eager.cpp          short messages; arrival and matching
//   rendezvous.cpp     long messages: announce, grant, move
//   write_protocol.cpp MBCF's: the receiver says where to write before the sender has sent
//   cancel.cpp         MPI_Cancel
//   loss.cpp           lost processes
//   engine.cpp         peers, backlog, progress
//   report.cpp         its state as text
#pragma once

#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "libmpi_lite/transfer/collective_sink.hpp"
#include "libmpi_lite/transfer/counters.hpp"
#include "libmpi_lite/transfer/match.hpp"
#include "libmpi_lite/transfer/watch.hpp"

namespace viaduct::mpi {

struct TransferConfig {
  bool write_protocol = true;             // VIADUCT_WRITE_PROTOCOL
  bool oversubscribed = false;            // processes of the job share CPUs: who waits gives way
  std::uint32_t eager_budget = 4u << 20;  // bytes of eager messages that may wait at one receiver
  MPI_Count piece = 4 << 20;              // of long messages of types with gaps
  CollectiveSink* collectives = &NoCollectives::self();
};

class Transfer final : private ChannelSink {
 public:
  using OpenChannels = std::function<std::vector<std::unique_ptr<Channel>>(ChannelSink&)>;
  using ChooseChannel =
      std::function<std::size_t(int process)>;  // index of the one that leads there

  // Opens the channels. Operations follow when those are ready.
  Transfer(const OpenChannels& open, ChooseChannel choose, int rank, int size,
           const TransferConfig& config);
  ~Transfer();

  static Transfer& self() { return *self_; }
  static bool exists() { return self_ != nullptr; }

  // The whole of a short send, if it needs no request; false: it does.
  bool send_now(const Items& items, const Envelope& to, SendMode mode);
  // One that does: after send_now().
  void send(const Items& items, const Envelope& to, SendMode mode);
  void start(SendRequest& send);
  void start(ReceiveRequest& receive);
  // Instead of a message: its receive fails because of that process's loss.
  void send_loss(const Envelope& to, int process);
  // Tells a process that a collective operation of that context has failed here.
  void send_refusal(int process, std::uint32_t context, std::uint32_t number, int error);
  // Somebody has waited for long: asks those from whom collectives wait for messages whether they
  // still take part.
  void ask_in_collectives();
  void cancel(SendRequest& send);
  void cancel(ReceiveRequest& receive);
  // A receive for a message that is not in the queues (any more).
  void receive_kept(ReceiveRequest& receive, Unexpected& message);
  MatchQueues& queues(std::uint32_t context) { return matches_[context]; }
  void forget(std::uint32_t context) { matches_.forget(context); }
  // Nobody will receive that message.
  void drop(MatchQueues& queues, Unexpected& message);
  // No message is there for a receive or a probe. Throws Error if one may never come, as a process
  // that could have sent it is lost.
  void check_sender(const Envelope& from);

  bool progress();
  // Why that process was lost, in a sentence.
  std::string loss_text(int process);
  // Something that was said has not even been given to a channel.
  bool has_backlog() const;
  // Work is left that others depend on.
  bool busy() const;
  void print_counters() const;
  // Everything there is, in lines; and what is waited for, in part of one.
  std::string dump();
  std::string text_of(const WaitedFor& what);
  // Another second has passed over the operations under way, in waiting.
  void age_operations();
  // Whoever is in the library says so: see presence_of().
  void ask_peers();
  const TransferCounters& counters(std::size_t channel) const { return counters_[channel]; }
  int rank() const { return rank_; }
  const TransferConfig& config() const { return config_; }
  // What processes know only once they can ask about each other.
  void set_oversubscribed();
  // As Channel's.
  void finished();
  void ends_early();
  // Until a message may have come or something is to be done, at most so long. false: it did not,
  // because there is something to do, or what comes would not wake it.
  bool sleep(std::chrono::microseconds most);
  // To sleep and be woken takes little longer than to yield.
  bool sleeps_lightly() const;
  bool shares_cpu() const;

 private:
  struct Outgoing {  // a control message that found no room
    std::array<std::byte, kLargestHead> head;
    std::size_t head_bytes;
    Bytes body;
    std::unique_ptr<std::byte[]> copy;  // of the body, if it would not last
    Ref<SendRequest> completes;         // when it is sent
  };
  struct Want {  // a receive of the peer's that may be written into
    std::uint32_t context;
    int tag;
    std::uint64_t receive, capacity;
    RemoteKey remote_key;
  };
  struct Ready {  // a transfer that found no room in the channel
    Ref<SendRequest> send;
    Bytes data;
    RemoteKey remote_key;
  };
  struct Peer {
    int rank = 0;  // of the process
    std::size_t channel = 0;
    Channel* through = nullptr;
    std::size_t eager = 0;  // largest eager message, bytes
    bool lost = false;
    bool early = false;         // the write protocol is used with that process
    std::uint32_t sent = 0;     // messages that take part in matching there, modulo 2^32
    std::uint32_t arrived = 0;  // the same from there
    std::uint32_t eager_sent = 0, eager_consumed = 0;   // see ConsumedHead
    std::uint32_t consumed = 0, consumed_reported = 0;  // of what came from there
    std::uint32_t arrived_reported = 0;
    // Write protocol: what was sent and perhaps not yet seen there; whether a receive that asked to
    // be written into is known to get it.
    struct Sent {
      std::uint32_t serial, context;
      int tag;
      bool accounted;
    };
    std::deque<Sent> log;
    // Receives that asked in vain since one that did not, up to kMaxMissed; and because of that,
    // receives that will not ask when they are posted.
    unsigned missed = 0, silent = 0;
    std::deque<Outgoing> outgoing;
    std::deque<Ready> ready;
    std::deque<Want> wants;
    std::deque<Ref<ReceiveRequest>> to_grant;  // no room to open them yet
    bool listed = false;                       // in backlogged_
    std::string why;                           // lost
  };

  // How often a receiver tells what it has taken in: times in a budget, and after that many
  // messages.
  static constexpr std::uint32_t kReportConsumed = 4, kReportMessages = 1024;

  // engine.cpp
  Peer& peer(int process) {
    Peer* p = peers_[static_cast<std::size_t>(process)].get();
    return p ? *p : open_peer(process);
  }
  Peer& open_peer(int process);
  void say(Peer& peer, Bytes head, Bytes body = {}, Ref<SendRequest> completes = nullptr,
           bool copy_body = false);
  void backlog(Peer& peer);
  bool pump();
  bool pump(Peer& peer);
  bool backlogged(const Peer& p) const {
    return !p.outgoing.empty() || !p.ready.empty() || !p.to_grant.empty();
  }
  void enter(Operation& operation);  // gives it a name for the other end
  template <class T>
  T* pending(std::uint64_t id) const;
  template <class T>
  Ref<T> find(std::uint64_t id, const Peer& from);
  // Takes back the name; gives the hold of pending_.
  Ref<Request> leave(Operation& operation) {
    return operation.id == 0 ? nullptr : pending_.remove(std::exchange(operation.id, 0));
  }
  // Its caller holds it.
  void finish(Operation& operation) {
    const Ref<Request> last = leave(operation);
    operation.staging.reset();
    operation.finish();
  }
  void fail(Operation& operation, int error);
  bool malformed(Peer& peer);
  void on_control(int from, Bytes message) override;
  void on_long_sent(Cookie cookie, bool ok) override;
  void on_long_received(Cookie cookie, bool ok) override;

  // loss.cpp
  void on_peer_lost(int peer, std::string_view why) override;
  // A lost process from which a message of `peer` (-1: any) in that communicator could have come;
  // -1: there is none.
  int lost_sender(int peer, const Comm& comm) const;
  void on_loss(Peer& peer, const LossHead& head);
  void on_refusal(Peer& peer, const RefusalHead& head);
  void on_question(Peer& peer, const QuestionHead& head);
  void on_ended(Peer& peer, const QuestionHead& head);
  void fail_for_loss(ReceiveRequest& receive, int process);

  // eager.cpp
  bool may_be_eager(const Peer& p, MPI_Count bytes) const {
    return static_cast<std::uint64_t>(bytes) <= p.eager &&
           p.eager_sent - p.eager_consumed + bytes + kEagerCharge <= config_.eager_budget;
  }
  void send_eager(Peer& peer, SendRequest& send);
  void on_eager(Peer& peer, const Head& head, Bytes data, std::uint64_t send);
  Unexpected& keep(Peer& peer, const Head& head);  // a message that has no receive yet
  void deliver(ReceiveRequest& receive, const Head& head, Bytes data);
  void set_status(ReceiveRequest& receive, const Head& head, std::uint64_t length);
  void consume(Peer& p, std::size_t bytes) {
    p.consumed += static_cast<std::uint32_t>(bytes);
    const bool many = p.early && p.arrived - p.arrived_reported >= kReportMessages;
    if (p.consumed - p.consumed_reported >= config_.eager_budget / kReportConsumed || many)
        [[unlikely]]
      report_consumed(p);
  }
  void report_consumed(Peer& peer);
  void on_consumed(Peer& peer, const ConsumedHead& head);
  void on_matched(Peer& peer, const IdHead& head);

  // rendezvous.cpp
  void announce(Peer& peer, SendRequest& send);
  void on_announce(Peer& peer, const RtsHead& head);
  void accept(ReceiveRequest& receive, Peer& peer, const Head& head, std::uint64_t send,
              std::uint64_t length, const RemoteKey* offer);
  bool grant_next(ReceiveRequest& receive);
  std::size_t staging_room(const Operation& operation) const;
  bool continues(const SendRequest& send, const CtsHead& head) const;
  void on_grant(Peer& peer, const CtsHead& head);
  void send_part(Peer& peer, SendRequest& send, const CtsHead& head);
  void start_long(Peer& peer, SendRequest& send, Bytes data, const RemoteKey& remote_key);
  void received_part(ReceiveRequest& receive);
  void sent_part(SendRequest& send);

  // write_protocol.cpp
  void want(Peer& peer, ReceiveRequest& receive);
  void on_want(Peer& peer, const RtrHead& head);
  bool write_wanted(Peer& peer, SendRequest& send);
  bool take_wanted(Peer& peer, std::uint32_t context, int tag, Want* taken = nullptr);
  void count_sent(Peer& peer, std::uint32_t context, int tag);
  void forget_seen(Peer& peer, std::uint32_t seen);
  void on_written(Peer& peer, const WrittenHead& head);
  void written_part(ReceiveRequest& receive);
  bool may_want(const Peer& peer, const ReceiveRequest& receive) const;
  bool ask(Peer& peer, ReceiveRequest& receive);
  static bool stays_silent(Peer& peer);
  void unwant(ReceiveRequest& receive);
  void end_want(ReceiveRequest& receive);

  // cancel.cpp
  void on_cancel_send(Peer& peer, const IdHead& head);
  void on_cancel_want(Peer& peer, const IdHead& head);
  void on_cancelled(Peer& peer, const CancelledHead& head);

  // report.cpp
  template <class Visit>
  void for_each_operation(Visit visit);
  std::string presence_of(int process) const;
  std::string dump(const Peer& peer) const;

  static inline Transfer* self_ = nullptr;
  const int rank_;
  TransferConfig config_;
  std::vector<std::unique_ptr<Channel>> channels_;
  const ChooseChannel choose_;
  std::vector<TransferCounters> counters_;  // by channel
  std::vector<std::unique_ptr<Peer>> peers_;
  int lost_ = 0;  // of the peers
  std::vector<Peer*> backlogged_;
  std::vector<std::size_t> wanted_;  // by channel: receives that hold a place in it early
  MatchTable matches_;
  HandleTable<Request, HandleKind::request> pending_;  // operations that another process may name
  std::vector<std::byte> scratch_;                     // for packing
};

}  // namespace viaduct::mpi
