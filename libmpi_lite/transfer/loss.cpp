// Failures of other processes. A channel reports a lost process (on_peer_lost): every operation
// that waits for it ends with MPI_ERR_PROC_ABORTED. A process that cannot send a message because a
// third one was lost sends a loss notice in its place. Also here: the control messages about
// collective operations that fail at some rank (refusals, status queries); collective/ decides what
// they mean.

#include "libmpi_lite/core/error.hpp"
#include "libmpi_lite/transfer/engine.hpp"

namespace viaduct::mpi {
namespace {

// Whether a message of process `peer` (-1: any) may be one of the lost `process`. For any source
// it is unknown which process was to send, so each that can send in `comm` counts.
bool may_come_from(int peer, const Comm& comm, int process) {
  if (peer >= 0) return peer == process;
  const Group& senders = comm.inter() ? *comm.remote_group() : *comm.group();
  return senders.rank_of(process) != MPI_UNDEFINED;
}

}  // namespace

// The operations that fail are collected before they are failed: fail() may run callbacks and
// release objects, and must not do so while a loop walks the queues. Unexpected messages stay:
// eager ones can still be received.
void Transfer::on_peer_lost(int process, std::string_view why) {
  Peer& p = peer(process);
  if (p.lost) return;
  p.lost = true;
  p.why = why;
  ++lost_;
  std::deque<Outgoing> unsent = std::move(p.outgoing);
  p.outgoing.clear();
  p.ready.clear();
  p.cts_due.clear();
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
  drop_due_rtrs(p);
  for (const Ref<ReceiveRequest>& r : in_vain) fail_for_loss(*r, process);
  // What is left: operations that have matched, or whose RTS or message the peer knows.
  pending_.for_each([&](Request& r) {
    auto& operation = static_cast<Operation&>(r);
    if (operation.peer == process) fail(operation, MPI_ERR_PROC_ABORTED);
  });
  config_.rma->on_peer_lost(process);
}

int Transfer::lost_sender(int peer, const Comm& comm) const {
  for (const std::unique_ptr<Peer>& p : peers_)
    if (p && p->lost && may_come_from(peer, comm, p->rank)) return p->rank;
  return -1;
}

void Transfer::check_sender(const Envelope& from) {
  const int process = from.rank < 0 ? -1 : from.comm->peer(from.rank);
  if (process >= 0) peer(process);  // opening the peer makes the channel watch the process
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

// ---- loss notices ------------------------------------------------------------------------------

// The notice takes part in matching, so the sender counts it like a message. It takes no more
// memory at the receiver than an RTS does, and is not charged as an eager message either.
void Transfer::send_loss(const Envelope& to, int process) {
  Peer& p = peer(to.comm->peer(to.rank));
  if (p.lost) return;
  if (p.write_protocol) count_sent(p, to.context, to.tag, 0);
  ++p.sent;
  LossHead head{};
  head.head = {Kind::loss, {}, to.context, to.comm->rank(), to.tag};
  head.process = static_cast<std::uint32_t>(process);
  send_control(p, bytes_of(head));
}

void Transfer::on_loss(Peer& p, const LossHead& head) {
  if (head.process >= peers_.size()) return void(malformed(p));
  ++p.arrived;
  const int process = static_cast<int>(head.process);
  if (const Ref<ReceiveRequest> receive = matches_[head.head.context].match_message(head.head)) {
    on_rtr_missed(*receive);
    fail_for_loss(*receive, process);
  } else {
    queue_unexpected(p, head.head).lost = process;
  }
  consume(p, 0);
}

// ---- collectives that fail at another process --------------------------------------------------

void Transfer::send_refusal(int process, std::uint32_t context, std::uint32_t number, int error) {
  Peer& p = peer(process);
  if (p.lost) return;
  send_control(p, bytes_of(RefusalHead{Kind::refusal, {}, context, number, error}));
}

void Transfer::on_refusal(Peer& p, const RefusalHead& head) {
  if (head.error <= MPI_SUCCESS || head.error > MPI_ERR_LASTCODE ||
      !collective_context(head.context))
    return void(malformed(p));
  config_.collectives->on_refusal(matches_[head.context], {head.number, p.rank, head.error});
}

// A query that finds no room in the channel is dropped and not queued, as it will be repeated.
void Transfer::send_status_queries() {
  matches_.for_each([&](MatchQueues& queues) {
    config_.collectives->for_each_status_query(queues, [&](int process, const StatusQuery& query) {
      Peer& p = peer(process);
      const StatusQueryHead head{Kind::question, {}, query.context, query.number, query.tag};
      if (!p.lost && p.outgoing.empty()) p.through->send_control(p.rank, bytes_of(head), {});
    });
  });
}

// The querying process may be far behind: if the communicator has been freed here, the query must
// not make new queues for its context. So known(), which makes none.
void Transfer::on_status_query(Peer& p, const StatusQueryHead& head) {
  if (!collective_context(head.context)) return void(malformed(p));
  MatchQueues* const queues = matches_.known(head.context);
  if (!queues) return;
  const StatusQuery query{head.context, head.number, head.tag};
  if (!config_.collectives->on_status_query(*queues, query, p.rank)) return;
  send_control(p, bytes_of(StatusQueryHead{Kind::ended, {}, head.context, head.number, head.tag}));
}

void Transfer::on_status_ended(Peer& p, const StatusQueryHead& head) {
  if (!collective_context(head.context)) return void(malformed(p));
  if (MatchQueues* const queues = matches_.known(head.context))
    config_.collectives->on_status_ended(*queues, head.number, p.rank);
}

void Transfer::fail_for_loss(ReceiveRequest& receive, int process) {
  receive.peer = process;  // for lost_process() and error_text()
  fail(receive, MPI_ERR_PROC_ABORTED);
}

}  // namespace viaduct::mpi
