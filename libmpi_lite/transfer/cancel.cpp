// MPI_Cancel (MPI 5.0, section 3.8.4). A receive that no message has matched is taken back at once,
// unless the sender was asked to write into it; a send that the receiver knows of and has not
// matched, and such a receive, are taken back by asking the other end, which says what was first.

#include "libmpi_lite/transfer/engine.hpp"

namespace viaduct::mpi {
namespace {

void finish_cancelled(Request& request) {
  request.cancelled = true;
  set_status_cancelled(request.status, true);
}

}  // namespace

void Transfer::cancel(SendRequest& send) {
  if (send.complete || !send.can_be_cancelled()) return;
  Peer& p = peer(send.peer);
  say(p, bytes_of(IdHead{Kind::cancel_send, {}, send.id}));
}

void Transfer::cancel(ReceiveRequest& receive) {
  if (receive.complete || !receive.posted) return;
  if (receive.wanted) {
    Peer& p = peer(receive.peer);
    say(p, bytes_of(IdHead{Kind::cancel_want, {}, receive.id}));
    return;
  }
  const Ref<ReceiveRequest> keep(&receive);
  matches_[receive.context].unpost(receive);
  finish_cancelled(receive);
  finish(receive);
}

void Transfer::on_cancel_send(Peer& p, const IdHead& head) {
  if (head.id == 0) return void(malformed(p));  // names no message
  bool done = false;
  matches_.for_each([&](MatchQueues& queues) {
    if (Unexpected* message = done ? nullptr : queues.find_announced(p.rank, head.id)) {
      drop(queues, *message);
      done = true;
    }
  });
  say(p, bytes_of(CancelledHead{Kind::cancelled, done, {}, head.id}));
}

void Transfer::drop(MatchQueues& queues, Unexpected& message) {
  const Ref<Unexpected> taken = queues.take(message);
  if (taken->head.kind != Kind::request_to_send && taken->head.kind != Kind::loss)
    consume(peer(taken->peer), static_cast<std::size_t>(taken->length) + kEagerCharge);
}

void Transfer::on_cancel_want(Peer& p, const IdHead& head) {
  const std::size_t removed =
      std::erase_if(p.wants, [&](const Want& w) { return w.receive == head.id; });
  say(p, bytes_of(CancelledHead{Kind::cancelled, removed != 0, {}, head.id}));
}

void Transfer::on_cancelled(Peer& p, const CancelledHead& head) {
  if (!head.done) return;  // it goes on as if nobody had asked
  if (const Ref<SendRequest> send = find<SendRequest>(head.id, p)) {
    if (!send->can_be_cancelled()) return void(malformed(p));
    finish_cancelled(*send);
    return finish(*send);
  }
  const Ref<ReceiveRequest> receive = find<ReceiveRequest>(head.id, p);
  if (!receive || !receive->wanted || receive->written || receive->arrived)
    return;  // it has met another message since
  matches_[receive->context].unpost(*receive);
  end_want(*receive);
  p.through->close_receive(p.rank, receive->remote_key);
  finish_cancelled(*receive);
  finish(*receive);
}

}  // namespace viaduct::mpi
