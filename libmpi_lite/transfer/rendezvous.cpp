// Rendezvous, for long messages: request-to-send (RTS), clear-to-send (CTS), data. The receiver
// asks for a message in one part if both buffers are contiguous, else in parts of at most
// TransferConfig::piece that the sender packs and the receiver unpacks. The states of the two
// requests are drawn in requests.hpp.
//
//        sender                                            receiver
//   start(): send_rts()
//        |  -------- RTS: envelope, id, length, offer -------->  |
//   awaits first_cts                                on_rts(): match, or queue_unexpected()
//        |                                                       |
//        |                                          posted: begin_receive(), send_cts()
//        |                                          opens the buffer at the channel
//        |  <------- CTS: total, offset, length, remote key ---  |
//   on_cts(): send_part(), start_long()                          |
//   awaits next_cts                                              |
//        |  ======== the channel moves the part =============>   |
//   on_long_sent: sent_part()                       on_long_received: received_part()
//        |                                                       |
//        |            from the CTS on, again for each part       |
//   complete after the last part                    complete after the last part
//
// There is no message for the end: each channel tells both ends. A cancellation before the first
// CTS is drawn in cancel.cpp. With an offer the receiver's channel may fetch the data by itself,
// but the sender still gets the CTS, and its channel's completion.
//
// No order of nonblocking sends and receives can deadlock: no function here waits, and the next
// step of each message is taken by progress(). Two processes that send each other long messages at
// the same time send each other CTSs.

#include <algorithm>
#include <limits>
#include <utility>

#include "libmpi_lite/transfer/engine.hpp"

namespace viaduct::mpi {

// ---- sender ------------------------------------------------------------------------------------

void Transfer::send_rts(Peer& p, SendRequest& send) {
  register_request(send);
  send.awaits = SendRequest::Awaits::first_cts;
  RtsHead head{};
  head.head = {Kind::request_to_send, {}, send.context, send.comm->rank(), send.tag};
  head.send = send.id;
  head.length = static_cast<std::uint64_t>(send.bytes);
  if (send.type->contiguous() && send.bytes > 0) {
    p.through->offer(p.rank, {send.contiguous(), static_cast<std::size_t>(send.bytes)}, head.offer);
    head.has_offer = 1;
  }
  counters_[p.channel].add(Protocol::rendezvous, send.bytes);
  send_control(p, bytes_of(head));
}

// Bytes of the buffer for the packed form of a part.
std::size_t Transfer::staging_room(const Operation& operation) const {
  return static_cast<std::size_t>(std::min(config_.piece, operation.bytes));
}

// Whether the CTS is one that this send can expect now: parts follow each other without gaps, and
// end at the total, which the first CTS fixes.
bool Transfer::continues(const SendRequest& send, const CtsHead& head) const {
  const bool first = send.awaits == SendRequest::Awaits::first_cts;
  // At most one CTS can be ahead: the receiver sends one when the part before has arrived.
  if (!first && (send.awaits != SendRequest::Awaits::next_cts || send.early_cts)) return false;
  const auto total = static_cast<std::uint64_t>(first ? send.bytes : send.total);
  if (first ? head.total > total : head.total != total) return false;
  if (head.offset != static_cast<std::uint64_t>(send.moved + send.part)) return false;
  if (head.length > head.total - head.offset || (head.length == 0 && head.total != 0)) return false;
  return send.type->contiguous() || head.length <= staging_room(send);
}

void Transfer::on_cts(Peer& p, const CtsHead& head) {
  const Ref<SendRequest> send = find<SendRequest>(head.send, p);
  if (!send || !continues(*send, head)) return void(malformed(p));
  send->awaits = SendRequest::Awaits::next_cts;
  send->total = static_cast<MPI_Count>(head.total);
  // The receiver may see the end of a part, and send the next CTS, before this end does.
  if (send->part == 0)
    send_part(p, *send, head);
  else
    send->early_cts = head;
}

void Transfer::send_part(Peer& p, SendRequest& send, const CtsHead& head) {
  send.part = static_cast<MPI_Count>(head.length);
  if (head.length == 0) return finish(send);  // nothing to move: no data, or no room for any of it
  const auto length = static_cast<std::size_t>(head.length);
  Bytes data;
  if (send.type->contiguous()) {
    data = {send.contiguous() + head.offset, length};
  } else {
    if (!send.staging) send.staging.reset(new std::byte[staging_room(send)]);
    send.type->pack(send.data, send.moved, {send.staging.get(), length});
    data = {send.staging.get(), length};
  }
  start_long(p, send, data, head.remote_key);
}

void Transfer::start_long(Peer& p, SendRequest& send, Bytes data, const RemoteKey& remote_key) {
  if (p.ready.empty() && p.through->start_send(p.rank, data, remote_key, send.id)) return;
  p.ready.push_back({Ref(&send), data, remote_key});
  add_to_backlog_list(p);
}

void Transfer::sent_part(SendRequest& send) {
  send.moved += std::exchange(send.part, 0);
  if (send.moved == send.total) return finish(send);
  if (const auto next = std::exchange(send.early_cts, {})) send_part(peer(send.peer), send, *next);
}

// ---- receiver ----------------------------------------------------------------------------------

void Transfer::on_rts(Peer& p, const RtsHead& head) {
  // Lengths are signed everywhere else.
  if (head.length > static_cast<std::uint64_t>(std::numeric_limits<MPI_Count>::max()))
    return void(malformed(p));
  ++p.arrived;
  const RemoteKey* offer = head.has_offer ? &head.offer : nullptr;
  if (const Ref<ReceiveRequest> receive = matches_[head.head.context].match_message(head.head)) {
    on_rtr_missed(*receive);
    begin_receive(*receive, p, head.head, head.send, head.length, offer);
  } else {
    Unexpected& message = queue_unexpected(p, head.head);
    message.sender_id = head.send;
    message.length = head.length;
    message.offered = offer != nullptr;
    message.offer = head.offer;
  }
  consume(p, 0);
}

void Transfer::begin_receive(ReceiveRequest& receive, Peer& p, const Head& head,
                             std::uint64_t sender_id, std::uint64_t length,
                             const RemoteKey* offer) {
  set_status(receive, head, length);
  receive.peer = p.rank;
  receive.sender_id = sender_id;
  receive.total = std::min(static_cast<MPI_Count>(length), receive.bytes);
  receive.moved = 0;
  receive.offered = offer != nullptr;
  if (offer) receive.offer = *offer;
  // An RTS of a process that was lost later: its data will not come.
  if (p.lost) return fail(receive, MPI_ERR_PROC_ABORTED);
  register_request(receive);
  if (p.cts_due.empty() && send_cts(receive)) return;
  p.cts_due.push_back(Ref(&receive));
  add_to_backlog_list(p);
}

// Opens the buffer for the next part at the channel and sends the CTS. false: the channel has no
// room for another open receive just now; try again later.
//
// Without an offer the sender's type has gaps, so the message comes in packed parts even if the
// receive buffer is contiguous; the parts then go straight to their places in it.
bool Transfer::send_cts(ReceiveRequest& receive) {
  Peer& p = peer(receive.peer);
  const bool contiguous = receive.type->contiguous();
  const bool whole = contiguous && receive.offered;
  const MPI_Count left = receive.total - receive.moved;
  CtsHead head{};
  head.kind = Kind::clear_to_send;
  head.send = receive.sender_id;
  head.total = static_cast<std::uint64_t>(receive.total);
  head.offset = static_cast<std::uint64_t>(receive.moved);
  receive.part = whole ? left : std::min(left, config_.piece);
  head.length = static_cast<std::uint64_t>(receive.part);
  if (left > 0) {
    const auto length = static_cast<std::size_t>(receive.part);
    if (!contiguous && !receive.staging) receive.staging.reset(new std::byte[length]);
    std::byte* into = contiguous ? receive.contiguous() + receive.moved : receive.staging.get();
    if (!p.through->open_receive(p.rank, {into, length}, whole ? &receive.offer : nullptr,
                                 receive.id, head.remote_key))
      return false;
  }
  send_control(p, bytes_of(head));
  if (left == 0) finish(receive);  // this CTS only completes the send
  return true;
}

// A receive with an RTR has no parts; `rtr_sent` tells the two apart.
void Transfer::received_part(ReceiveRequest& receive) {
  if (receive.rtr_sent) return written_part(receive);
  const auto length = static_cast<std::size_t>(receive.part);
  if (!receive.type->contiguous())
    receive.type->unpack(receive.data, receive.moved, {receive.staging.get(), length});
  receive.moved += receive.part;
  receive.part = 0;
  if (receive.moved == receive.total) return finish(receive);
  Peer& p = peer(receive.peer);
  if (p.cts_due.empty() && send_cts(receive)) return;
  p.cts_due.push_back(Ref(&receive));
  add_to_backlog_list(p);
}

}  // namespace viaduct::mpi
