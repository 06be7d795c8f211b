// MPI_Cancel (MPI 5.0, section 3.8.4). A posted receive is cancelled at once, unless an RTR was
// sent for it. A synchronous send, a send whose RTS was sent, and a receive whose RTR was sent may
// be matching at the other end right now. So the other end decides, and answers what was first:
//
//     send (match, first_cts)                      receiver
//        |  -- cancel_send: id ------------------->  |  drops the unexpected message: done = 1
//        |                                           |  or the message has matched:   done = 0
//        |  <- cancelled: done, id ----------------  |
//     done = 1: complete, cancelled;  done = 0: goes on as if it had not been cancelled
//
//     receive (posted, rtr_sent)                   sender
//        |  -- cancel_want: id ------------------->  |  drops the RTR:                done = 1
//        |                                           |  or a message has used it up:  done = 0
//        |  <- cancelled: done, id ----------------  |
//     done = 1: complete, cancelled;  done = 0: goes on, as its message is on its way
//
// An answer with done = 1 is final: the other end has forgotten the message, or the RTR.

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
  send_control(p, bytes_of(IdHead{Kind::cancel_send, {}, send.id}));
}

// A receive that is no longer posted has met its message, and cannot be cancelled any more.
void Transfer::cancel(ReceiveRequest& receive) {
  if (receive.complete || !receive.posted) return;
  if (receive.rtr_sent) {
    Peer& p = peer(receive.peer);
    send_control(p, bytes_of(IdHead{Kind::cancel_want, {}, receive.id}));
    return;
  }
  const Ref<ReceiveRequest> keep(&receive);  // unpost() may release the last other hold
  matches_[receive.context].unpost(receive);
  on_rtr_missed(receive);
  finish_cancelled(receive);
  finish(receive);
}

// The message does not name its context, so all are searched: cancellations are rare.
void Transfer::on_cancel_send(Peer& p, const IdHead& head) {
  if (head.id == 0) return void(malformed(p));  // would find messages without an id
  bool done = false;
  matches_.for_each([&](MatchQueues& queues) {
    if (Unexpected* message = done ? nullptr : queues.find_cancellable(p.rank, head.id)) {
      drop(queues, *message);
      done = true;
    }
  });
  send_control(p, bytes_of(CancelledHead{Kind::cancelled, done, {}, head.id}));
}

// RTSs and loss notices are not charged, so only eager messages return credit.
void Transfer::drop(MatchQueues& queues, Unexpected& message) {
  const Ref<Unexpected> taken = queues.take(message);
  if (taken->head.kind != Kind::request_to_send && taken->head.kind != Kind::loss)
    consume(peer(taken->peer), static_cast<std::size_t>(taken->length) + kEagerCharge);
}

void Transfer::on_cancel_want(Peer& p, const IdHead& head) {
  const std::size_t removed =
      std::erase_if(p.pending_rtrs, [&](const Rtr& w) { return w.receive == head.id; });
  send_control(p, bytes_of(CancelledHead{Kind::cancelled, removed != 0, {}, head.id}));
}

void Transfer::on_cancelled(Peer& p, const CancelledHead& head) {
  if (!head.done) return;  // the operation goes on as if it had not been cancelled
  if (const Ref<SendRequest> send = find<SendRequest>(head.id, p)) {
    if (!send->can_be_cancelled()) return void(malformed(p));
    finish_cancelled(*send);
    return finish(*send);
  }
  const Ref<ReceiveRequest> receive = find<ReceiveRequest>(head.id, p);
  if (!receive || !receive->rtr_sent || receive->written_received || receive->transfer_complete)
    return;  // the request has ended meanwhile, or the answer contradicts what the sender has sent
  matches_[receive->context].unpost(*receive);
  release_rtr(*receive);
  p.through->close_receive(p.rank, receive->remote_key);
  finish_cancelled(*receive);
  finish(*receive);
}

}  // namespace viaduct::mpi
