// Class Collective, and the implementation of CollectiveSink: how an operation starts and ends, and
// how ranks that disagree about an operation find out and end it together. The algorithms are in
// the files named after their operations.
//
// A rank finds a disagreement in one of these ways: a message has the wrong length
// (Collective::note); a message of the operation has another tag (on_early_message,
// judge_unexpected); a status query or its answer shows it (on_status_query, on_status_ended). The
// rank that finds the disagreement sends refusals to all others (send_refusals).
#include "libmpi_lite/collective/collective_request.hpp"

#include <algorithm>
#include <bit>
#include <optional>

#include "libmpi_lite/core/error.hpp"
#include "libmpi_lite/transfer/engine.hpp"

namespace viaduct::mpi {
namespace {

const char* name_of(CollectiveKind kind) {
  switch (kind) {
    case CollectiveKind::barrier: return "MPI_Barrier";
    case CollectiveKind::broadcast: return "MPI_Bcast";
    case CollectiveKind::gather: return "MPI_Gather";
    case CollectiveKind::gatherv: return "MPI_Gatherv";
    case CollectiveKind::scatter: return "MPI_Scatter";
    case CollectiveKind::scatterv: return "MPI_Scatterv";
    case CollectiveKind::allgather: return "MPI_Allgather or MPI_Allgatherv";
    case CollectiveKind::alltoall: return "MPI_Alltoall";
    case CollectiveKind::alltoallv: return "MPI_Alltoallv or MPI_Alltoallw";
    case CollectiveKind::reduce: return "MPI_Reduce";
    case CollectiveKind::allreduce: return "MPI_Allreduce";
    case CollectiveKind::reduce_scatter: return "MPI_Reduce_scatter";
    case CollectiveKind::scan: return "MPI_Scan";
    case CollectiveKind::exscan: return "MPI_Exscan";
    case CollectiveKind::construction: return "the making of a communicator";
    case CollectiveKind::neighbor: return "a collective of neighbours";
  }
  return "another operation";
}

std::string name_of_process(int process) {
  return "process " + std::to_string(process) + " of MPI_COMM_WORLD";
}

// The queues of the collective context, remembered in the communicator: they live as long as it.
[[gnu::cold, gnu::noinline]] MatchQueues& find_queues(Comm& comm) {
  MatchQueues& queues = Transfer::self().queues(comm.collective_context());
  queues.inter = comm.inter();
  return *(comm.collective_queues = &queues);
}
inline MatchQueues& queues_of(Comm& comm) {
  return comm.collective_queues ? *comm.collective_queues : find_queues(comm);
}

// Sends a refusal to every process of the communicator but this one.
void send_refusals(const Comm& comm, std::uint32_t number, int error) {
  Transfer& transfer = Transfer::self();
  for (const Ref<Group>& group : {comm.group(), comm.remote_group()}) {
    if (!group) continue;
    for (const int process : group->world_ranks())
      if (process != transfer.rank())
        transfer.send_refusal(process, comm.collective_context(), number, error);
  }
}

// Whether the operation with that number comes before the one that is `next`. Modulo 2^32.
bool is_past(std::uint32_t number, std::uint32_t next) {
  return static_cast<std::int32_t>(number - next) < 0;
}

// The number of the operation that a message with that tag belongs to, if this rank has started the
// operation recently. A tag has only 19 bits of the number, so an old operation has the same tag as
// one 2^19 operations later, whose messages may be here already: a rank may run ahead of the ranks
// that do not hold it up. So only the last kLate operations are recognised. In an intercommunicator
// a rank need not take part in an operation at all, and may be ahead by any number.
std::optional<std::uint32_t> late_number(const MatchQueues& queues, int tag) {
  constexpr std::uint32_t kLate = 1024;
  if (!CollectiveTag::numbered(tag) || queues.inter) return std::nullopt;
  const std::uint32_t next = queues.next_collective;
  const std::uint32_t number = CollectiveTag::number(tag, next);
  if (next - number > std::min(kLate, next)) return std::nullopt;
  return number;
}

// The failure of an operation, at this rank or at another. It is remembered for some time after the
// operation, as messages of it may still arrive.
const Refusal* find_refusal(const MatchQueues& queues, std::uint32_t number) {
  const auto found = std::ranges::find(queues.refusals, number, &Refusal::number);
  return found == queues.refusals.end() ? nullptr : &*found;
}

void forget_old_refusals(MatchQueues& queues) {
  constexpr std::uint32_t kKnownFor = 64;  // operations
  std::erase_if(queues.refusals, [&](const Refusal& r) {
    return is_past(r.number, queues.next_collective - kKnownFor);
  });
}

void add_refusal(MatchQueues& queues, const Refusal& refusal) {
  forget_old_refusals(queues);
  if (!find_refusal(queues, refusal.number)) queues.refusals.push_back(refusal);
}

// How many unexpected messages of each bin judge_unexpected() looks at. There may be many of
// later operations, and those of the current one are the oldest.
constexpr unsigned kMaxMessagesLookedAt = 8;

}  // namespace

Collective* Collective::find(const MatchQueues& queues, std::uint32_t number) {
  Collective* op = queues.under_way;
  while (op && op->number() != number) op = op->next_;
  return op;
}

std::uint32_t Collective::number() const {
  return CollectiveTag::number(tag_, queues_->next_collective);
}

// Called every 50 ms while this process waits. True at calls 2, 4, 8, ... 512, then at each 1024th,
// which is once in 51 s. The gaps grow so that a rank that computes for an hour does not find
// thousands of queries.
bool Collective::time_to_query() {
  constexpr unsigned kSeldom = 1024;
  ++waits_;
  return waits_ > 1 && (waits_ < kSeldom ? std::has_single_bit(waits_) : waits_ % kSeldom == 0);
}

Collective::Collective(Comm& comm, CollectiveKind kind)
    : Request(Kind::collective),
      comm_(&comm),
      queues_(&queues_of(comm)),
      tag_(CollectiveTag::of(queues_->next_collective++, kind)) {
  next_ = queues_->under_way;
  if (next_) next_->previous_ = this;
  queues_->under_way = this;
  if (!queues_->refusals.empty()) [[unlikely]]
    look_for_refusal();
}

Collective::Collective(Comm& comm, int tag) : Request(Kind::collective), comm_(&comm), tag_(tag) {}

void Collective::leave_queues() {
  (previous_ ? previous_->next_ : queues_->under_way) = next_;
  if (next_) next_->previous_ = previous_;
  queues_ = nullptr;
}

Datatype& Collective::hold(MPI_Datatype type) {
  Datatype& t = datatype(type);
  // Predefined ones cannot be freed.
  if (!t.predefined()) types_.push_back(Ref<Datatype>(&t));
  return t;
}

// Messages that abort_everywhere() has cancelled come here, too, and mean nothing.
void Collective::note(const Request& message) {
  if (aborted_) return;
  const bool receive = message.kind == Request::Kind::receive;
  if (receive && message.error == MPI_ERR_TRUNCATE)
    return abort_everywhere(message.error, error_text(message));
  if (receive && message.error == MPI_SUCCESS)
    return abort_everywhere(MPI_ERR_TRUNCATE,
                            "rank " + std::to_string(message.status.MPI_SOURCE) + " has sent " +
                                std::to_string(status_bytes(message.status)) +
                                " bytes, which is less than this rank expects of it");
  if (receive && message.error == MPI_ERR_PROC_ABORTED && lost_ < 0) lost_ = lost_process(message);
  note(message.error, error_text(message));
}

Ref<Request> Collective::send_nothing(const Envelope& to) const {
  return aborted_ ? complete_send() : send_loss(to, lost_);
}

// ---- ranks that disagree -----------------------------------------------------------------------

void Collective::abort_everywhere(int code, std::string why) {
  if (aborted_) return;
  if (queues_) send_refusals(*comm_, number(), code);
  abort_locally(code, std::move(why));
}

// The cancelled messages complete the wait of the task, which then runs to its end.
void Collective::abort_locally(int code, std::string why) {
  if (aborted_) return;
  aborted_ = true;
  note(code, std::move(why));
  if (queues_) add_refusal(*queues_, {number(), Transfer::self().rank(), code});
  for (Pending* p = pendings_; p; p = p->next_of_collective()) p->cancel();
}

void Collective::on_mismatch(int process, int tag) {
  const CollectiveKind ours = CollectiveTag::kind(tag_), theirs = CollectiveTag::kind(tag);
  if (ours == theirs)
    return abort_everywhere(MPI_ERR_TRUNCATE, name_of_process(process) +
                                                  " takes part with another length than this rank");
  abort_everywhere(MPI_ERR_OTHER, name_of_process(process) + " is in " + name_of(theirs) +
                                      " where this rank is in " + name_of(ours));
}

void Collective::look_for_refusal() {
  forget_old_refusals(*queues_);
  if (const Refusal* const refusal = find_refusal(*queues_, number())) on_refused(*refusal);
}

void Collective::on_refused(Refusal refusal) {
  abort_locally(refusal.error, "the operation has failed at " + name_of_process(refusal.process) +
                                   ", as that one tells");
}

// Messages of ranks that disagree may have arrived before the operation started here, when
// on_early_message() could not judge them. One look is enough: on_early_message() judges all that
// arrive later.
void Collective::look_for_disagreement() {
  if (looked_ || !queues_) return;
  looked_ = true;
  if (queues_->has_unexpected()) judge_unexpected();
}

// A message of this operation with another tag shows a disagreement. An eager message of an
// operation that has ended here is dropped, so that its credit returns. An RTS of such an operation
// stays: its sender cancels the send when it gets the refusal, and the cancellation must find the
// RTS here.
void Collective::judge_unexpected() {
  MatchQueues& queues = *queues_;
  queues.for_oldest_unexpected(kMaxMessagesLookedAt, [&](Unexpected& message) {
    const int tag = message.head.tag;
    const std::optional<std::uint32_t> number = late_number(queues, tag);
    if (!number) return;
    if (*number == this->number()) {
      if (tag != tag_) on_mismatch(message.peer, tag);
    } else if (message.head.kind != mpi::Kind::request_to_send && !find(queues, *number)) {
      Transfer::self().drop(queues, message);
    }
  });
}

void Collective::note(const std::exception_ptr& thrown) {
  try {
    std::rethrow_exception(thrown);
  } catch (const Error& e) {
    note(e.code(), e.what());
  } catch (const std::bad_alloc&) {
    note(MPI_ERR_NO_MEM, "there is no memory for what has to be received on the way");
  } catch (const std::exception& e) {
    note(MPI_ERR_OTHER, e.what());
  }
}

// The caller's reference is made first: the operation may be complete, and give up its hold on
// itself, before run() returns.
Ref<Request> Collective::run(Task task) {
  task_ = std::move(task);
  self_ = Ref<Collective>(this);
  Ref<Request> request(this);
  task_.start();
  finish_if_done();
  return request;
}

void Collective::finish_if_done() {
  if (!task_.done()) return;
  if (task_.error()) note(task_.error());
  task_ = Task();
  if (queues_) leave_queues();
  status.MPI_ERROR = error;
  const Ref<Collective> keep = std::move(self_);  // finish() may release all others
  finish();
}

void refuse_next_collective(Comm& comm, int error) {
  MatchQueues& queues = queues_of(comm);
  const std::uint32_t number = queues.next_collective++;
  add_refusal(queues, {number, Transfer::self().rank(), error});
  send_refusals(comm, number, error);
}

class Collectives final : public CollectiveSink {
 public:
  bool progress() override { return continue_collectives(); }
  void on_early_message(MatchQueues& queues, const Unexpected& message) override;
  void on_refusal(MatchQueues& queues, const Refusal& refusal) override;
  void for_each_status_query(const MatchQueues& queues,
                             const std::function<void(int, const StatusQuery&)>& visit) override;
  bool on_status_query(MatchQueues& queues, const StatusQuery& query, int process) override;
  void on_status_ended(MatchQueues& queues, std::uint32_t number, int process) override;
};

CollectiveSink& collective_sink() {
  static Collectives collectives;
  return collectives;
}

// A refusal of an operation that this rank has completed comes too late. One of an operation that
// this rank has not started is kept for look_for_refusal().
void Collectives::on_refusal(MatchQueues& queues, const Refusal& refusal) {
  if (Collective* const op = Collective::find(queues, refusal.number))
    return op->on_refused(refusal);
  if (!is_past(refusal.number, queues.next_collective)) add_refusal(queues, refusal);
}

void Collectives::for_each_status_query(const MatchQueues& queues,
                                        const std::function<void(int, const StatusQuery&)>& visit) {
  for (Collective* op = queues.under_way; op; op = op->next_) {
    if (!op->time_to_query()) continue;
    const StatusQuery query{op->comm().collective_context(), op->number(), op->tag()};
    op->for_each_awaited([&](int process) { visit(process, query); });
  }
}

// The answer is yes if the operation has ended here. While it is under way, or has not started, the
// querying process goes on waiting and gets no answer. If it has failed here, the answer is a
// refusal with the error: the one of the rank that has found the mistake may still be on its way to
// the querying process, and "ended" would make that one report another error.
bool Collectives::on_status_query(MatchQueues& queues, const StatusQuery& query, int process) {
  if (Collective* const op = Collective::find(queues, query.number)) {
    if (op->tag() != query.tag) op->on_mismatch(process, query.tag);
    return false;
  }
  if (!is_past(query.number, queues.next_collective)) return false;
  const Refusal* const refusal = find_refusal(queues, query.number);
  if (refusal) Transfer::self().send_refusal(process, query.context, query.number, refusal->error);
  return !refusal;
}

// The answer is in order behind all messages of that process. If this rank still awaits one of
// them, the message will never come.
void Collectives::on_status_ended(MatchQueues& queues, std::uint32_t number, int process) {
  Collective* const op = Collective::find(queues, number);
  if (!op || op->aborted()) return;
  bool in_vain = false;
  op->for_each_awaited([&](int awaited) { in_vain |= awaited == process; });
  if (in_vain)
    op->abort_everywhere(
        MPI_ERR_TRUNCATE,
        name_of_process(process) +
            " has completed the operation, with another length than this rank or as "
            "another one, and sends nothing more");
}

void Collectives::on_early_message(MatchQueues& queues, const Unexpected& message) {
  const int tag = message.head.tag;
  const std::optional<std::uint32_t> number = late_number(queues, tag);
  if (!number) return;
  if (Collective* const op = Collective::find(queues, *number)) {
    if (op->tag() != tag) op->on_mismatch(message.peer, tag);
  } else {
    // The operation has ended here, so no receive will take the message. Its sender may wait for
    // that, if it has sent an RTS.
    const Refusal* const refusal = find_refusal(queues, *number);
    Transfer::self().send_refusal(message.peer, message.head.context, *number,
                                  refusal ? refusal->error : MPI_ERR_TRUNCATE);
  }
}

void finish_collective(const Request& collective) {
  wait(collective);
  if (collective.error != MPI_SUCCESS) [[unlikely]]
    throw Error(collective.error, static_cast<const Collective&>(collective).why());
}

}  // namespace viaduct::mpi
