// Processes that are lost: what waits for them ends with MPI_ERR_PROC_ABORTED, and so does what
// would have needed them by way of others, whom those tell.

#include "libmpi_lite/core/error.hpp"
#include "libmpi_lite/transfer/engine.hpp"

namespace viaduct::mpi {
namespace {

// A receive from anybody may have been meant for the lost process, if that could send to it: nobody
// can tell.
bool may_come_from(int peer, const Comm& comm, int process) {
  if (peer >= 0) return peer == process;
  const Group& senders = comm.inter() ? *comm.remote_group() : *comm.group();
  return senders.rank_of(process) != MPI_UNDEFINED;
}

}  // namespace

void Transfer::on_peer_lost(int process, std::string_view why) {
  Peer& p = peer(process);
  if (p.lost) return;
  p.lost = true;
  p.why = why;
  ++lost_;
  std::deque<Outgoing> unsent = std::move(p.outgoing);
  p.outgoing.clear();
  p.ready.clear();
  p.to_grant.clear();
  for (const Outgoing& out : unsent)
    if (out.completes && !out.completes->complete) fail(*out.completes, MPI_ERR_PROC_ABORTED);
  std::vector<Ref<ReceiveRequest>> in_vain;
  matches_.for_each([&](MatchQueues& queues) {
    queues.for_each_posted([&](ReceiveRequest& r) {
      if (!may_come_from(r.peer, *r.comm, process)) return;
      in_vain.emplace_back(&r);
      queues.unpost(r);
    });
  });
  for (const Ref<ReceiveRequest>& r : in_vain) fail_for_loss(*r, process);
  pending_.for_each([&](Request& r) {
    auto& operation = static_cast<Operation&>(r);
    if (operation.peer == process) fail(operation, MPI_ERR_PROC_ABORTED);
  });
}

int Transfer::lost_sender(int peer, const Comm& comm) const {
  for (const std::unique_ptr<Peer>& p : peers_)
    if (p && p->lost && may_come_from(peer, comm, p->rank)) return p->rank;
  return -1;
}

void Transfer::check_sender(const Envelope& from) {
  const int process = from.rank < 0 ? -1 : from.comm->peer(from.rank);
  if (process >= 0) peer(process);  // opening it is what makes its channel watch it
  if (lost_ == 0) return;
  const int lost = lost_sender(process, *from.comm);
  if (lost >= 0) throw Error(MPI_ERR_PROC_ABORTED, loss_text(lost));
}

std::string Transfer::loss_text(int process) {
  for (const std::unique_ptr<Peer>& p : peers_)
    if (p && p->lost && (process < 0 || p->rank == process))
      return "process " + std::to_string(p->rank) + " of MPI_COMM_WORLD was lost: " + p->why;
  if (process < 0) return "the operation failed";
  return "process " + std::to_string(process) +
         " of MPI_COMM_WORLD was lost, as another process reports";
}

// ---- losses that others tell of ----------------------------------------------------------------

// It costs the receiver what an announced message does, and is not charged either.
void Transfer::send_loss(const Envelope& to, int process) {
  Peer& p = peer(to.comm->peer(to.rank));
  if (p.lost) return;
  if (p.early) count_sent(p, to.context, to.tag);
  ++p.sent;
  LossHead head{};
  head.head = {Kind::loss, {}, to.context, to.comm->rank(), to.tag};
  head.process = static_cast<std::uint32_t>(process);
  say(p, bytes_of(head));
}

void Transfer::on_loss(Peer& p, const LossHead& head) {
  if (head.process >= peers_.size()) return void(malformed(p));
  ++p.arrived;
  const int process = static_cast<int>(head.process);
  if (const Ref<ReceiveRequest> receive = matches_[head.head.context].match_message(head.head)) {
    unwant(*receive);
    fail_for_loss(*receive, process);
  } else {
    keep(p, head.head).lost = process;
  }
  consume(p, 0);
}

// ---- collectives that fail at another process --------------------------------------------------

void Transfer::send_refusal(int process, std::uint32_t context, std::uint32_t number, int error) {
  Peer& p = peer(process);
  if (p.lost) return;
  say(p, bytes_of(RefusalHead{Kind::refusal, {}, context, number, error}));
}

void Transfer::on_refusal(Peer& p, const RefusalHead& head) {
  if (head.error <= MPI_SUCCESS || head.error > MPI_ERR_LASTCODE ||
      !collective_context(head.context))
    return void(malformed(p));
  config_.collectives->on_refusal(matches_[head.context], {head.number, p.rank, head.error});
}

// A question that finds no room is not kept: there will be another one.
void Transfer::ask_in_collectives() {
  matches_.for_each([&](MatchQueues& queues) {
    config_.collectives->for_each_question(queues, [&](int process, const Question& q) {
      Peer& p = peer(process);
      const QuestionHead head{Kind::question, {}, q.context, q.number, q.tag};
      if (!p.lost && p.outgoing.empty()) p.through->send_control(p.rank, bytes_of(head), {});
    });
  });
}

// Whoever asks may be behind: the communicator may be gone here, and is not to leave anything.
void Transfer::on_question(Peer& p, const QuestionHead& head) {
  if (!collective_context(head.context)) return void(malformed(p));
  MatchQueues* const queues = matches_.known(head.context);
  if (!queues) return;
  const Question question{head.context, head.number, head.tag};
  if (!config_.collectives->on_question(*queues, question, p.rank)) return;
  say(p, bytes_of(QuestionHead{Kind::ended, {}, head.context, head.number, head.tag}));
}

void Transfer::on_ended(Peer& p, const QuestionHead& head) {
  if (!collective_context(head.context)) return void(malformed(p));
  if (MatchQueues* const queues = matches_.known(head.context))
    config_.collectives->on_ended(*queues, head.number, p.rank);
}

void Transfer::fail_for_loss(ReceiveRequest& receive, int process) {
  receive.peer = process;  // whose loss is the reason
  fail(receive, MPI_ERR_PROC_ABORTED);
}

}  // namespace viaduct::mpi
