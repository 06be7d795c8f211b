// One collective operation of this process: the request that the user waits for, and what its
// algorithm needs until then. Handles that the user frees meanwhile stay valid for it (MPI 5.0,
// section 6.12).
#pragma once

#include <string>

#include "libmpi_lite/collective/collective.hpp"
#include "libmpi_lite/collective/task.hpp"

namespace viaduct::mpi {

// What a rank takes an operation for.
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
};

// The tag of an operation's messages: its serial number among those of the communicator, which all
// ranks start in the same order, its kind, and the form that this rank chooses by the length. So
// messages of ranks that disagree do not meet, and the ranks see it. It fits a ShortHead.
struct CollectiveTag {
  static constexpr int kSerialBits = 19, kKindBits = 4, kBits = kSerialBits + kKindBits + 1;
  static constexpr std::uint32_t kSerials = 1u << kSerialBits;

  static constexpr int of(std::uint32_t serial, CollectiveKind kind) {
    return static_cast<int>(serial % kSerials | static_cast<unsigned>(kind) << kSerialBits);
  }
  static constexpr int kLongForm = 1 << (kBits - 1);

  static constexpr bool numbered(int tag) { return tag >> kBits == 0; }
  static constexpr std::uint32_t serial(int tag) { return static_cast<unsigned>(tag) % kSerials; }
  static constexpr CollectiveKind kind(int tag) {
    return static_cast<CollectiveKind>(tag >> kSerialBits & ((1 << kKindBits) - 1));
  }
  // The last operation before the one with number `next` whose messages have such a tag.
  static constexpr std::uint32_t number(int tag, std::uint32_t next) {
    return next - 1 - (next - 1 - serial(tag)) % kSerials;
  }
};
// Of MPI_Finalize's barrier. Tags from 2^30 on are agreement_tag()s.
inline constexpr int kLastBarrierTag = 1 << 29;

class Collective final : public Request, public Pooled {
 public:
  using Pooled::operator new;
  using Pooled::operator delete;

  // The next one of the communicator: operations that are under way together do not mix.
  Collective(Comm& comm, CollectiveKind kind);
  // With a tag of its own: what only some of the processes have started.
  Collective(Comm& comm, int tag);
  ~Collective() override {
    if (queues_) leave_queues();
  }

  Comm* communicator() const override { return comm_.get(); }
  Comm& comm() const { return *comm_; }
  // Keeps it alive until the operation is complete.
  Datatype& hold(MPI_Datatype type);
  void hold(const Op& op) { op_ = Ref<Op>(const_cast<Op*>(&op)); }
  Items items(const Part& part) { return {part.data, part.count, &hold(part.type)}; }

  // Before the first message: the algorithm for long data. A rank that has chosen the other one
  // would wait for other messages.
  void take_long_form() { tag_ |= CollectiveTag::kLongForm; }
  int tag() const { return tag_; }

  // Messages of this operation, to and from ranks of the communicator...
  Ref<Request> send(int rank, const Items& items) const { return send(with(rank), items); }
  Ref<Request> receive(int rank, const Items& items) const { return receive(with(rank), items); }
  // ... and of another one.
  Ref<Request> send(const Envelope& to, const Items& items) const {
    if (lacks_data()) [[unlikely]]
      return send_nothing(to);
    return start_send(items, to, SendMode::standard);
  }
  Ref<Request> receive(const Envelope& from, const Items& items) const {
    if (gave_up_) [[unlikely]]
      return complete_send();
    return start_receive(items, from);
  }

  // Something went wrong; the first error stays.
  void note(int code, std::string why) {
    if (error != MPI_SUCCESS) return;
    error = code;
    why_ = std::move(why);
  }
  // Of a message that has completed: of a receive also that it was shorter than it should be.
  void check(const Request& message) {
    const bool receive = message.kind == Request::Kind::receive;
    if (message.error != MPI_SUCCESS || (receive && !received_all(message))) [[unlikely]]
      note(message);
  }
  // Ends the operation at all ranks that have not completed it: they disagree about it, and would
  // wait for messages that nobody sends.
  void give_up(int code, std::string why);
  bool gave_up() const { return gave_up_; }
  // What this rank has is not what it should have, so it is not worth sending or combining.
  bool lacks_data() const { return lost_ >= 0 || gave_up_; }
  const std::string& why() const { return why_; }

  // Runs the algorithm up to its first wait. It keeps itself alive until it is complete.
  Ref<Request> run(Task task);
  void finish_if_done();

 private:
  friend class Pending;
  friend class Collectives;

  Envelope with(int rank) const { return {comm_.get(), comm_->collective_context(), rank, tag_}; }
  void note(const std::exception_ptr& thrown);
  // As above. A receive that fails for want of a process leaves nothing to go on with: from then on
  // the others hear of the loss instead of what they wait for.
  void note(const Request& message);
  Ref<Request> send_nothing(const Envelope& to) const;
  void disagree(int process, int tag);
  // Somebody may have refused this operation before it was started here.
  [[gnu::cold]] void look_for_refusal();
  void hear(Refusal refusal);
  void stop(int code, std::string why);
  void look_for_disagreement();
  [[gnu::noinline]] void judge_kept_messages();
  void leave_queues();
  // Calls visit(process) for each receive of this operation that no message has met. Who makes an
  // intercommunicator also waits for a message of another one, about which its sender cannot be
  // asked by this one's number.
  template <class Visit>
  void for_each_awaited(Visit visit) const {
    for (const Pending* p = pendings_; p; p = p->next_of_collective())
      for (const Ref<Request>& request : p->requests())
        if (const int process = awaited_process(*request, tag_); process >= 0) visit(process);
  }
  static Collective* find(const MatchQueues& queues, std::uint32_t number);  // under way
  // Among the operations of its communicator, if it is listed there.
  std::uint32_t number() const;
  bool time_to_ask();

  const Ref<Comm> comm_;
  MatchQueues* queues_ = nullptr;  // where it is listed, if it has a number
  Collective *next_ = nullptr, *previous_ = nullptr;
  int tag_;
  bool gave_up_ = false, looked_ = false;
  std::uint16_t waits_ = 0;  // see time_to_ask()
  int lost_ = -1;            // the process without which this one cannot send what it should
  Pending* pendings_ = nullptr;
  Ref<Op> op_;
  PoolVector<Ref<Datatype>> types_;
  std::string why_;
  Task task_;
  Ref<Collective> self_;
};

}  // namespace viaduct::mpi
