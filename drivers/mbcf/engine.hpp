// Memory-Based Communication Facilities on Ethernet: requests that act on a remote task's memory.
// docs/mbcf.md tells what each one promises and why. (After MBCF of the SSS-CORE operating system;
// "MPI/MBCF with the NAS Parallel Benchmarks", EuroPVM/MPI 1999, section 2.1.)
//
//  * A task offers segments of its memory, FIFOs and signals. Each has a key, which it hands to
//    others in messages of its own: whoever knows the key may use it, until it is withdrawn.
//  * Requests (write, read, swap, fetch_add, compare_swap, append, signal, fence) name a peer and a
//    key. They are checked before anything is touched and executed exactly once, on the owner's
//    thread, inside its poll.
//  * Each request ends in one completion (unless silent): done, refused and why, or the peer ended.
//
// Order: requests to one peer that fit a frame are executed in the order in which they were issued;
// so are long writes among each other, and the entries of a FIFO of each writer. Otherwise fence().
//
// Thread rule: that of the link; one owner thread. No call blocks. Other threads of the task may
// access exported memory at any time, with atomics where requests do.
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

template <link::PacketDevice Device>
class Engine final : private link::MessageSink {
 public:
  using Link = link::Link<Device>;
  using Time = link::Time;
  using Bytes = std::span<const std::byte>;

  // Attaches itself to the link, which must outlive it: one engine in the life of a link and before
  // its first connection, as peers go on answering what an earlier one asked, and both sides count
  // silent requests. Throws SetupError on an impossible
  // configuration.
  Engine(Link& link, const EngineConfig& config);
  ~Engine();
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;

  // ---- what this task offers (these calls may allocate) ----------------------------------------

  // The memory must stay until the segment is withdrawn. Key{}: max_keys are in use.
  Key export_segment(std::span<std::byte> memory, Rights rights) {
    return keys_.add_segment(memory, rights);
  }
  // A queue of at least `bytes` (rounded up to a power of two and to pages) in memory of its own;
  // nullptr: max_keys are in use. Throws SetupError if there is no memory. Read it by its own
  // calls.
  Fifo* create_fifo(std::size_t bytes);
  // `handler` is called by poll(), at most once in each; it may issue requests and withdraw keys.
  Key create_signal(SignalHandler handler);
  // An eventfd that becomes readable; reading gives the number of signals. Owned by the engine:
  // closed when the key is withdrawn. Throws SetupError if there is none to be had.
  Key create_signal_fd(int& fd);
  // Takes back a segment, FIFO or signal: from now on requests find it withdrawn, and writers that
  // wait for a FIFO's credit hear of it. Nothing touches its memory after this returns. False: no
  // such key.
  bool withdraw(Key key);

  // ---- requests --------------------------------------------------------------------------------
  // Data that fits a frame is copied at once. Longer data, and what is read into, must stay as it
  // is until the completion (silent: until a fence has completed); longer entries only if they were
  // not `copied`.

  // A write of 4 or 8 bytes to a multiple of that is one store: nobody sees half of it.
  Issued write(const Remote& to, Bytes data, const Options& options, Time now) {
    if (data.size() + sizeof(TargetHead) <= link_.max_message(to.peer)) [[likely]]
      return write_short(to, data, options, now);
    return write_long(to, data, nullptr, options, now);
  }
  // The data, and when it is there, the second part.
  Issued write(const Remote& to, Bytes data, const Then& then, const Options& options, Time now);
  Issued read(const Remote& from, std::span<std::byte> into, const Options& options, Time now);
  // The word's former value is in the completion.
  Issued swap(const Remote& at, Width width, std::uint64_t value, const Options& options, Time now);
  Issued fetch_add(const Remote& at, Width width, std::uint64_t value, const Options& options,
                   Time now);
  // Stores `value` if the word is `expected`.
  Issued compare_swap(const Remote& at, Width width, std::uint64_t expected, std::uint64_t value,
                      const Options& options, Time now);
  Issued signal(link::PeerId peer, Key key, const Options& options, Time now);
  // Completes when everything issued to that peer before has been executed. Never silent.
  Issued fence(link::PeerId peer, const Options& options, Time now);

  // The writing end of a peer's FIFO; the same one if it is open. WriterId{}: max_writers are open,
  // or this one is being closed with an entry half sent: poll, try again.
  // May allocate.
  WriterId open_writer(link::PeerId peer, Key fifo, Time now);
  // Gives the credit back. Entries that were issued still arrive.
  void close_writer(WriterId writer);
  // Appends head ++ body as one entry; head at most kMaxCarried bytes. no_room while the FIFO is
  // full: poll, try again. A writer whose FIFO is gone says why with each append.
  // What was not `copied` can be kept elsewhere: from relocate() on it is read from there.
  Issued append(WriterId writer, Bytes head, Bytes body, const Options& options, Time now);
  void relocate(RequestId append, Bytes body);
  // The largest entry of that FIFO, in bytes; 0: not known yet.
  std::size_t capacity(WriterId writer) const;

  // The oldest completion, refusals of silent requests first; false when there is none.
  bool next_completion(Completion& completion);
  // Connections that came or went, oldest first; false when there is none.
  bool next_event(link::Event& event) { return events_.next(event); }

  // ---- progress --------------------------------------------------------------------------------

  // Sends what is owed, polls the link, then tells of signals.
  void poll(Time now) {
    if (!active_.empty() || talking_ != 0) [[unlikely]]
      pump(now);
    if (!news_.empty() || !bereft_.empty()) tell_writers(now);
    link_.poll(now);
    if (!raised_.empty()) [[unlikely]]
      tell_signals();
  }
  Link& link() { return link_; }
  const Counters& counters() const { return counters_; }

 private:
  // One life of one peer, as far as something long is under way with it.
  struct Peer {
    // Long reads that are asked for at once, and answered: enough to hide the round trip.
    static constexpr std::uint32_t kMaxReading = 8;

    link::PeerId id;
    bool listed = false;  // in active_

    // What we ask of it.
    RequestList writes;           // long ones, in turn; the first is being sent
    RequestList reads;            // long ones that have not been asked for yet
    RequestList fences;           // waiting
    Slot append = base::kNoSlot;  // the long entry that is being sent
    std::uint32_t reading = 0;    // long reads that have been asked for
    std::uint64_t lasting = 0;    // requests that a fence has to wait for

    // What it asks of us.
    struct Write {  // the long write that is arriving; remaining == 0: the second part is due
      bool open = false, then = false;
      std::uint32_t id = 0;
      std::uint64_t key = 0, offset = 0, remaining = 0;
    } write;
    struct Append {  // the long entry that is arriving
      bool open = false;
      std::uint32_t id = 0, at = 0;
      std::uint64_t key = 0, length = 0, moved = 0;
    } append_in;
    struct Read {  // long reads that are being answered, in turn
      std::uint32_t id = 0;
      std::uint64_t key = 0, offset = 0, remaining = 0;
    } serving[kMaxReading];
    std::uint32_t serving_first = 0;
    std::uint32_t serving_count = 0;

    bool idle() const {
      return writes.empty() && append == base::kNoSlot && serving_count == 0 &&
             (reads.empty() || reading == kMaxReading);
    }
  };

  struct Writer {
    // closing: to be told; closed: the owner knows, and has the last word
    enum class State : std::uint8_t { free, open, closing, closed, gone } state = State::free;
    std::uint16_t generation = 0;  // of the user's name for it
    std::uint32_t name = 0;        // what the owner calls it, until the owner has had the last word
    link::PeerId peer;
    Key key;
    Status why = Status::ok;      // gone
    bool talking = false;         // has to ask or to give back
    bool recalled = false;        // the owner wants unspent credit back
    bool introduce = false;       // the owner has not been told that it is open
    std::uint32_t farewells = 0;  // that the owner owes us
    bool asked = false;           // for `need`, and not answered
    bool blocked = false;         // the user was told no_room for want of credit
    std::uint32_t credit = 0;     // blocks
    std::uint32_t need = 0;       // blocks, of the entry that blocked
    std::uint32_t capacity = 0;   // blocks; 0: not known
    bool sending = false;         // a long entry: those behind it wait
    std::uint32_t carried = 0;    // entries that wait for the data of their long writes
    Time keep_until{};            // recalled credit that the user has waited for
  };

  // Silent requests that one life of one peer has been sent and has sent. Apart from Peer, because
  // each of them touches it.
  struct SilentCount {
    link::PeerId peer;
    std::uint64_t issued = 0, served = 0;
  };
  // Of a peer that lives: a stale id would wipe out the count of its successor.
  SilentCount& silent_count(link::PeerId id) {
    SilentCount& count = silent_[id.value & 0xffff];
    if (count.peer != id) [[unlikely]]
      count = {id};
    return count;
  }

  // A writer of a FIFO that was withdrawn while it waited for an answer.
  struct Bereft {
    link::PeerId peer;
    std::uint32_t name;
  };

  // impl/initiator.hpp: requests of ours
  Issued refused(link::SendStatus status);
  Issued write_short(const Remote& to, Bytes data, const Options& options, Time now);
  // What follows the data of a long write.
  struct Carried {
    ThenHead head;
    Bytes entry;
    Writer* writer;
  };
  Issued write_long(const Remote& to, Bytes data, const Carried* carried, const Options& options,
                    Time now);
  Status check(const Then& then, Writer*& writer, Time now);
  Issued atomic(AtomicOp op, const Remote& at, Width width, std::uint64_t operand,
                std::uint64_t compare, const Options& options, Time now);
  Issued read_long(const Remote& from, std::span<std::byte> into, const Options& options, Time now);
  Issued append_long(Writer& writer, Bytes head, Bytes body, const Options& options, Time now);
  [[gnu::always_inline]] Issued issue(Kind kind, const Remote& to, std::span<std::byte> head,
                                      Bytes body, const Options& options, Time now);
  template <class Send>
  Issued issue_answered(Kind kind, link::PeerId to, const Options& options, Send send);
  Peer* peer_of(link::PeerId id);
  Peer* find_peer(link::PeerId id) const {
    const std::size_t slot = id.value & 0xffff;
    Peer* p = slot < peers_.size() ? peers_[slot].get() : nullptr;
    return p && p->id == id ? p : nullptr;
  }
  void activate(Peer& peer);
  void complete(Slot slot, Status status);

  // impl/fifo_credit.hpp: our ends of other tasks' FIFOs, and their ends of ours
  Writer* find_writer(WriterId id);                              // as the user may name it
  Writer* find_waiting(std::uint32_t name, link::PeerId owner);  // as its FIFO's owner may
  WriterId id_of(const Writer& w) const {
    return {static_cast<std::uint32_t>(w.generation) << 16 |
            static_cast<std::uint32_t>(&w - writers_.data() + 1)};
  }
  Status afford(Writer& writer, std::uint64_t blocks, Time now);
  void spend(Writer& writer, std::uint64_t blocks);
  void refund(const Request& request);
  void talk(Writer& writer);
  void speak(Writer& writer, Time now);
  void drop_writer(Writer& writer, Status why);
  void on_grant(const link::Incoming& message);
  void on_recall(const link::Incoming& message);
  void on_gone(const link::Incoming& message);
  link::Verdict on_want(const link::Incoming& message);
  link::Verdict on_give_back(const link::Incoming& message);
  link::Verdict say_gone(const link::Incoming& message, std::uint32_t writer, Status why);
  void tell_writers(Time now);
  bool tell_writers(Fifo& fifo, Time now);

  // impl/target.hpp: requests of others
  link::Verdict on_message(const link::Incoming& message) override;
  link::Verdict serve_silent(const link::Incoming& message, Kind kind);
  [[gnu::always_inline]] link::Verdict serve_request(const link::Incoming& message, Kind kind,
                                                     const TargetHead& target, Bytes rest);
  [[gnu::always_inline]] link::Verdict serve_write(const link::Incoming& message,
                                                   const TargetHead& target, Bytes data);
  link::Verdict serve_write_then(const link::Incoming& message, const TargetHead& target,
                                 Bytes rest);
  link::Verdict serve_long_write(const link::Incoming& message, const TargetHead& target,
                                 Bytes data);
  link::Verdict serve_long_more(const link::Incoming& message);
  link::Verdict serve_long_then(const link::Incoming& message);
  link::Verdict serve_append(const link::Incoming& message, const TargetHead& target, Bytes data);
  link::Verdict serve_append_more(const link::Incoming& message);
  link::Verdict serve_read(const link::Incoming& message, const TargetHead& target, Bytes rest);
  link::Verdict serve_atomic(const link::Incoming& message, const TargetHead& target, Bytes rest);
  link::Verdict serve_signal(const link::Incoming& message, const TargetHead& target, Bytes rest);
  link::Verdict serve_fence(const link::Incoming& message);
  link::Verdict bad(Counter reason) {
    counters_.add(reason);
    return link::Verdict::taken;
  }
  bool may_answer(link::PeerId to);
  void count_refusal(Status status);
  void answer(link::PeerId to, std::uint32_t id, Status status, Time now);
  void end_long_write(Peer& peer, Status status, Time now);
  struct Second;  // a checked second part
  Status prepare(link::PeerId from, const ThenHead& head, Second& second);
  void forgo(link::PeerId from, const ThenHead& head);
  void carry_out(const Second& second, Bytes entry);
  void raise(Signal& signal);
  void tell_signals();

  // impl/completions.hpp: what peers say to requests of ours
  void on_answer(const link::Incoming& message);
  void on_value(const link::Incoming& message);
  void on_data(const link::Incoming& message);
  void on_peer_up(link::PeerId peer, const link::Address& address) override;
  void on_peer_down(link::PeerId peer, const link::Address& address,
                    link::DownReason reason) override;

  // impl/segmentation.hpp: long requests, piece by piece
  void pump(Time now);
  void start_now(Peer& peer, const Options& options, Time now);
  std::optional<std::size_t> send_piece(link::PeerId to, link::Lane lane, Kind kind, Bytes head,
                                        const std::byte* from, std::uint64_t left,
                                        std::size_t& budget, Time now);
  void end_append(Peer& peer);
  bool pump_peer(Peer& peer, std::size_t& budget, Time now);
  bool send_append(Peer& peer, std::size_t& budget, Time now);
  bool send_write(Peer& peer, std::size_t& budget, Time now);
  bool send_read(Peer& peer, Time now);
  bool answer_read(Peer& peer, std::size_t& budget, Time now);

  Link& link_;
  std::vector<SilentCount> silent_;  // by the slot in their PeerId
  Counters counters_;
  KeyTable keys_;
  RequestTable requests_;
  RequestList complete_;
  base::RingBuffer<Completion> failures_;  // of silent requests

  std::vector<std::unique_ptr<Peer>> peers_;  // by the slot in their PeerId
  std::vector<Peer*> active_;                 // have something long to send
  std::size_t next_active_ = 0;
  const std::size_t max_writers_;
  std::vector<Writer> writers_;
  std::uint32_t names_ = 0;
  std::size_t talking_ = 0;  // writers that have to ask or to give back

  std::vector<Fifo*> fifos_;
  std::vector<Fifo*> news_;     // those that have something to tell their writers
  std::vector<Bereft> bereft_;  // to be told that theirs is gone
  std::vector<Signal*> raised_;
  std::vector<std::unique_ptr<Signal>> retired_;  // withdrawn, perhaps by their own handlers
  link::EventQueue events_;
};

}  // namespace viaduct::mbcf
