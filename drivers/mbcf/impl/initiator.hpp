// Engine, as initiator: takes a request from the user, and hands it to the link or, if it is long,
// queues it for segmentation.hpp. Answers arrive in completions.hpp, which ends requests by
// complete(), at the end of this file. requests.hpp draws the states of a request.
#pragma once

#include <algorithm>

#include "drivers/mbcf/engine.hpp"

namespace viaduct::mbcf {

// The result for the user when the link did not take a message.
template <link::PacketDevice D>
Issued Engine<D>::refused(link::SendStatus status) {
  switch (status) {
    case link::SendStatus::peer_down: return {Status::peer_down, {}};
    case link::SendStatus::too_big: return {Status::too_long, {}};
    default: return {Status::no_room, {}};
  }
}

// A request that is one message and has an answer. `send` is given the request's number, and hands
// the message to the link.
template <link::PacketDevice D>
template <class Send>
inline Issued Engine<D>::issue_answered(Kind kind, link::PeerId to, const Options& options,
                                        Send send) {
  const Slot slot = requests_.add(kind, to, options);
  if (slot == base::kNoSlot) return {Status::no_room, {}};
  const link::SendStatus status = send(requests_.id(slot).value);
  if (status != link::SendStatus::sent) [[unlikely]] {
    requests_.release(slot);
    return refused(status);
  }
  counters_.add(Counter::requests_issued);
  return {Status::ok, requests_.id(slot)};
}

// A request that is one message on the low lane: target ++ the rest of `head` ++ body. `head`
// begins with room for a TargetHead. A silent request has the shorter SilentTarget, which takes the
// end of that room, so that the rest of `head` need not move. The fields are stored in the pieces
// in which the link reads them (store forwarding; see write_header in link/wire_format.hpp).
template <link::PacketDevice D>
inline Issued Engine<D>::issue(Kind kind, const Remote& to, std::span<std::byte> head, Bytes body,
                               const Options& options, Time now) {
  // A SilentTarget has 32 bits of offset. Beyond that a silent request is answered on the wire, and
  // complete() keeps the completion from the user.
  if (!options.silent || to.offset > UINT32_MAX)
    return issue_answered(kind, to.peer, options, [&](std::uint32_t id) {
      const TargetHead target{to.key.value, to.offset, id};
      std::memcpy(head.data(), &target, sizeof target);
      return try_send(to.peer, kind, head, body, options.urgency, now);
    });
  head = head.subspan(sizeof(TargetHead) - sizeof(SilentTarget));
  const SilentTarget target{static_cast<std::uint32_t>(to.offset), to.key.value};
  std::memcpy(head.data(), &target, sizeof target);
  const link::SendStatus status =
      link_.try_send(to.peer, link::Lane::low, link::Order::ordered, silent_type(kind), head, body,
                     options.urgency, now);
  if (status != link::SendStatus::sent) [[unlikely]]
    return refused(status);
  counters_.add(Counter::requests_issued);
  // The target counts, too, when it executes or refuses the request.
  return {Status::ok, {silent_number(silent_count(to.peer).issued++)}};
}

static_assert(link::kFrameHeader + link::kMessageHeader + sizeof(SilentTarget) +
                      sizeof(std::uint64_t) <=
                  62,
              "a word's write lies in one cache line of a packet ring: FrameHeader");

template <link::PacketDevice D>
Issued Engine<D>::write_short(const Remote& to, Bytes data, const Options& options, Time now) {
  std::byte head[sizeof(TargetHead)];
  return issue(Kind::write, to, head, data, options, now);
}

// Checks of the second part that need no target: the size of an entry, and whether there is credit
// for it. `writer` becomes the writer of an entry, and stays nullptr for a signal or a flag.
template <link::PacketDevice D>
Status Engine<D>::check(const Then& then, Writer*& writer, Time now) {
  if (then.kind != Then::Kind::entry) return Status::ok;
  if (then.entry.size() > kMaxChainedEntry) return Status::too_long;
  writer = find_writer(then.writer);
  if (writer == nullptr) return Status::no_key;
  return ensure_credit(*writer, blocks_of(then.entry.size()), now);
}

template <link::PacketDevice D>
Issued Engine<D>::write(const Remote& to, Bytes data, const Then& then, const Options& options,
                        Time now) {
  if (then.kind == Then::Kind::none) return write(to, data, options, now);
  Writer* writer = nullptr;
  if (const Status status = check(then, writer, now); status != Status::ok) return {status, {}};
  if (writer && writer->peer != to.peer) return {Status::wrong_kind, {}};
  // A span in `then` counts only for an entry, as check() has limited the size of no other.
  const Bytes entry = writer ? then.entry : Bytes{};
  WriteThenHead head;
  std::copy(entry.begin(), entry.end(), head.entry);
  head.then = {writer ? writer->key.value : then.key.value,
               then.offset,
               then.value,
               static_cast<std::uint8_t>(then.kind),
               static_cast<std::uint8_t>(then.width),
               static_cast<std::uint16_t>(entry.size())};
  const std::size_t size = sizeof head - kMaxChainedEntry + entry.size();  // without unused bytes
  Issued issued;
  if (size + data.size() <= link_.max_message(to.peer)) {
    issued = issue(Kind::write_then, to, bytes_in(head).first(size), data, options, now);
  } else {
    const ChainedRequest chained{head.then, entry, writer};
    issued = write_long(to, data, &chained, options, now);
  }
  // The entry of a long write is paid for now, so that later appends cannot take its credit.
  if (writer && issued.status == Status::ok) spend_credit(*writer, blocks_of(entry.size()));
  return issued;
}

// Queues a long write, which pump() sends piece by piece after the long writes to that peer that
// were issued before.
template <link::PacketDevice D>
Issued Engine<D>::write_long(const Remote& to, Bytes data, const ChainedRequest* chained,
                             const Options& options, Time now) {
  PeerRequests* peer = peer_of(to.peer);
  if (peer == nullptr) return {Status::peer_down, {}};
  const Slot slot = requests_.add(Kind::long_write, to.peer, options);
  if (slot == base::kNoSlot) return {Status::no_room, {}};
  Request& r = requests_[slot];
  r.key = to.key;
  r.offset = to.offset;
  r.local = const_cast<std::byte*>(data.data());
  r.length = data.size();
  r.state = RequestState::waiting;
  r.segmented = true;
  ++peer->open_segmented;
  r.writer = 0;
  if (chained != nullptr) {
    r.chained_unsent = true;
    r.then = chained->head;
    std::copy(chained->entry.begin(), chained->entry.end(), r.entry.begin());
    if (chained->writer) r.writer = chained->writer->name;
    if (chained->writer) ++chained->writer->chained_entries;
  }
  peer->writes.push_back(requests_, slot);
  activate(*peer);
  start_now(*peer, options, now);
  counters_.add(Counter::requests_issued);
  return {Status::ok, requests_.id(slot)};
}

template <link::PacketDevice D>
Issued Engine<D>::read(const Remote& from, std::span<std::byte> into, const Options& options,
                       Time now) {
  // The answer, not the request, has to fit a frame. The target decides in the same way whether it
  // answers at once; before the connection is up, max_message() is smaller here, and more reads
  // take a place in the queue, which does no harm.
  if (into.size() + sizeof(StreamHead) > link_.max_message(from.peer))
    return read_long(from, into, options, now);
  const Slot slot = requests_.add(Kind::read, from.peer, options);
  if (slot == base::kNoSlot) return {Status::no_room, {}};
  Request& r = requests_[slot];
  r.local = into.data();
  r.length = into.size();
  const LongRequestHead head{{from.key.value, from.offset, requests_.id(slot).value},
                             {into.size(), 0}};
  const link::SendStatus status =
      try_send(from.peer, Kind::read, bytes_of(head), {}, options.urgency, now);
  if (status != link::SendStatus::sent) {
    requests_.release(slot);
    return refused(status);
  }
  counters_.add(Counter::requests_issued);
  return {Status::ok, requests_.id(slot)};
}

// Queues a long read. pump() sends the request when fewer than kMaxLongReads are open at that peer;
// otherwise the target would exert back-pressure, and our whole low lane to it would wait.
template <link::PacketDevice D>
Issued Engine<D>::read_long(const Remote& from, std::span<std::byte> into, const Options& options,
                            Time now) {
  PeerRequests* peer = peer_of(from.peer);
  if (peer == nullptr) return {Status::peer_down, {}};
  const Slot slot = requests_.add(Kind::read, from.peer, options);
  if (slot == base::kNoSlot) return {Status::no_room, {}};
  Request& r = requests_[slot];
  r.key = from.key;
  r.offset = from.offset;
  r.local = into.data();
  r.length = into.size();
  r.state = RequestState::waiting;
  r.segmented = true;
  ++peer->open_segmented;
  peer->reads.push_back(requests_, slot);
  activate(*peer);
  start_now(*peer, options, now);
  counters_.add(Counter::requests_issued);
  return {Status::ok, requests_.id(slot)};
}

template <link::PacketDevice D>
Issued Engine<D>::atomic(AtomicOp op, const Remote& at, Width width, std::uint64_t operand,
                         std::uint64_t compare, const Options& options, Time now) {
  AtomicRequestHead head;
  head.atomic = {operand, compare, static_cast<std::uint8_t>(op), static_cast<std::uint8_t>(width),
                 0};
  return issue(Kind::atomic, at, bytes_in(head), {}, options, now);
}

template <link::PacketDevice D>
Issued Engine<D>::swap(const Remote& at, Width width, std::uint64_t value, const Options& options,
                       Time now) {
  return atomic(AtomicOp::swap, at, width, value, 0, options, now);
}
template <link::PacketDevice D>
Issued Engine<D>::fetch_add(const Remote& at, Width width, std::uint64_t value,
                            const Options& options, Time now) {
  return atomic(AtomicOp::fetch_add, at, width, value, 0, options, now);
}
template <link::PacketDevice D>
Issued Engine<D>::compare_swap(const Remote& at, Width width, std::uint64_t expected,
                               std::uint64_t value, const Options& options, Time now) {
  return atomic(AtomicOp::compare_swap, at, width, value, expected, options, now);
}

template <link::PacketDevice D>
Issued Engine<D>::signal(link::PeerId to, Key key, const Options& options, Time now) {
  std::byte head[sizeof(TargetHead)];
  return issue(Kind::signal, {to, key, 0}, head, {}, options, now);
}

// Two things make a fence complete. Its message is behind all short requests on the low lane, so
// its answer says that the target has executed those. Long requests go other ways: the initiator
// counts those that are open now (`open_before`) and waits for their own answers.
template <link::PacketDevice D>
Issued Engine<D>::fence(link::PeerId to, const Options& options, Time now) {
  PeerRequests* peer = peer_of(to);
  if (peer == nullptr) return {Status::peer_down, {}};
  Options loud = options;
  loud.silent = false;  // a fence is issued for its completion
  const Issued issued = issue_answered(Kind::fence, to, loud, [&](std::uint32_t id) {
    return try_send(to, Kind::fence, bytes_of(StreamHead{id}), {}, options.urgency, now);
  });
  if (issued.status != Status::ok) return issued;
  const Slot slot = requests_.find(issued.id);
  requests_[slot].open_before = peer->open_segmented;
  peer->fences.push_back(requests_, slot);
  return issued;
}

template <link::PacketDevice D>
Issued Engine<D>::append(WriterId id, Bytes head, Bytes body, const Options& options, Time now) {
  Writer* writer = find_writer(id);
  if (writer == nullptr) return {Status::no_key, {}};
  if (head.size() > kMaxChainedEntry) return {Status::too_long, {}};
  const std::size_t size = head.size() + body.size();
  if (const Status status = ensure_credit(*writer, blocks_of(size), now); status != Status::ok)
    return {status, {}};
  if (sizeof(TargetHead) + size > link_.max_message(writer->peer))
    return append_long(*writer, head, body, options, now);
  // A message has the offset field of its target for the entry's length.
  AppendHead all;
  if (!head.empty()) std::memcpy(all.head, head.data(), head.size());
  Issued issued = issue(Kind::append, {writer->peer, writer->key, size},
                        bytes_in(all).first(sizeof(TargetHead) + head.size()), body, options, now);
  if (issued.status == Status::ok) [[likely]]
    spend_credit(*writer, blocks_of(size));
  issued.copied = issued.status == Status::ok;
  return issued;
}

template <link::PacketDevice D>
bool Engine<D>::secure(WriterId id, std::size_t requests, std::size_t entry, Time now) {
  Writer* writer = find_writer(id);
  return writer != nullptr && ensure_credit(*writer, blocks_of(entry), now) == Status::ok &&
         link_.secure(writer->peer, link::Lane::low, requests);
}

template <link::PacketDevice D>
void Engine<D>::relocate(RequestId append, Bytes body) {
  const Slot slot = requests_.find(append);
  if (slot == base::kNoSlot || requests_[slot].kind != Kind::append) return;
  requests_[slot].local = const_cast<std::byte*>(body.data());
}

template <link::PacketDevice D>
auto Engine<D>::unsent_part(RequestId append) const -> Bytes {
  const Slot slot = requests_.find(append);
  if (slot == base::kNoSlot || requests_[slot].kind != Kind::append) return {};
  const Request& r = requests_[slot];
  return {r.local + r.moved, static_cast<std::size_t>(r.length - r.moved)};
}

// Sends the first piece now, or refuses the request; pump() sends the others. Only one long entry
// to a peer is under way, as the target puts together one at a time. Later entries of this writer
// wait for the last piece (Writer::sending), which keeps the writer's entries in order.
template <link::PacketDevice D>
Issued Engine<D>::append_long(Writer& writer, Bytes head, Bytes body, const Options& options,
                              Time now) {
  PeerRequests* peer = peer_of(writer.peer);
  if (peer == nullptr) return {Status::peer_down, {}};
  if (peer->append != base::kNoSlot) return {Status::no_room, {}};
  const Slot slot = requests_.add(Kind::append, writer.peer, options);
  if (slot == base::kNoSlot) return {Status::no_room, {}};
  AppendHead all;
  const std::size_t size = head.size() + body.size();
  all.target = {writer.key.value, size, requests_.id(slot).value};
  if (!head.empty()) std::memcpy(all.head, head.data(), head.size());
  const std::size_t in_front = sizeof(TargetHead) + head.size();
  // At least one byte of `body` is left, as head and body together did not fit; `head` alone does.
  const std::size_t piece = std::min(link_.max_message(writer.peer) - in_front, body.size());
  const link::SendStatus status = try_send(writer.peer, Kind::append, bytes_of(all).first(in_front),
                                           body.first(piece), link::Urgency::batch, now);
  if (status != link::SendStatus::sent) {
    requests_.release(slot);
    return refused(status);
  }
  Request& r = requests_[slot];
  r.local = const_cast<std::byte*>(body.data());
  r.length = body.size();
  r.moved = piece;
  r.segmented = true;
  ++peer->open_segmented;
  r.state = RequestState::waiting;
  r.writer = writer.name;
  writer.sending = true;
  peer->append = slot;
  activate(*peer);
  spend_credit(writer, blocks_of(size));
  start_now(*peer, options, now);
  counters_.add(Counter::requests_issued);
  // `copied` if start_now() has handed all pieces to the link.
  return {Status::ok, requests_.id(slot), r.state != RequestState::waiting};
}

// ---- the book-keeping of requests -------------------------------------------------------------

// The state of long requests with a peer. Made when the peer connects; or here, before the peer is
// connected, or if it was connected before this engine was made. May allocate then. nullptr when
// that incarnation has ended.
template <link::PacketDevice D>
auto Engine<D>::peer_of(link::PeerId id) -> PeerRequests* {
  if (PeerRequests* peer = find_peer(id)) return peer;
  const std::size_t slot = id.value & 0xffff;
  if (slot >= peers_.size() || link_.view(id).address == link::Address{}) return nullptr;
  peers_[slot] = std::make_unique<PeerRequests>();
  peers_[slot]->id = id;
  return peers_[slot].get();
}

// Has pump() look at the peer; pump() takes it off the list when it is idle.
template <link::PacketDevice D>
void Engine<D>::activate(PeerRequests& peer) {
  if (!std::exchange(peer.listed, true)) active_.push_back(&peer);
}

// Ends a request with a status, and puts it into the completion queue unless it is silent and
// succeeded. The caller has taken the request out of its peer's lists. Then fences that waited for
// this request may be complete, too.
template <link::PacketDevice D>
void Engine<D>::complete(Slot slot, Status status) {
  Request& r = requests_[slot];
  r.status = status;
  counters_.add(status == Status::ok          ? Counter::requests_completed
                : status == Status::peer_down ? Counter::requests_lost
                                              : Counter::requests_refused);
  if (r.silent && status == Status::ok) {
    requests_.release(slot);
  } else {
    r.state = RequestState::complete;
    complete_.push_back(requests_, slot);
  }
  // `r` may be free by now, but nothing has overwritten its slot.
  if (!std::exchange(r.segmented, false)) return;
  PeerRequests* peer = find_peer(r.peer);
  if (peer == nullptr) return;  // on_peer_down() ends all requests, fences included
  --peer->open_segmented;
  for (Slot s = peer->fences.first(); s != base::kNoSlot;) {
    const Slot next = RequestList::after(requests_, s);  // before `s` may leave the list
    Request& fence = requests_[s];
    if (fence.serial > r.serial && --fence.open_before == 0 && fence.answered) {
      peer->fences.remove(requests_, s);
      complete(s, Status::ok);
    }
    s = next;
  }
}

template <link::PacketDevice D>
bool Engine<D>::next_completion(Completion& completion) {
  // Refusals of silent requests first: their queue is short and loses what does not fit.
  if (const Completion* failure = failures_.front()) {
    completion = *failure;
    failures_.pop();
    return true;
  }
  const Slot slot = complete_.take_first(requests_);
  if (slot == base::kNoSlot) return false;
  const Request& r = requests_[slot];
  completion = {requests_.id(slot), r.status, r.peer, r.context, r.value};
  requests_.release(slot);
  return true;
}

}  // namespace viaduct::mbcf
