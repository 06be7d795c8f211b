// The engine of point-to-point communication: class Transfer, one object for each process, between
// MPI_Init and MPI_Finalize. Other layers use transfer.hpp; collective/ also asks the engine for
// match queues. The engine owns the channels, the state of each peer, and the matching.
//
//   eager.cpp          short messages; arrival and matching of all messages
//   rendezvous.cpp     long messages, and those without credit: RTS, CTS, data
//   write_protocol.cpp MBCF's: RTR, data; the receiver starts the rendezvous
//   cancel.cpp         MPI_Cancel
//   loss.cpp           lost processes; failed collectives
//   engine.cpp         peers, backlog, progress, dispatch of control messages
//   report.cpp         its state as text
//   statistics.cpp     its counters as text
//
// Threads: all calls come from the thread that is in the library, one at a time. There are no
// threads of the engine's own: everything happens inside calls, mostly in progress(). Nothing
// blocks; only send() waits, by calling progress().
#pragma once

#include <chrono>
#include <cstring>
#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "drivers/base/unique_fd.hpp"
#include "libmpi_lite/transfer/counters.hpp"
#include "libmpi_lite/transfer/match.hpp"
#include "libmpi_lite/transfer/sinks/collective_sink.hpp"
#include "libmpi_lite/transfer/sinks/rma_sink.hpp"
#include "libmpi_lite/transfer/watch.hpp"

namespace viaduct::mpi {

// Whether receives ask to be written into (VIADUCT_WRITE_PROTOCOL): the three ways that MPI/MBCF
// compares, SR and NSR, and one that chooses.
enum class WriteProtocol : std::uint8_t {
  sr,         // all that can ask
  nsr,        // none
  automatic,  // those for which it pays
};

struct TransferConfig {
  WriteProtocol write_protocol = WriteProtocol::automatic;
  bool oversubscribed = false;            // processes of the job share CPUs: a waiting one yields
  std::uint32_t eager_budget = 4u << 20;  // bytes of eager messages from one sender that a receiver
                                          // may not have consumed yet
  MPI_Count piece = 4 << 20;              // bytes: largest part of a message that has to be packed
  CollectiveSink* collectives = &NoCollectives::self();
  RmaSink* rma = &NoRma::self();
};

class Transfer final : private ChannelSink {
 public:
  using OpenChannels = std::function<std::vector<std::unique_ptr<Channel>>(ChannelSink&)>;
  using ChooseChannel =
      std::function<std::size_t(int process)>;  // index of the channel that leads there

  // Opens the channels by `open`, in the order that `choose` counts; a network comes last, as
  // sleep() relies on it. The caller starts no operation before the channels are ready.
  Transfer(const OpenChannels& open, ChooseChannel choose, int rank, int size,
           const TransferConfig& config);
  ~Transfer();

  static Transfer& self() { return *self_; }
  static bool exists() { return self_ != nullptr; }

  // Sends a short contiguous message without making a request. false: it needs a request, and
  // nothing was sent. This is the fast path of MPI_Send.
  bool send_now(const Items& items, const Envelope& to, SendMode mode);
  // Sends with a request and waits for it; to be called when send_now() was false. Throws Error.
  void send(const Items& items, const Envelope& to, SendMode mode);
  // Start an operation. The request may be complete on return, with its outcome in Request::error.
  void start(SendRequest& send);
  void start(ReceiveRequest& receive);
  // Sends a loss notice in place of a message: its receive fails because `process` was lost.
  void send_loss(const Envelope& to, int process);
  // Tells a process that a collective operation of that context has failed here.
  void send_refusal(int process, std::uint32_t context, std::uint32_t number, int error);
  // Asks the processes from which collectives under way await messages whether they have ended
  // that operation. To be called now and then during a wait; CollectiveSink spaces the queries.
  void send_status_queries();
  // One-sided communication: a control message with a head of kind `rma`, at most kLargestHead
  // bytes long. try_send_rma() sends it if the channel has room and nothing waits before it; false:
  // it was not sent. send_rma() lets it wait, with a copy of the body. Messages to one process stay
  // in order. To a lost process both send nothing, and succeed.
  bool try_send_rma(int process, Bytes head, Bytes body);
  void send_rma(int process, Bytes head, Bytes body = {});
  // Bytes of head and body that such a message may have.
  std::size_t rma_limit(int process) { return peer(process).through->limits().control; }
  bool is_lost(int process) { return peer(process).lost; }
  bool any_lost() const { return lost_ > 0; }
  void cancel(SendRequest& send);
  void cancel(ReceiveRequest& receive);
  // Lets `receive` have a message that has been taken out of the queues.
  void receive_unexpected(ReceiveRequest& receive, Unexpected& message);
  MatchQueues& queues(std::uint32_t context) { return matches_[context]; }
  void forget(std::uint32_t context) { matches_.forget(context); }
  // Discards an unexpected message that no receive will take, and returns its credit.
  void drop(MatchQueues& queues, Unexpected& message);
  // For a probe that has found no message. Throws Error if the message may never come, as a process
  // that could have sent it is lost.
  void check_sender(const Envelope& from);

  // Polls everything once; whether anything happened.
  bool progress();
  // The same without the collectives, for one of them that goes on at once.
  bool poll_channels();
  // As the function with this name in transfer.hpp.
  bool may_be_asked(const Envelope& to, std::size_t bytes);
  // Why that process was lost, in a sentence; -1: any of the lost ones.
  std::string loss_text(int process);
  // Control messages, transfers or CTSs to living peers wait for room in a channel.
  bool has_backlog() const;
  // RTRs wait for company; the next progress() sends them.
  bool has_due_rtrs() const { return !due_.empty(); }
  // Work is left that other processes depend on: the backlog, and what Channel::busy() means.
  bool busy() const;
  void print_counters() const;  // to standard error
  // For tools. Which counters there are does not change while the Transfer lives.
  std::vector<ChannelCounters> all_counters() const;
  // What this process has sent so far.
  SentTotals totals() const;
  void print_job(const SentTotals& job) const;  // to standard error
  // The whole state, in lines; and what is waited for, as part of a line.
  std::string dump();
  std::string text_of(const WaitedFor& what);
  // Adds a second to the age of each operation under way. LongWait calls it during a wait.
  void age_operations();
  // Asks all peers for a sign of life: see presence_of().
  void ask_peers();
  const TransferCounters& counters(std::size_t channel) const { return counters_[channel]; }
  int rank() const { return rank_; }
  const TransferConfig& config() const { return config_; }
  // Not part of the configuration, as a process knows it only once it has exchanged addresses with
  // the others.
  void set_oversubscribed();
  // As the functions of Channel with these names, on all channels.
  void connect_all();
  void finished();
  void ends_early();
  // Sleeps until a message may have come or a channel has work, for at most `most`. false: the
  // process did not sleep, because there is something to do, or nothing could wake it.
  bool sleep(std::chrono::microseconds most);
  // Ends the sleep() of another thread of this process.
  void end_sleep();
  // To sleep and be woken takes little longer than to yield.
  bool sleeps_lightly() const;
  bool shares_cpu() const;

 private:
  struct Outgoing {  // a control message that found no room in the channel
    std::array<std::byte, Channel::kMaxHead> head;
    std::size_t head_bytes;
    Bytes body;                         // in `copy`, or in the buffer of a send that is under way
    std::unique_ptr<std::byte[]> copy;  // of the body, if the original does not last
    Ref<SendRequest> completes;         // the request that is complete when the message is sent
  };
  struct Rtr {  // an RTR: a receive of the peer's that this process may write into
    std::uint32_t context;
    int tag;                          // of the receive; may be MPI_ANY_TAG
    std::uint64_t receive, capacity;  // id of the receive; bytes of its buffer
    RemoteKey remote_key;
  };
  struct Ready {  // a transfer that got its CTS, or uses an RTR, and found no room in the channel
    Ref<SendRequest> send;
    Bytes data;
    RemoteKey remote_key;
  };
  // The head of a message, behind an RTR that rides on it.
  class RiddenHead {
   public:
    void add(Bytes part) {
      std::memcpy(bytes_.data() + size_, part.data(), part.size());
      size_ += part.size();
    }
    bool empty() const { return size_ == 0; }
    operator Bytes() const { return {bytes_.data(), size_}; }

   private:
    std::array<std::byte, Channel::kMaxHead> bytes_;
    std::size_t size_ = 0;
  };
  // Another process of the job, or this one. Made when the first operation names it, or its first
  // message arrives, and kept until the end.
  struct Peer {
    int rank = 0;                 // of the process
    std::size_t channel = 0;      // index in channels_
    Channel* through = nullptr;   // the same
    std::size_t eager_limit = 0;  // largest eager message, bytes of data
    bool lost = false;            // for good: a lost process does not come back
    // Write protocol: whether it is used with that process; the least buffer that asks for a write
    // and the least message that is written, in bytes; how many receives of its channel may ask at
    // a time; bytes of an RTR, and of a control message of several; Channel::Limits::writes_now.
    bool write_protocol = false, writes_now = false;
    std::uint64_t least_written = 0;
    std::size_t early = 0, rtr_bytes = 0, most_rtrs = 0;
    std::uint32_t sent = 0;     // messages to it that take part in matching, modulo 2^32
    std::uint32_t arrived = 0;  // the same from it
    // Credit for eager messages. The sender adds up what it sends; the receiver adds up what it has
    // consumed and reports that total (ConsumedHead). The difference is outstanding, and may not
    // exceed TransferConfig::eager_budget. All in bytes with kEagerCharge, modulo 2^32.
    std::uint32_t eager_sent = 0, eager_consumed = 0;   // to it; eager_consumed: its last report
    std::uint32_t consumed = 0, consumed_reported = 0;  // from it; what was reported last
    std::uint32_t arrived_reported = 0;                 // `arrived` in the last report
    // Write protocol, sender: messages that the peer may not have received yet. An RTR that the
    // peer sent before may concern one of them. `accounted`: a receive with an RTR is known to get
    // the message.
    struct Sent {
      std::uint32_t serial, context;  // serial: its place among the messages counted by `sent`
      int tag;
      bool accounted;
    };
    std::deque<Sent> log;
    // Write protocol, receiver: RTRs in a row that were in vain, up to kMaxMissed; and how many of
    // the next receives send no RTR for that reason.
    unsigned rtrs_missed = 0, rtr_backoff = 0;
    // Write protocol, sender: whether an RTR was there for the last message that is long enough.
    bool asked_last = true;
    // Write protocol, receiver: short receives whose RTR rides on the next message to the peer, or
    // goes with the next poll. In the order of posting.
    std::vector<Ref<ReceiveRequest>> due_rtrs;
    // `outgoing`, `ready` and `cts_due` are the backlog: what waits for room in the channel, in
    // the order in which send_pending() serves it.
    std::deque<Outgoing> outgoing;
    std::deque<Ready> ready;
    std::deque<Rtr> pending_rtrs;             // RTRs of the peer that no message has used
    std::deque<Ref<ReceiveRequest>> cts_due;  // matched receives whose next CTS is due
    bool in_backlog_list = false;             // in backlogged_
    bool in_due_list = false;                 // in due_
    std::string why;                          // the reason of the loss
  };

  // Bytes of RTRs that go in one control message, if the channel takes that many.
  static constexpr std::size_t kRtrsTogether = 1024;
  // A receiver reports what it has consumed four times in a budget, so that the sender need not
  // stop for it, and every 1024 messages with write protocol, so that Peer::log stays short.
  static constexpr std::uint32_t kReportConsumed = 4, kReportMessages = 1024;

  // engine.cpp
  Peer& peer(int process) {
    Peer* p = peers_[static_cast<std::size_t>(process)].get();
    return p ? *p : open_peer(process);
  }
  Peer& open_peer(int process);
  // Sends a control message, now or, if the channel has no room or others wait, from the backlog.
  // `head` is copied. `body` must stay valid until `completes` is complete, unless `copy_body`.
  void send_control(Peer& peer, Bytes head, Bytes body = {}, Ref<SendRequest> completes = nullptr,
                    bool copy_body = false);
  void add_to_backlog_list(Peer& peer);  // lists the peer in backlogged_
  // Serves the backlog as far as the channels have room. Returns whether anything was sent.
  bool send_pending();
  bool send_pending(Peer& peer);
  bool backlogged(const Peer& p) const {
    return !p.outgoing.empty() || !p.ready.empty() || !p.cts_due.empty();
  }
  // Puts the operation into pending_ and so gives it an id, if it has none. Throws Error if the
  // table is full.
  void register_request(Operation& operation);
  // The request of type T with that id; nullptr: there is none.
  template <class T>
  T* pending(std::uint64_t id) const;
  // The same, for an id that `from` has sent: only if that process is the other end of the request.
  template <class T>
  Ref<T> find(std::uint64_t id, const Peer& from);
  // Takes the operation out of pending_ and its id back; the caller gets the table's hold.
  Ref<Request> unregister_request(Operation& operation) {
    return operation.id == 0 ? nullptr : pending_.remove(std::exchange(operation.id, 0));
  }
  // Completes the operation. The table's hold lasts until the end of the call, so that on_complete
  // may release the others. A caller that goes on using the operation needs a hold of its own.
  void finish(Operation& operation) {
    const Ref<Request> last = unregister_request(operation);
    operation.staging.reset();
    operation.finish();
  }
  void fail(Operation& operation, int error);  // completes it with that error class
  bool malformed(Peer& peer);                  // counts a message that is dropped; false
  void on_control(int from, Bytes message) override;
  void on_long_sent(Cookie cookie, bool ok) override;
  void on_long_received(Cookie cookie, bool ok) override;

  // loss.cpp
  void on_peer_lost(int peer, std::string_view why) override;
  // A lost process from which a message could have come in that communicator; -1: there is none.
  // `peer` limits the search to one process; -1: any.
  int lost_sender(int peer, const Comm& comm) const;
  void on_loss(Peer& peer, const LossHead& head);
  void on_refusal(Peer& peer, const RefusalHead& head);
  void on_status_query(Peer& peer, const StatusQueryHead& head);
  void on_status_ended(Peer& peer, const StatusQueryHead& head);
  void fail_for_loss(ReceiveRequest& receive, int process);

  // eager.cpp
  // Whether a message is short enough, and the sender has credit for it at that receiver.
  bool may_be_eager(const Peer& p, MPI_Count bytes) const {
    return static_cast<std::uint64_t>(bytes) <= p.eager_limit &&
           p.eager_sent - p.eager_consumed + bytes + kEagerCharge <= config_.eager_budget;
  }
  void send_eager(Peer& peer, SendRequest& send);
  void on_eager(Peer& peer, const Head& head, Bytes data, std::uint64_t sender_id);
  // Queues a message that has no receive yet. The caller fills in what the head does not tell.
  Unexpected& queue_unexpected(Peer& peer, const Head& head);
  void deliver(ReceiveRequest& receive, const Head& head, Bytes data);  // and completes it
  // Fills in the status, and the error if a message of `length` bytes does not fit.
  void set_status(ReceiveRequest& receive, const Head& head, std::uint64_t length);
  // Eager messages of so many bytes, charges included, no longer need memory here. Sends a report
  // if one is due; with 0, only the number of messages can make one due.
  void consume(Peer& p, std::size_t bytes) {
    p.consumed += static_cast<std::uint32_t>(bytes);
    const bool many = p.write_protocol && p.arrived - p.arrived_reported >= kReportMessages;
    if (p.consumed - p.consumed_reported >= config_.eager_budget / kReportConsumed || many)
        [[unlikely]]
      report_consumed(p);
  }
  void report_consumed(Peer& peer);
  void on_consumed(Peer& peer, const ConsumedHead& head);
  void on_matched(Peer& peer, const IdHead& head);

  // rendezvous.cpp
  void send_rts(Peer& peer, SendRequest& send);  // sends the RTS
  void on_rts(Peer& peer, const RtsHead& head);  // an RTS has arrived
  // A receive has met an RTS: starts sending CTSs.
  void begin_receive(ReceiveRequest& receive, Peer& peer, const Head& head, std::uint64_t sender_id,
                     std::uint64_t length, const RemoteKey* offer);
  bool send_cts(ReceiveRequest& receive);  // sends the next CTS
  std::size_t staging_room(const Operation& operation) const;
  bool continues(const SendRequest& send, const CtsHead& head) const;
  void on_cts(Peer& peer, const CtsHead& head);  // a CTS has arrived
  void send_part(Peer& peer, SendRequest& send, const CtsHead& head);
  // Gives the data to the channel, now or from the backlog.
  void start_long(Peer& peer, SendRequest& send, Bytes data, const RemoteKey& remote_key);
  void received_part(ReceiveRequest& receive);  // the channel has completed a part
  void sent_part(SendRequest& send);            // the same at the sender

  // write_protocol.cpp
  // A receive was posted: makes RTRs due for it and older ones, if that is allowed and worth while.
  void ask(Peer& peer, ReceiveRequest& receive);
  void on_rtrs(Peer& peer, Bytes message);       // a message that begins with RTRs has arrived
  void on_rtr(Peer& peer, const RtrHead& head);  // the same for one of them
  // send_now() to a peer with RTRs of either side.
  bool send_now_with_rtrs(Peer& peer, const Items& items, const Envelope& to);
  // Sends the message into the receive whose RTR it matches. false: none, or another protocol is
  // better.
  bool write_to_rtr(Peer& peer, SendRequest& send);
  // The oldest RTR that such a message satisfies; the end: there is none.
  std::deque<Rtr>::iterator find_rtr(Peer& peer, std::uint32_t context, int tag);
  static WrittenHead written_head(const Rtr& rtr, int tag, std::uint64_t bytes);
  // Logs a message of so many bytes that goes by another protocol; to be called before `sent`
  // counts it.
  void count_sent(Peer& peer, std::uint32_t context, int tag, MPI_Count bytes);
  // The peer has received `seen` messages: drops those from the log.
  void forget_seen(Peer& peer, std::uint32_t seen);
  void on_written(Peer& peer, const WrittenHead& head);
  void written_part(ReceiveRequest& receive);  // the channel has completed the write
  bool may_ask(const Peer& peer, const ReceiveRequest& receive) const;
  void make_due(Peer& peer, ReceiveRequest& receive);  // the RTR of one receive
  // Opens the receive at the channel, and fills in its RTR. false: the channel has no room.
  bool open_rtr(Peer& peer, ReceiveRequest& receive, RtrHead& head);
  // Sends all RTRs that are due to the peer, now.
  void send_due_rtrs(Peer& peer);
  void send_due_rtrs();  // to all peers
  // Puts the RTR that is due, if there is one, in front of `head`, which a message of `body` bytes
  // will have; otherwise sends them.
  void let_ride(Peer& peer, RiddenHead& head, std::size_t body);
  // These will not be sent.
  void drop_due_rtrs(Peer& peer);
  bool backs_off(Peer& peer) const;
  // The RTR of the receive was in vain, or is no longer needed: a message has come by another
  // protocol.
  void on_rtr_missed(ReceiveRequest& receive) {
    if (receive.asks()) [[unlikely]]
      give_up_rtr(receive);
  }
  void give_up_rtr(ReceiveRequest& receive);
  // Gives the place of the receive in the channel's early receives back.
  void release_rtr(ReceiveRequest& receive);

  // cancel.cpp
  void on_cancel_send(Peer& peer, const IdHead& head);
  void on_cancel_want(Peer& peer, const IdHead& head);
  void on_cancelled(Peer& peer, const CancelledHead& head);

  double seconds() const;  // since the engine was made; in statistics.cpp

  // report.cpp
  // Calls visit(operation) for each send and receive that is under way.
  template <class Visit>
  void for_each_operation(Visit visit);
  // "; that process is in MPI" and the like, or nothing if the channel cannot tell.
  std::string presence_of(int process) const;
  std::string dump(const Peer& peer) const;

  static inline Transfer* self_ = nullptr;  // the only one; nullptr outside of MPI
  const int rank_;                          // of this process in MPI_COMM_WORLD
  const std::chrono::steady_clock::time_point opened_ = std::chrono::steady_clock::now();
  TransferConfig config_;
  std::vector<std::unique_ptr<Channel>> channels_;
  const ChooseChannel choose_;
  base::UniqueFd own_bell_;                   // of sleep(), made when it is first needed
  std::vector<TransferCounters> counters_;    // by channel
  std::vector<std::unique_ptr<Peer>> peers_;  // by rank; nullptr: not opened yet
  int lost_ = 0;                              // how many of the peers are lost
  std::vector<Peer*> backlogged_;             // peers that may have a backlog
  std::vector<std::size_t> open_rtrs_;  // by channel: receives with `rtr_due` or `rtr_sent` set
  std::vector<Peer*> due_;              // peers that may have due_rtrs
  MatchTable matches_;
  HandleTable<Request, HandleKind::request> pending_;  // operations that have an id
  std::vector<std::byte> scratch_;  // packed form of the eager message that is being sent
};

}  // namespace viaduct::mpi
