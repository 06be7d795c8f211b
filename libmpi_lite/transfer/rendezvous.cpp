// Rendezvous, for long messages: the sender announces (request to send, RTS), the receiver grants
// (clear to send, CTS) as soon as the receive is there, and the channel moves the data from buffer
// to buffer. The receiver grants a message in one part if both buffers are contiguous, else in
// parts that are packed and unpacked in between.
//
// No order of nonblocking sends and receives can deadlock: nobody waits inside; every step is taken
// by whoever makes progress. Two processes that exchange head to head grant each other.

#include <algorithm>
#include <limits>
#include <utility>

#include "libmpi_lite/transfer/engine.hpp"

namespace viaduct::mpi {

// ---- sender ------------------------------------------------------------------------------------

void Transfer::announce(Peer& p, SendRequest& send) {
  enter(send);
  send.awaits = SendRequest::Awaits::first_grant;
  RtsHead head{};
  head.head = {Kind::request_to_send, {}, send.context, send.comm->rank(), send.tag};
  head.send = send.id;
  head.length = static_cast<std::uint64_t>(send.bytes);
  if (send.type->contiguous() && send.bytes > 0) {
    p.through->offer(p.rank, {send.contiguous(), static_cast<std::size_t>(send.bytes)}, head.offer);
    head.has_offer = 1;
  }
  counters_[p.channel].add(Protocol::rendezvous, send.bytes);
  say(p, bytes_of(head));
}

// Room for the packed form of a part.
std::size_t Transfer::staging_room(const Operation& operation) const {
  return static_cast<std::size_t>(std::min(config_.piece, operation.bytes));
}

// Whether the message can go on like that: parts follow each other and end with the total, which is
// settled by the first one.
bool Transfer::continues(const SendRequest& send, const CtsHead& head) const {
  const bool first = send.awaits == SendRequest::Awaits::first_grant;
  if (!first && (send.awaits != SendRequest::Awaits::grant || send.next_grant)) return false;
  const auto total = static_cast<std::uint64_t>(first ? send.bytes : send.total);
  if (first ? head.total > total : head.total != total) return false;
  if (head.offset != static_cast<std::uint64_t>(send.moved + send.part)) return false;
  if (head.length > head.total - head.offset || (head.length == 0 && head.total != 0)) return false;
  return send.type->contiguous() || head.length <= staging_room(send);
}

void Transfer::on_grant(Peer& p, const CtsHead& head) {
  const Ref<SendRequest> send = find<SendRequest>(head.send, p);
  if (!send || !continues(*send, head)) return void(malformed(p));
  send->awaits = SendRequest::Awaits::grant;
  send->total = static_cast<MPI_Count>(head.total);
  if (send->part == 0)
    send_part(p, *send, head);
  else
    send->next_grant = head;
}

void Transfer::send_part(Peer& p, SendRequest& send, const CtsHead& head) {
  send.part = static_cast<MPI_Count>(head.length);
  if (head.length == 0) return finish(send);  // the receiver has no room for any of it
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
  backlog(p);
}

void Transfer::sent_part(SendRequest& send) {
  send.moved += std::exchange(send.part, 0);
  if (send.moved == send.total) return finish(send);
  if (const auto next = std::exchange(send.next_grant, {})) send_part(peer(send.peer), send, *next);
}

// ---- receiver ----------------------------------------------------------------------------------

void Transfer::on_announce(Peer& p, const RtsHead& head) {
  if (head.length > static_cast<std::uint64_t>(std::numeric_limits<MPI_Count>::max()))
    return void(malformed(p));
  ++p.arrived;
  const RemoteKey* offer = head.has_offer ? &head.offer : nullptr;
  if (const Ref<ReceiveRequest> receive = matches_[head.head.context].match_message(head.head)) {
    unwant(*receive);
    accept(*receive, p, head.head, head.send, head.length, offer);
  } else {
    Unexpected& message = keep(p, head.head);
    message.send = head.send;
    message.length = head.length;
    message.offered = offer != nullptr;
    message.offer = head.offer;
  }
  consume(p, 0);
}

void Transfer::accept(ReceiveRequest& receive, Peer& p, const Head& head, std::uint64_t send,
                      std::uint64_t length, const RemoteKey* offer) {
  set_status(receive, head, length);
  receive.peer = p.rank;
  receive.send = send;
  receive.total = std::min(static_cast<MPI_Count>(length), receive.bytes);
  receive.moved = 0;
  receive.offered = offer != nullptr;
  if (offer) receive.offer = *offer;
  if (p.lost) return fail(receive, MPI_ERR_PROC_ABORTED);
  enter(receive);
  if (p.to_grant.empty() && grant_next(receive)) return;
  p.to_grant.push_back(Ref(&receive));
  backlog(p);
}

// Opens the next part and tells the sender. false: the channel has no room just now.
bool Transfer::grant_next(ReceiveRequest& receive) {
  Peer& p = peer(receive.peer);
  const bool contiguous = receive.type->contiguous();
  const bool whole = contiguous && receive.offered;
  const MPI_Count left = receive.total - receive.moved;
  CtsHead head{};
  head.kind = Kind::clear_to_send;
  head.send = receive.send;
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
  say(p, bytes_of(head));
  if (left == 0) finish(receive);
  return true;
}

void Transfer::received_part(ReceiveRequest& receive) {
  if (receive.wanted) return written_part(receive);
  const auto length = static_cast<std::size_t>(receive.part);
  if (!receive.type->contiguous())
    receive.type->unpack(receive.data, receive.moved, {receive.staging.get(), length});
  receive.moved += receive.part;
  receive.part = 0;
  if (receive.moved == receive.total) return finish(receive);
  Peer& p = peer(receive.peer);
  if (p.to_grant.empty() && grant_next(receive)) return;
  p.to_grant.push_back(Ref(&receive));
  backlog(p);
}

}  // namespace viaduct::mpi
