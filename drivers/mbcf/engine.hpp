// Memory-Based Communication Facilities (MBCF) on Ethernet: one-sided requests that act on a remote
// task's memory. docs/mbcf.md tells what each request promises and why. (After MBCF of the SSS-CORE
// operating system; "MPI/MBCF with the NAS Parallel Benchmarks", EuroPVM/MPI 1999, section 2.1,
// which describes Remote Write and the Memory-Based FIFO.)
//
//  * A task registers segments of its memory, FIFOs and signals. Each has a remote key, which the
//    task hands to others in messages of its own. Whoever knows the key may use it until the task
//    deregisters (withdraws) it.
//  * The initiator of a request (write, read, swap, fetch_add, compare_swap, append, signal, fence)
//    names a peer and a key. The target checks the request before it touches anything, and executes
//    it exactly once, on the target's owner thread, inside the target's poll.
//  * Each request ends in one completion (unless silent): done, refused and why, or the peer ended.
//
// An engine is initiator and target at the same time. It stands on one link, which gives it
// reliable, ordered delivery; above it are MPI's mbcf channel, the C API and the rawdev.
//
//    write, append, ...  -> impl/initiator.hpp --(fits a frame)--> Link::try_send
//                                  |(long)
//                                  v
//    poll -> pump        -> impl/segmentation.hpp ---------------> Link::try_send
//    poll -> Link::poll  -> on_message -> impl/target.hpp          requests of peers
//                                      -> impl/fifo_credit.hpp     credit, either way
//                                      -> impl/completions.hpp     answers to our requests
//
// Order: requests to one peer that fit a frame are executed in the order in which they were issued;
// so are long writes among each other, and the entries that one writer appends to a FIFO (but not
// those chained to long writes). Otherwise fence().
//
// Thread rule: that of the link; one owner thread makes all calls. No call blocks. Other threads of
// the task may access exported memory at any time, with atomics where requests do.
//
// Ownership: the engine owns its FIFOs, signals and tables. Exported memory, and the data of long
// requests while they are under way, stay the caller's.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "drivers/link/event_queue.hpp"
#include "drivers/link/link.hpp"
#include "drivers/mbcf/counters.hpp"
#include "drivers/mbcf/keys.hpp"
#include "drivers/mbcf/requests.hpp"
#include "drivers/mbcf/wire.hpp"

namespace viaduct::mbcf {

// `Device`: port::Port in programs, sim::SimPort in tests; engine.cpp instantiates both.
template <link::PacketDevice Device>
class Engine final : private link::ReceiveHandler {
 public:
  using Link = link::Link<Device>;
  using Time = link::Time;
  using Bytes = std::span<const std::byte>;

  // Attaches itself to the link, which must outlive the engine. Make one engine in the life of a
  // link, before the link's first connection: peers would answer an earlier engine's requests to
  // the later engine, and the two sides' counts of silent requests would no longer agree. Allocates
  // all tables. Throws SetupError on an impossible configuration.
  Engine(Link& link, const EngineConfig& config);
  ~Engine();
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;

  // ---- what this task registers (these calls may allocate) -------------------------------------

  // Registers memory for remote access. The memory stays the caller's and must stay valid until the
  // segment is withdrawn. Overlapping segments with different rights are fine. Key{}: max_keys are
  // in use.
  Key export_segment(std::span<std::byte> memory, Rights rights) {
    return keys_.add_segment(memory, rights);
  }
  // A queue of at least `bytes` (rounded up to a power of two and to pages) in memory of its own.
  // The engine owns the FIFO; the pointer is valid until Fifo::key() is withdrawn. The owner thread
  // reads it with Fifo::front() and pop(). nullptr: max_keys are in use. Throws SetupError if there
  // is no memory.
  Fifo* create_fifo(std::size_t bytes);
  // `handler` is called by poll(), at most once in each; it may issue requests and withdraw keys,
  // its own included. It must not call poll(). Key{}: max_keys are in use.
  Key create_signal(SignalHandler handler);
  // A signal that makes an eventfd readable; reading 8 bytes gives the number of signals. The
  // engine owns the descriptor, and closes it when the key is withdrawn. Key{}: max_keys are in
  // use. Throws SetupError if the system has no descriptor left.
  Key create_signal_fd(int& fd);
  // Deregisters a segment, FIFO or signal. From now on requests find the key withdrawn, and writers
  // that wait for the FIFO's credit are told. Nothing touches the memory after this returns, not
  // even a long request that is under way. False: no such key.
  bool withdraw(Key key);

  // ---- requests --------------------------------------------------------------------------------
  // Lengths and offsets are in bytes. With any Issued::status but ok nothing was sent; no_room asks
  // the caller to poll and try again. The link has no PeerId for this task itself: the task uses
  // its own memory directly.
  //
  // Data that fits a frame is copied at once. Longer data, and what is read into, must stay as it
  // is until the completion (silent: until a fence has completed); longer entries only if they were
  // not `copied`.

  // A write of 4 or 8 bytes to a multiple of that is one store: no reader sees half of it.
  Issued write(const Remote& to, Bytes data, const Options& options, Time now) {
    if (data.size() + sizeof(TargetHead) <= link_.max_message(to.peer)) [[likely]]
      return write_short(to, data, options, now);
    return write_long(to, data, nullptr, options, now);
  }
  // Write with notify, a chained operation: the data, and when all of it is there, the second part.
  // Then::append needs credit for its entry, as append() does, and a writer to the same peer
  // (otherwise wrong_kind).
  Issued write(const Remote& to, Bytes data, const Then& then, const Options& options, Time now);
  Issued read(const Remote& from, std::span<std::byte> into, const Options& options, Time now);
  // Atomic operations on an aligned word. The word's former value is in the completion.
  Issued swap(const Remote& at, Width width, std::uint64_t value, const Options& options, Time now);
  Issued fetch_add(const Remote& at, Width width, std::uint64_t value, const Options& options,
                   Time now);
  // Stores `value` if the word is `expected`.
  Issued compare_swap(const Remote& at, Width width, std::uint64_t expected, std::uint64_t value,
                      const Options& options, Time now);
  // Raises a peer's signal.
  Issued signal(link::PeerId peer, Key key, const Options& options, Time now);
  // Completes when everything issued to that peer before has been executed, and what was read has
  // arrived. Never silent.
  Issued fence(link::PeerId peer, const Options& options, Time now);

  // The writing end of a peer's FIFO; the same one if it is open. Asks the FIFO's owner for credit
  // at once. WriterId{}: max_writers are open, or this writer is being closed and has issued
  // entries that are not wholly sent: poll, try again. May allocate.
  WriterId open_writer(link::PeerId peer, Key fifo, Time now);
  // Gives the credit back. Entries that were issued still arrive.
  void close_writer(WriterId writer);
  // Appends head ++ body as one entry; head at most kMaxChainedEntry bytes. no_room while the FIFO
  // has no credit for us: poll, try again. A writer whose FIFO is gone says why with each append.
  Issued append(WriterId writer, Bytes head, Bytes body, const Options& options, Time now);
  // Whether the next `requests` requests of a frame or less to the FIFO's owner, and an entry of
  // `entry` bytes with one of them, are sure not to say no_room, if no other call comes between:
  // for rows of requests that belong together.
  bool secure(WriterId writer, std::size_t requests, std::size_t entry, Time now);
  // Names another place where the whole body of an append that was not `copied` lies: from now on
  // the engine reads the rest from there. Without effect once the request is over.
  void relocate(RequestId append, Bytes body);
  // What has still to be copied of such an entry's `body`: its last bytes.
  Bytes unsent_part(RequestId append) const;
  // The largest entry of that FIFO, in bytes; 0: not known yet.
  std::size_t capacity(WriterId writer) const;

  // Completion queue: the oldest completion, refusals of short silent requests before all others;
  // false when there is none.
  bool next_completion(Completion& completion);
  // Connections that came or went, oldest first; false when there is none.
  bool next_event(link::Event& event) { return events_.next(event); }

  // ---- progress --------------------------------------------------------------------------------

  // Sends what is due (pieces of long requests, credit messages), polls the link, which executes
  // requests of peers and takes answers, and then calls the handlers of raised signals. May
  // allocate only for a peer that connects, or one that had connected before the engine was made.
  void poll(Time now) {
    if (!active_.empty() || control_due_count_ != 0) [[unlikely]]
      pump(now);
    if (!pending_updates_.empty() || !orphaned_writers_.empty()) send_credit_updates(now);
    link_.poll(now);
    if (!raised_.empty()) [[unlikely]]
      deliver_signals();
  }
  Link& link() { return link_; }
  const Counters& counters() const { return counters_; }

 private:
  // One incarnation of one peer: the long requests that are under way with it, in either direction.
  // Short requests need nothing of this, but for fences.
  struct PeerRequests {
    // The most long reads that one peer is asked for at the same time, and that are answered at the
    // same time: enough to hide the round trip.
    static constexpr std::uint32_t kMaxLongReads = 8;

    link::PeerId id;
    bool listed = false;  // in active_

    // As initiator: our requests to this peer.
    RequestList writes;                 // long writes in order of issue; the first is being sent
    RequestList reads;                  // long reads that have not been sent yet
    RequestList fences;                 // not complete yet
    Slot append = base::kNoSlot;        // the long entry that is being sent
    std::uint32_t reads_in_flight = 0;  // long reads that have been sent and are not complete
    std::uint64_t open_segmented = 0;   // long requests, not complete: a fence waits for them

    // As target: this peer's requests to us. A request of one message has no state: on_message
    // either executes or refuses it at once, and answers; or puts it off (RxResult::backpressure),
    // and the link offers it again. Requests in several messages go through these states:
    //
    //   Write (bulk lane). `incoming_write.open` is false in closed only; `remaining` is 0 in
    //   second part due, and more in receiving:
    //
    //            long_write, not all data               last long_more, then
    //     closed ------------------------> receiving ------------------------> second part due
    //      | ^ ^                            |  ^ |                                ^     |
    //      | | |  (1) answer                |  +-+ long_more                      |     |
    //      | | +----------------------------+                                     |     |
    //      | |               long_then: execute it, answer                        |     |
    //      | +--------------------------------------------------------------------|-----+
    //      |                 long_write, all data, then                           |
    //      +----------------------------------------------------------------------+
    //
    //   (1) The last long_more without a second part; or the key has been withdrawn. A long_write
    //   that is refused, or whole without a second part, is answered at once, and the state stays
    //   closed. What the initiator sent before it heard of a refusal is dropped (drop_stream). A
    //   long_write with another id replaces an open one.
    //
    //   Append (low lane): closed --append, not whole--> open --last append_more--> closed, answer.
    //   open -> closed also when the FIFO is withdrawn (answer refused), and when the peer ends
    //   (Fifo::abandon).
    //
    //   Read: --read--> in incoming_reads[] --all data handed to the link, or withdrawn--> out.
    struct IncomingWrite {
      bool open = false, then = false;  // a long write is arriving; a long_then follows its data
      std::uint32_t id = 0;             // the initiator's number for it
      // The key is looked up again for each piece, as it may be withdrawn. `offset`: bytes, where
      // the next piece goes. `remaining`: bytes of data to come; 0: the second part is due.
      std::uint64_t key = 0, offset = 0, remaining = 0;
    } incoming_write;
    struct IncomingAppend {  // the long entry that is arriving
      bool open = false;
      std::uint32_t id = 0, at = 0;  // the initiator's number; the entry's first block in the FIFO
      std::uint64_t key = 0, length = 0, moved = 0;  // bytes of the entry; bytes that have arrived
    } incoming_append;
    struct IncomingRead {  // a long read that is being answered
      std::uint32_t id = 0;
      std::uint64_t key = 0, offset = 0, remaining = 0;  // the part that has not been sent
    } incoming_reads[kMaxLongReads];  // a ring: answered in the order in which they came
    std::uint32_t first_incoming_read = 0;
    std::uint32_t incoming_read_count = 0;

    // Nothing for pump_peer() to send, or only reads beyond kMaxLongReads, which wait for answers.
    bool idle() const {
      return writes.empty() && append == base::kNoSlot && incoming_read_count == 0 &&
             (reads.empty() || reads_in_flight == kMaxLongReads);
    }
  };

  // Our writing end of a peer's FIFO, with the credit that the FIFO's owner has granted it.
  //
  // Its life (`state`):
  //
  //          open_writer          close_writer            (1)             (2)
  //   free --------------> open --------------> closing -------> closed -------> free
  //                         | ^                    |               |
  //                         | +--- open_writer ----+---------------+
  //                     (3) v
  //                        gone --close_writer--> free          closing, closed --(3)--> free
  //
  //   (1) All entries that were issued have been handed to the link, and behind them the give_back
  //       that closes. If the owner does not know that this writer is open (`open_unsent`), that
  //       message is not needed.
  //   (2) The owner has acknowledged each close (`pending_close_acks` == 0), and all credit is
  //       given back. The acknowledgement comes behind all grants, so no more credit can come.
  //   (3) The peer has ended, or the owner has answered `gone` with a reason. An open writer keeps
  //       the reason in `why` for the next append. The others have no user any more.
  //
  //   open_writer does not reopen a writer that has issued entries which are not wholly sent.
  //
  // Its credit, while it is open:
  //
  //                     append beyond the credit: want(need - credit)
  //   +-----------+ ------------------------------------------------> +-------+
  //   | not asked |                                                   | asked | <-- open_writer:
  //   |           | <------------------------------------------------ |       |     want(1)
  //   +-----------+   grant, credit >= need: if blocked, start hold   +-------+
  //
  //   not asked:  append within the credit: spend_credit.  recall: give_back(credit).
  //   asked:      grant, credit < need: want the rest.  append of another size: want for that one.
  //               recall: give_back(credit), then want for all of need.
  //
  //   A writer that is opened again keeps its credit, so it asks for less than 1 block: want(0), or
  //   nothing if the owner takes it for open.
  //
  //   The hold: a recall is not answered for kRecallHold after the grant that a blocked user
  //   waited for, or until the user's append succeeds. A message that the link does not take now
  //   stays due (`control_due`), and pump() tries again. Credit counts blocks of kBlock bytes.
  //
  // Not in a base::SlotMap: a writer outlives the user's id for it, and is opened again in its
  // place under another one.
  struct Writer {
    enum class State : std::uint8_t { free, open, closing, closed, gone } state = State::free;
    std::uint16_t generation = 0;  // of the WriterId: a stale one finds nothing
    // What the owner calls this writer; kept until the owner has acknowledged the last close. The
    // lower 16 bits are the index in writers_, from 1 on.
    std::uint32_t name = 0;
    link::PeerId peer;
    Key key;                  // of the FIFO
    Status why = Status::ok;  // gone: the reason
    // send_control() has something to send; counted in control_due_count_.
    bool control_due = false;
    bool recalled = false;                 // unspent credit has to go back to the owner
    bool open_unsent = false;              // the owner does not know yet that this writer is open
    std::uint32_t pending_close_acks = 0;  // acknowledgements of a close, not received yet
    bool asked = false;                    // `want` for `need` is sent and not answered
    bool blocked = false;                  // append has returned no_room for lack of credit
    std::uint32_t credit = 0;              // blocks that may be spent
    std::uint32_t need = 0;                // blocks, of the entry that blocked; 0: no entry waits
    std::uint32_t capacity = 0;            // blocks of the FIFO; 0: not known, no grant has come
    bool sending = false;               // a long entry is half sent: later entries wait behind it
    std::uint32_t chained_entries = 0;  // paid entries that wait until their long writes are sent
    Time hold_until{};                  // the hold: a recall is not answered before this time
  };

  // How many silent requests have gone to one incarnation of one peer (`issued`), and have come
  // from it (`received`). Both sides count, so the number of a silent request is not on the wire.
  // Apart from PeerRequests, because every silent request touches the count, and few the rest.
  struct SilentCount {
    link::PeerId peer;
    std::uint64_t issued = 0, received = 0;
  };
  // Call this only for a peer that is alive: a stale id would reset the count of the next peer in
  // the same slot.
  SilentCount& silent_count(link::PeerId id) {
    SilentCount& count = silent_[id.value & 0xffff];
    if (count.peer != id) [[unlikely]]
      count = {id};
    return count;
  }

  // An orphaned writer: it waited for credit, or for the acknowledgement of its close, when the
  // FIFO was withdrawn. It is still to be told `gone`.
  struct OrphanedWriter {
    link::PeerId peer;
    std::uint32_t name;  // the writer's name for the FIFO
  };

  // impl/initiator.hpp: our requests, and their book-keeping
  Issued refused(link::SendStatus status);
  Issued write_short(const Remote& to, Bytes data, const Options& options, Time now);
  // The second part that follows the data of a long write.
  struct ChainedRequest {
    ThenHead head;
    Bytes entry;
    Writer* writer;  // that pays for `entry`; nullptr: a signal or a flag
  };
  Issued write_long(const Remote& to, Bytes data, const ChainedRequest* chained,
                    const Options& options, Time now);
  Status check(const Then& then, Writer*& writer, Time now);
  Issued atomic(AtomicOp op, const Remote& at, Width width, std::uint64_t operand,
                std::uint64_t compare, const Options& options, Time now);
  Issued read_long(const Remote& from, std::span<std::byte> into, const Options& options, Time now);
  Issued append_long(Writer& writer, Bytes head, Bytes body, const Options& options, Time now);
  // A message on the lane of its kind.
  [[gnu::always_inline]] link::SendStatus try_send(link::PeerId to, Kind kind, Bytes head,
                                                   Bytes body, link::Urgency urgency, Time now) {
    return link_.try_send(to, usual_lane(kind), link::Order::ordered, message_type(kind), head,
                          body, urgency, now);
  }
  [[gnu::always_inline]] Issued issue(Kind kind, const Remote& to, std::span<std::byte> head,
                                      Bytes body, const Options& options, Time now);
  template <class Send>
  Issued issue_answered(Kind kind, link::PeerId to, const Options& options, Send send);
  PeerRequests* peer_of(link::PeerId id);
  // nullptr if that incarnation has ended, or has no PeerRequests yet.
  PeerRequests* find_peer(link::PeerId id) const {
    const std::size_t slot = id.value & 0xffff;
    PeerRequests* p = slot < peers_.size() ? peers_[slot].get() : nullptr;
    return p && p->id == id ? p : nullptr;
  }
  void activate(PeerRequests& peer);
  void complete(Slot slot, Status status);

  // impl/fifo_credit.hpp: credit of our writers, and of the writers to our FIFOs
  // By the user's name for it, and by the FIFO owner's.
  Writer* find_writer(WriterId id);
  Writer* find_writer_by_name(std::uint32_t name, link::PeerId owner);
  WriterId id_of(const Writer& w) const {
    return {static_cast<std::uint32_t>(w.generation) << 16 |
            static_cast<std::uint32_t>(&w - writers_.data() + 1)};
  }
  Status ensure_credit(Writer& writer, std::uint64_t blocks, Time now);
  void spend_credit(Writer& writer, std::uint64_t blocks);
  void refund_credit(const Request& request);
  void schedule_control(Writer& writer);
  void send_control(Writer& writer, Time now);
  void drop_writer(Writer& writer, Status why);
  void on_grant(const link::Incoming& message);
  void on_recall(const link::Incoming& message);
  void on_gone(const link::Incoming& message);
  link::RxResult on_want(const link::Incoming& message);
  link::RxResult on_give_back(const link::Incoming& message);
  link::RxResult send_gone(const link::Incoming& message, std::uint32_t writer, Status why);
  void send_credit_updates(Time now);
  bool send_credit_updates(Fifo& fifo, Time now);

  // impl/target.hpp: requests of peers. RxResult::backpressure: nothing was done, and the link
  // offers the message again.
  link::RxResult on_message(const link::Incoming& message) override;
  link::RxResult serve_silent(const link::Incoming& message, Kind kind);
  [[gnu::always_inline]] link::RxResult serve_request(const link::Incoming& message, Kind kind,
                                                      const TargetHead& target, Bytes rest);
  [[gnu::always_inline]] link::RxResult serve_write(const link::Incoming& message,
                                                    const TargetHead& target, Bytes data);
  link::RxResult serve_write_then(const link::Incoming& message, const TargetHead& target,
                                  Bytes rest);
  link::RxResult serve_long_write(const link::Incoming& message, const TargetHead& target,
                                  Bytes data);
  link::RxResult serve_long_more(const link::Incoming& message);
  link::RxResult serve_long_then(const link::Incoming& message);
  link::RxResult serve_append(const link::Incoming& message, const TargetHead& target, Bytes data);
  link::RxResult serve_append_more(const link::Incoming& message);
  link::RxResult serve_read(const link::Incoming& message, const TargetHead& target, Bytes rest);
  link::RxResult serve_atomic(const link::Incoming& message, const TargetHead& target, Bytes rest);
  link::RxResult serve_signal(const link::Incoming& message, const TargetHead& target, Bytes rest);
  link::RxResult serve_fence(const link::Incoming& message);
  // Drops a message that no correct peer sends, and counts it.
  link::RxResult drop(Counter reason) {
    counters_.add(reason);
    return link::RxResult::consumed;
  }
  bool may_answer(link::PeerId to);
  void count_refusal(Status status);
  void answer(link::PeerId to, std::uint32_t id, Status status, Time now);
  void end_long_write(PeerRequests& peer, Status status, Time now);
  struct ChainedOp;  // a checked second part
  Status check_chained(link::PeerId from, const ThenHead& head, ChainedOp& op);
  void release_prepaid(link::PeerId from, const ThenHead& head);
  void execute_chained(link::PeerId from, const ChainedOp& op, Bytes entry);
  void raise(Signal& signal);
  void deliver_signals();

  // impl/completions.hpp: answers to our requests, and connections that come and go
  void on_answer(const link::Incoming& message);
  void on_value(const link::Incoming& message);
  void on_data(const link::Incoming& message);
  void on_peer_up(link::PeerId peer, const link::Address& address) override;
  void on_peer_down(link::PeerId peer, const link::Address& address,
                    link::DownReason reason) override;

  // impl/segmentation.hpp: long requests, piece by piece
  void pump(Time now);
  void start_now(PeerRequests& peer, const Options& options, Time now);
  std::optional<std::size_t> send_piece(link::PeerId to, Kind kind, Bytes head, Bytes rest,
                                        std::size_t& budget, Time now);
  void end_append(PeerRequests& peer);
  bool pump_peer(PeerRequests& peer, std::size_t& budget, Time now);
  bool send_append(PeerRequests& peer, std::size_t& budget, Time now);
  bool send_write(PeerRequests& peer, std::size_t& budget, Time now);
  bool send_read(PeerRequests& peer, Time now);
  bool answer_read(PeerRequests& peer, std::size_t& budget, Time now);

  Link& link_;
  std::vector<SilentCount> silent_;  // by the slot in their PeerId
  Counters counters_;
  KeyTable keys_;
  RequestTable requests_;
  RequestList complete_;                   // the completion queue: not taken yet, oldest first
  base::RingBuffer<Completion> failures_;  // refusals of short silent requests, not taken yet

  std::vector<std::unique_ptr<PeerRequests>> peers_;  // by the slot in their PeerId
  std::vector<PeerRequests*> active_;                 // those with something long to send
  std::size_t next_active_ = 0;  // round robin: the one in active_ whose turn it is
  const std::size_t max_writers_;
  std::vector<Writer> writers_;        // grows up to max_writers_
  std::uint32_t names_ = 0;            // counts the names that writers were given
  std::size_t control_due_count_ = 0;  // writers with `control_due` set

  std::vector<Fifo*> fifos_;                      // all of this task
  std::vector<Fifo*> pending_updates_;            // those with credit messages to send
  std::vector<OrphanedWriter> orphaned_writers_;  // writers to be told that their FIFO is gone
  std::vector<Signal*> raised_;  // since the last deliver_signals(); each at most once
  std::vector<std::unique_ptr<Signal>> retired_;  // withdrawn while raised_ may point to them
  link::EventQueue events_;
};

}  // namespace viaduct::mbcf
