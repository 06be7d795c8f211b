#include "libmpi_lite/collective/collective_request.hpp"

#include <algorithm>

#include "libmpi_lite/core/error.hpp"
#include "libmpi_lite/transfer/engine.hpp"

namespace viaduct::mpi {
namespace {

// As the user calls them.
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
  }
  return "another operation";
}

std::string name_of_process(int process) {
  return "process " + std::to_string(process) + " of MPI_COMM_WORLD";
}

[[gnu::cold, gnu::noinline]] MatchQueues& find_queues(Comm& comm) {
  return *(comm.collective_queues = &Transfer::self().queues(comm.collective_context()));
}
inline MatchQueues& queues_of(Comm& comm) {
  return comm.collective_queues ? *comm.collective_queues : find_queues(comm);
}

// To every process of the communicator but this one.
void tell_all(const Comm& comm, std::uint32_t serial, int error) {
  Transfer& transfer = Transfer::self();
  for (const Ref<Group>& group : {comm.group(), comm.remote_group()}) {
    if (!group) continue;
    for (const int process : group->world_ranks())
      if (process != transfer.rank())
        transfer.send_refusal(process, comm.collective_context(), serial, error);
  }
}

// What went wrong with an operation, at this rank or at another. It is known for some time after
// the operation, as messages for it may still arrive.
const Refusal* find_refusal(const MatchQueues& queues, std::uint32_t serial) {
  const auto found = std::ranges::find(queues.refusals, serial, &Refusal::serial);
  return found == queues.refusals.end() ? nullptr : &*found;
}

void forget_old_refusals(MatchQueues& queues) {
  constexpr std::uint32_t kKnownFor = 64;  // operations
  std::erase_if(queues.refusals, [&](const Refusal& r) {
    return CollectiveTag::is_past(r.serial, queues.next_collective - kKnownFor);
  });
}

// Of the messages that wait for their receives, so many from each are looked at for one that shows
// a disagreement; many that wait are those of later operations.
constexpr unsigned kMaxBytesLookedAt = 8;

}  // namespace

Collective* Collective::find(const MatchQueues& queues, std::uint32_t serial) {
  Collective* op = queues.under_way;
  while (op && CollectiveTag::serial(op->tag_) != serial) op = op->next_;
  return op;
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

void Collective::note(const Request& message) {
  if (gave_up_) return;
  const bool receive = message.kind == Request::Kind::receive;
  if (receive && message.error == MPI_ERR_TRUNCATE)
    return give_up(message.error, error_text(message));
  if (receive && message.error == MPI_SUCCESS)
    return give_up(MPI_ERR_TRUNCATE, "rank " + std::to_string(message.status.MPI_SOURCE) +
                                         " has sent " +
                                         std::to_string(status_bytes(message.status)) +
                                         " bytes, which is less than this rank expects of it");
  if (receive && message.error == MPI_ERR_PROC_ABORTED && lost_ < 0) lost_ = lost_process(message);
  note(message.error, error_text(message));
}

Ref<Request> Collective::send_nothing(const Envelope& to) const {
  return gave_up_ ? complete_send() : send_loss(to, lost_);
}

// ---- ranks that disagree -----------------------------------------------------------------------

void Collective::give_up(int code, std::string why) {
  if (gave_up_) return;
  if (queues_) tell_all(*comm_, CollectiveTag::serial(tag_), code);
  stop(code, std::move(why));
}

void Collective::stop(int code, std::string why) {
  if (gave_up_) return;
  gave_up_ = true;
  note(code, std::move(why));
  if (queues_)
    queues_->refusals.push_back({CollectiveTag::serial(tag_), Transfer::self().rank(), code});
  for (Pending* p = pendings_; p; p = p->next_of_collective()) p->cancel();
}

void Collective::disagree(int process, int tag) {
  const CollectiveKind ours = CollectiveTag::kind(tag_), theirs = CollectiveTag::kind(tag);
  if (ours == theirs)
    return give_up(MPI_ERR_TRUNCATE,
                   name_of_process(process) + " takes part with another length than this rank");
  give_up(MPI_ERR_OTHER, name_of_process(process) + " is in " + name_of(theirs) +
                             " where this rank is in " + name_of(ours));
}

void Collective::look_for_refusal() {
  forget_old_refusals(*queues_);
  if (const Refusal* const refusal = find_refusal(*queues_, CollectiveTag::serial(tag_)))
    hear(*refusal);
}

void Collective::hear(Refusal refusal) {
  stop(refusal.error,
       "the operation has failed at " + name_of_process(refusal.process) + ", as that one tells");
}

// When it first waits: messages may have come before it was started.
void Collective::look_for_disagreement() {
  if (looked_ || !queues_) return;
  looked_ = true;
  if (queues_->keeps_messages()) judge_kept_messages();
}

void Collective::judge_kept_messages() {
  MatchQueues& queues = *queues_;
  queues.for_oldest_kept(kMaxBytesLookedAt, [&](Unexpected& message) {
    const int tag = message.head.tag;
    if (!CollectiveTag::numbered(tag)) return;
    if (CollectiveTag::serial(tag) == CollectiveTag::serial(tag_)) {
      if (tag != tag_) disagree(message.peer, tag);
    } else if (message.head.kind != mpi::Kind::announce &&
               CollectiveTag::is_past(CollectiveTag::serial(tag), CollectiveTag::serial(tag_)) &&
               !find(queues, CollectiveTag::serial(tag))) {
      queues.take(message);
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
  const Ref<Collective> keep = std::move(self_);
  finish();
}

void refuse_next_collective(Comm& comm, int error) {
  MatchQueues& queues = queues_of(comm);
  const std::uint32_t serial = queues.next_collective++ % CollectiveTag::kSerials;
  queues.refusals.push_back({serial, Transfer::self().rank(), error});
  tell_all(comm, serial, error);
}

void hear_refusal(MatchQueues& queues, const Refusal& refusal) {
  if (Collective* const op = Collective::find(queues, refusal.serial)) return op->hear(refusal);
  if (!CollectiveTag::is_past(refusal.serial, queues.next_collective))
    queues.refusals.push_back(refusal);
}

void for_each_awaited(const MatchQueues& queues,
                      const std::function<void(int, std::uint32_t, std::uint32_t)>& visit) {
  for (const Collective* op = queues.under_way; op; op = op->next_)
    op->for_each_awaited([&](int process) {
      visit(process, op->comm().collective_context(), CollectiveTag::serial(op->tag_));
    });
}

bool has_ended(const MatchQueues& queues, std::uint32_t serial) {
  return CollectiveTag::is_past(serial, queues.next_collective) &&
         !Collective::find(queues, serial);
}

void hear_ended(MatchQueues& queues, std::uint32_t serial, int process) {
  Collective* const op = Collective::find(queues, serial);
  if (!op || op->gave_up()) return;
  bool in_vain = false;
  op->for_each_awaited([&](int awaited) { in_vain |= awaited == process; });
  if (in_vain)
    op->give_up(MPI_ERR_TRUNCATE,
                name_of_process(process) +
                    " has completed the operation, with another length than this rank or as "
                    "another one, and sends nothing more");
}

void judge_early_message(MatchQueues& queues, const Unexpected& message) {
  const int tag = message.head.tag;
  if (!CollectiveTag::numbered(tag)) return;
  const std::uint32_t serial = CollectiveTag::serial(tag);
  if (Collective* const op = Collective::find(queues, serial)) {
    if (op->tag() != tag) op->disagree(message.peer, tag);
  } else if (CollectiveTag::is_past(serial, queues.next_collective)) {
    // Nobody here will receive it; its sender may wait for that.
    const Refusal* const refusal = find_refusal(queues, serial);
    Transfer::self().send_refusal(message.peer, message.head.context, serial,
                                  refusal ? refusal->error : MPI_ERR_TRUNCATE);
  }
}

void finish_collective(const Request& collective) {
  wait(collective);
  if (collective.error != MPI_SUCCESS) [[unlikely]]
    throw Error(collective.error, static_cast<const Collective&>(collective).why());
}

}  // namespace viaduct::mpi
