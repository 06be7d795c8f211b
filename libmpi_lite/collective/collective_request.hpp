// One collective operation of this process: the request that the program waits for, and what its
// algorithm needs until then. It holds the objects behind handles that the program may free
// meanwhile (MPI 5.0, section 6.12), and itself until the algorithm has ended.
//
// Messages of an operation carry its number and kind in their tag. So this rank sees when another
// rank takes part with another operation or another length, and ends the operation everywhere
// (abort_everywhere()). The events for that come through class CollectiveSink.
//
// Threads: one thread at a time is in the library.
#pragma once

#include <string>

#include "libmpi_lite/collective/collective.hpp"
#include "libmpi_lite/collective/task.hpp"

namespace viaduct::mpi {

// Which operation a rank takes part in. Four bits of the tag (CollectiveTag).
enum class CollectiveKind : std::uint8_t {
  barrier,
  broadcast,
  gather,
  gatherv,
  scatter,
  scatterv,
  allgather,  // and allgatherv
  alltoall,
  alltoallv,  // and alltoallw
  reduce,
  allreduce,
  reduce_scatter,  // and reduce_scatter_block
  scan,
  exscan,
  construction,  // of a communicator
  neighbor,      // between neighbours in a topology
};

// The tag of an operation's messages: the low bits of its number among the operations of the
// communicator, which all ranks start in the same order; its kind; and the form of the algorithm,
// which each rank chooses by the length. So messages of ranks that disagree do not match, and are
// seen as unexpected. The tag fits a ShortHead.
//
//    bit 23          22 ... 19   18 ... 0
//    long form       kind        serial: number modulo 2^19
struct CollectiveTag {
  static constexpr int kSerialBits = 19, kKindBits = 4, kBits = kSerialBits + kKindBits + 1;
  static constexpr std::uint32_t kSerials = 1u << kSerialBits;

  static constexpr int of(std::uint32_t serial, CollectiveKind kind) {
    return static_cast<int>(serial % kSerials | static_cast<unsigned>(kind) << kSerialBits);
  }
  static constexpr int kLongForm = 1 << (kBits - 1);

  // Whether the tag has this format. Others are agreement_tag()s, from 2^30 on, and one of
  // runtime/, 2^29.
  static constexpr bool numbered(int tag) { return tag >> kBits == 0; }
  static constexpr std::uint32_t serial(int tag) { return static_cast<unsigned>(tag) % kSerials; }
  static constexpr CollectiveKind kind(int tag) {
    return static_cast<CollectiveKind>(tag >> kSerialBits & ((1 << kKindBits) - 1));
  }
  // The full number of the operation with that tag: the latest one before the operation with number
  // `next` whose serial is the tag's.
  static constexpr std::uint32_t number(int tag, std::uint32_t next) {
    return next - 1 - (next - 1 - serial(tag)) % kSerials;
  }
};

// The life of a collective, blocking or not:
//
//       start_*(): the constructor takes the next number, and lists the operation in
//          |       MatchQueues::under_way
//          v  run(): Task::start()
//       running --- co_await Pending, not all of its messages complete ---> suspended
//          |  ^     (in a blocking call: makes progress until they are)         |
//          |  |                  Pending::completed(), called by the last of    |
//          |  |                  these messages inside a channel's poll         v
//          |  '---------- continue_collectives(), from progress() ---------- ready
//          |
//          | the task ends: finish_if_done()
//          v
//       complete: not in under_way, task and self-reference gone; Request::error is final
//
//       running, suspended: abort_everywhere() or abort_locally() sets aborted_, when ranks
//                disagree, a refusal arrives or a message is truncated. All messages under way are
//                cancelled; when they are complete, suspended becomes ready. The task then runs to
//                its end, while its sends and receives do nothing.
//       running: a receive that fails because a process was lost sets lost_. The task runs to its
//                end, and its sends become loss notices.
class Collective final : public Request, public Pooled {
 public:
  using Pooled::operator new;
  using Pooled::operator delete;

  // The next operation of the communicator. Its number keeps it apart from others under way.
  Collective(Comm& comm, CollectiveKind kind);
  // An operation without a number, told apart by its tag: for what only some of the ranks start.
  // Refusals and status queries do not cover it.
  Collective(Comm& comm, int tag);
  ~Collective() override {
    if (queues_) leave_queues();
  }

  Comm* communicator() const override { return comm_.get(); }
  Comm& comm() const { return *comm_; }
  // The object behind the handle; held as long as this request lives.
  Datatype& hold(MPI_Datatype type);
  void hold(const Op& op) { op_ = Ref<Op>(const_cast<Op*>(&op)); }
  Items items(const Part& part) { return {part.data, part.count, &hold(part.type)}; }

  // Marks that this rank uses the algorithm for long data; to be called before the first message. A
  // rank that uses the other algorithm would wait for different messages, so the tags must differ.
  void take_long_form() { tag_ |= CollectiveTag::kLongForm; }
  int tag() const { return tag_; }

  // Start messages of this operation, to and from ranks of the communicator...
  Ref<Request> send(int rank, const Items& items) const { return send(with(rank), items); }
  Ref<Request> receive(int rank, const Items& items) const { return receive(with(rank), items); }
  // ... and to and from any envelope, such as one of another communicator.
  Ref<Request> send(const Envelope& to, const Items& items) const {
    if (lacks_data()) [[unlikely]]
      return send_nothing(to);
    return start_send(items, to, SendMode::standard);
  }
  Ref<Request> receive(const Envelope& from, const Items& items) const {
    if (aborted_) [[unlikely]]
      return complete_send();
    return start_receive(items, from);
  }

  // Whether that rank's receive may soon ask for a message of so many bytes (write protocol).
  bool may_be_asked(int rank, std::size_t bytes) const {
    return !lacks_data() && mpi::may_be_asked(with(rank), bytes);
  }

  // Records an error class and its reason; the first error stays.
  void note(int code, std::string why) {
    if (error != MPI_SUCCESS) return;
    error = code;
    why_ = std::move(why);
  }
  // Records what went wrong with a message that is complete. For a receive that includes a message
  // shorter than the buffer: the other rank takes part with another length.
  void check(const Request& message) {
    const bool receive = message.kind == Request::Kind::receive;
    if (message.error != MPI_SUCCESS || (receive && !received_all(message))) [[unlikely]]
      note(message);
  }
  // Ends the operation at all ranks that have not completed it, by refusals. The ranks disagree
  // about it, and would wait for messages that are never sent.
  void abort_everywhere(int code, std::string why);
  bool aborted() const { return aborted_; }
  // The data of this rank is incomplete, so it must not be sent or combined.
  bool lacks_data() const { return lost_ >= 0 || aborted_; }
  const std::string& why() const { return why_; }

  // Runs the algorithm up to its first wait, or, in a blocking call, to its end. The operation
  // holds itself until it is complete.
  Ref<Request> run(Task task);
  void finish_if_done();  // completes the request if the task has ended

 private:
  friend class Pending;
  friend class Collectives;

  Envelope with(int rank) const { return {comm_.get(), comm_->collective_context(), rank, tag_}; }
  void note(const std::exception_ptr& thrown);
  // As check(), for a message that has something wrong. A receive that fails because a process was
  // lost leaves this rank without data: from then on it sends loss notices in place of data.
  void note(const Request& message);
  // In place of a send: nothing after abort_everywhere(), a loss notice after a loss.
  Ref<Request> send_nothing(const Envelope& to) const;
  // That process takes part in this operation with another tag: aborts.
  void on_mismatch(int process, int tag);
  // Another process may have refused this operation before it was started here.
  [[gnu::cold]] void look_for_refusal();
  void on_refused(Refusal refusal);               // aborts because of it
  void abort_locally(int code, std::string why);  // aborts without telling the other processes
  void look_for_disagreement();                   // at the first wait
  [[gnu::noinline]] void judge_unexpected();
  void leave_queues();  // leaves MatchQueues::under_way
  // Calls visit(process) for each receive of this operation that no message has met. The tag is
  // compared, because the construction of an intercommunicator also receives in another
  // communicator: about that message this operation's number says nothing.
  template <class Visit>
  void for_each_awaited(Visit visit) const {
    for (const Pending* p = pendings_; p; p = p->next_of_collective())
      p->for_each([&](const Request& request) {
        if (const int process = awaited_process(request, tag_); process >= 0) visit(process);
      });
  }
  // The operation under way with that number; nullptr: none.
  static Collective* find(const MatchQueues& queues, std::uint32_t number);
  // Among the operations of its communicator, modulo 2^32. Only while it is listed in queues_.
  std::uint32_t number() const;
  bool time_to_query();  // whether a query is due; to be called every 50 ms of a wait

  const Ref<Comm> comm_;
  MatchQueues* queues_ = nullptr;  // where it is listed; nullptr: without a number, or complete
  Collective *next_ = nullptr, *previous_ = nullptr;  // in MatchQueues::under_way
  int tag_;
  const bool blocking_ = BlockingCall::take();  // run() returns when the operation has ended
  bool aborted_ = false, looked_ = false;       // looked_: look_for_disagreement() has been called
  std::uint16_t waits_ = 0;                     // calls of time_to_query()
  int lost_ = -1;                // the lost process whose data this rank lacks; -1: none
  Pending* pendings_ = nullptr;  // list of the Pendings that have requests
  Ref<Op> op_;
  PoolVector<Ref<Datatype>> types_;
  std::string why_;       // a sentence about `error`
  Task task_;             // the outermost coroutine, from run() to the end
  Ref<Collective> self_;  // the hold on itself while task_ has not ended
};

}  // namespace viaduct::mpi
