// Engine, as target: executes the requests of peers, on the owner thread, inside poll(). engine.hpp
// draws the states of requests in several messages, at Engine::PeerRequests; segmentation.hpp
// answers long reads.
//
// Exactly once. The link delivers each message once. Each handler first checks the request wholly,
// then calls may_answer(), and only then touches memory and answers. While the link has no room for
// the answer, may_answer() is false and the handler returns RxResult::backpressure (back-pressure):
// nothing has been done, the link offers the same message again, and only that peer's lane waits.
// So no request is executed without its answer, and none is executed twice. No call that could take
// the room may come between may_answer() and the answer.
#pragma once

#include <atomic>
#include <bit>

#include "drivers/mbcf/engine.hpp"

namespace viaduct::mbcf {

// Bytes into exported memory. What has the size and the alignment of a word is one store with
// release order: a thread that acquires the word sees all of it, and what was written before it.
inline void store(std::byte* at, std::span<const std::byte> data) {
  const auto word = [&]<class T>(T value) {
    std::memcpy(&value, data.data(), sizeof value);
    std::atomic_ref<T>(*reinterpret_cast<T*>(at)).store(value, std::memory_order_release);
  };
  const auto place = reinterpret_cast<std::uintptr_t>(at);
  if (data.size() == 8 && place % 8 == 0)
    word(std::uint64_t{});
  else if (data.size() == 4 && place % 4 == 0)
    word(std::uint32_t{});
  else if (!data.empty())
    std::memcpy(at, data.data(), data.size());
}

// Of a word for atomic operations and flags, in bytes.
constexpr bool valid_width(std::uint8_t width) {
  return width == 4 || width == 8;
}

inline Counter refusal_counter(Status status) {
  switch (status) {
    case Status::no_key: return Counter::refused_no_key;
    case Status::withdrawn: return Counter::refused_withdrawn;
    case Status::no_right: return Counter::refused_no_right;
    case Status::misaligned: return Counter::refused_misaligned;
    case Status::wrong_kind: return Counter::refused_wrong_kind;
    case Status::no_credit: return Counter::refused_no_credit;
    case Status::too_long: return Counter::refused_too_long;
    default: return Counter::refused_out_of_range;
  }
}

// Secures room for one answer on the high lane. If the peer has ended, the answer vanishes, which
// is fine.
template <link::PacketDevice D>
inline bool Engine<D>::may_answer(link::PeerId to) {
  if (link_.secure(to, link::Lane::high)) [[likely]]
    return true;
  counters_.add(Counter::answer_waits);
  return false;
}

template <link::PacketDevice D>
void Engine<D>::count_refusal(Status status) {
  counters_.add(refusal_counter(status));
}

// Sends done, or the reason of a refusal. The caller has called may_answer() before, except for a
// silent request that was done, which gets no answer. Urgency::batch: answers share frames.
template <link::PacketDevice D>
void Engine<D>::answer(link::PeerId to, std::uint32_t id, Status status, Time now) {
  if (status != Status::ok)
    count_refusal(status);
  else if (id >= kSilent)
    return;
  const Answer message{id, static_cast<std::uint32_t>(status)};
  try_send(to, Kind::answer, bytes_of(message), {}, link::Urgency::batch, now);
}

// Where the link delivers every MBCF message. A kind on another lane than its own is dropped: the
// order of requests, and that answers never wait behind requests, rest on the lanes.
template <link::PacketDevice D>
link::RxResult Engine<D>::on_message(const link::Incoming& m) {
  if (m.kind >= kSilentKind) return serve_silent(m, static_cast<Kind>(m.kind - kSilentKind));
  if (m.kind >= kKinds) return drop(Counter::drop_kind);
  const Kind kind{m.kind};
  const bool lane_fits =
      kind == Kind::data ? m.lane != link::Lane::low : m.lane == usual_lane(kind);
  if (!lane_fits || m.order != link::Order::ordered) return drop(Counter::drop_lane);
  switch (kind) {
    case Kind::long_more: return serve_long_more(m);
    case Kind::long_then: return serve_long_then(m);
    case Kind::append_more: return serve_append_more(m);
    case Kind::fence: return serve_fence(m);
    case Kind::want: return on_want(m);
    case Kind::give_back: return on_give_back(m);
    case Kind::answer: on_answer(m); break;
    case Kind::value: on_value(m); break;
    case Kind::data: on_data(m); break;
    case Kind::grant: on_grant(m); break;
    case Kind::recall: on_recall(m); break;
    case Kind::gone: on_gone(m); break;
    default: {
      Bytes rest = m.bytes;
      TargetHead target;
      if (!take(rest, target)) return drop(Counter::drop_length);
      if (target.id >= kSilent) return drop(Counter::drop_field);
      return serve_request(m, kind, target, rest);
    }
  }
  return link::RxResult::consumed;
}

// A silent request has no number on the wire: its number is its place among the silent requests of
// its peer. So both sides must count alike. Each one counts once, when it is taken, also if it is
// too short. One of an impossible kind, lane or order does not count (docs/wire.md).
template <link::PacketDevice D>
inline link::RxResult Engine<D>::serve_silent(const link::Incoming& m, Kind kind) {
  if (!may_be_silent(kind)) return drop(Counter::drop_kind);
  if (m.lane != link::Lane::low || m.order != link::Order::ordered) return drop(Counter::drop_lane);
  SilentCount& count = silent_count(m.from);
  Bytes rest = m.bytes;
  SilentTarget head;
  link::RxResult verdict;
  if (take(rest, head)) [[likely]]
    verdict = serve_request(m, kind, {head.key, head.offset, silent_number(count.received)}, rest);
  else
    verdict = drop(Counter::drop_length);
  if (verdict == link::RxResult::consumed) [[likely]]
    ++count.received;
  return verdict;
}

// Requests that begin with a target. A plain write is expected most often, and tested for first.
template <link::PacketDevice D>
inline link::RxResult Engine<D>::serve_request(const link::Incoming& m, Kind kind,
                                               const TargetHead& target, Bytes rest) {
  if (kind == Kind::write) [[likely]]
    return serve_write(m, target, rest);
  switch (kind) {
    case Kind::write_then: return serve_write_then(m, target, rest);
    case Kind::long_write: return serve_long_write(m, target, rest);
    case Kind::append: return serve_append(m, target, rest);
    case Kind::read: return serve_read(m, target, rest);
    case Kind::atomic: return serve_atomic(m, target, rest);
    case Kind::signal: return serve_signal(m, target, rest);
    default: return drop(Counter::drop_kind);
  }
}

// ---- writes -----------------------------------------------------------------------------------

template <link::PacketDevice D>
inline link::RxResult Engine<D>::serve_write(const link::Incoming& m, const TargetHead& head,
                                             Bytes data) {
  std::byte* at = nullptr;
  const Status status = keys_.segment({head.key}, head.offset, data.size(), Rights::write, at);
  // A silent write needs no room for an answer unless it is refused.
  if ((head.id < kSilent || status != Status::ok) && !may_answer(m.from))
    return link::RxResult::backpressure;
  if (status == Status::ok) [[likely]] {
    store(at, data);
    counters_.add(Counter::writes_served);
    counters_.add(Counter::bytes_written, data.size());
  }
  answer(m.from, head.id, status, m.now);
  return link::RxResult::consumed;
}

// The second part of a write with notify, after check_chained() has checked it: what
// execute_chained() needs, which then cannot fail.
template <link::PacketDevice D>
struct Engine<D>::ChainedOp {
  Then::Kind kind = Then::Kind::none;
  Fifo* fifo = nullptr;
  Signal* signal = nullptr;
  std::byte* flag = nullptr;  // the word in a segment
  std::uint64_t value = 0;    // for the flag
  std::uint8_t width = 0;     // of the flag, bytes
};

// Checks the second part against the key table, and the credit for an entry. Changes nothing.
template <link::PacketDevice D>
Status Engine<D>::check_chained(link::PeerId from, const ThenHead& head, ChainedOp& op) {
  op.kind = static_cast<Then::Kind>(head.kind);
  switch (op.kind) {
    case Then::Kind::entry: {
      const Status status = keys_.fifo({head.key}, op.fifo);
      return status == Status::ok ? op.fifo->check(from, head.length) : status;
    }
    case Then::Kind::signal: return keys_.signal({head.key}, op.signal);
    default: break;
  }
  op.value = head.value;
  op.width = head.width;
  const Status status = keys_.segment({head.key}, head.offset, head.width, Rights::write, op.flag);
  if (status != Status::ok) return status;
  const bool aligned = reinterpret_cast<std::uintptr_t>(op.flag) % head.width == 0;
  return aligned ? Status::ok : Status::misaligned;
}

// The data has been refused, so the chained entry does not enter its FIFO: the credit that the
// initiator spent on the entry becomes free.
template <link::PacketDevice D>
void Engine<D>::release_prepaid(link::PeerId from, const ThenHead& then) {
  Fifo* fifo = nullptr;
  if (static_cast<Then::Kind>(then.kind) == Then::Kind::entry &&
      keys_.fifo({then.key}, fifo) == Status::ok)
    fifo->release_prepaid(from, then.length);
}

template <link::PacketDevice D>
void Engine<D>::execute_chained(link::PeerId from, const ChainedOp& op, Bytes entry) {
  std::uint32_t at = 0;  // the entry's first block
  switch (op.kind) {
    case Then::Kind::entry:
      op.fifo->begin(from, entry.size(), at);
      if (!entry.empty()) std::memcpy(op.fifo->bytes(at), entry.data(), entry.size());
      op.fifo->finish(at);
      counters_.add(Counter::entries_received);
      counters_.add(Counter::bytes_appended, entry.size());
      break;
    case Then::Kind::signal: raise(*op.signal); break;
    default: store(op.flag, bytes_of(op.value).first(op.width)); break;
  }
}

// Whether the fields of a second part are possible at all; keys and credit are checked later.
inline bool plausible(const ThenHead& head) {
  switch (static_cast<Then::Kind>(head.kind)) {
    case Then::Kind::entry: return head.length <= kMaxChainedEntry;
    case Then::Kind::signal: return head.length == 0;
    case Then::Kind::flag: return head.length == 0 && valid_width(head.width);
    default: return false;
  }
}

// A short write with notify: both parts are checked before either is executed, so both happen or
// neither does. The data is stored first. Like serve_write(), a silent one that is done needs no
// room for an answer.
template <link::PacketDevice D>
link::RxResult Engine<D>::serve_write_then(const link::Incoming& m, const TargetHead& head,
                                           Bytes rest) {
  ThenHead then;
  if (!take(rest, then)) return drop(Counter::drop_length);
  if (!plausible(then)) return drop(Counter::drop_field);
  if (then.length > rest.size()) return drop(Counter::drop_length);
  const Bytes entry = rest.first(then.length), data = rest.subspan(then.length);
  std::byte* at = nullptr;
  ChainedOp op;
  const Status may_write = keys_.segment({head.key}, head.offset, data.size(), Rights::write, at);
  const Status status = may_write == Status::ok ? check_chained(m.from, then, op) : may_write;
  if ((head.id < kSilent || status != Status::ok) && !may_answer(m.from))
    return link::RxResult::backpressure;
  if (status == Status::ok) [[likely]] {
    store(at, data);
    counters_.add(Counter::writes_served);
    counters_.add(Counter::bytes_written, data.size());
    execute_chained(m.from, op, entry);
  } else if (may_write != Status::ok) {
    release_prepaid(m.from, then);
  }
  answer(m.from, head.id, status, m.now);
  return link::RxResult::consumed;
}

// Answers the long write that was arriving. What still comes of it is dropped.
template <link::PacketDevice D>
void Engine<D>::end_long_write(PeerRequests& peer, Status status, Time now) {
  peer.incoming_write.open = false;
  answer(peer.id, peer.incoming_write.id, status, now);
  if (status == Status::ok) counters_.add(Counter::writes_served);
}

template <link::PacketDevice D>
link::RxResult Engine<D>::serve_long_write(const link::Incoming& m, const TargetHead& head,
                                           Bytes data) {
  LongHead size;
  PeerRequests* peer = peer_of(m.from);
  if (!take(data, size) || data.size() > size.length) return drop(Counter::drop_length);
  if (size.then > 1) return drop(Counter::drop_field);
  if (peer == nullptr || (peer->incoming_write.open && peer->incoming_write.id == head.id))
    return drop(Counter::drop_stream);
  std::byte* at = nullptr;
  // The whole range is checked now, so that a write that is too long touches nothing. Each later
  // piece is checked again, as the key may be withdrawn meanwhile.
  const Status status = keys_.segment({head.key}, head.offset, size.length, Rights::write, at);
  const bool last = data.size() == size.length && size.then == 0;
  if ((last || status != Status::ok) && !may_answer(m.from)) return link::RxResult::backpressure;
  // A correct initiator sends one long write after the other; the one before will never end.
  if (peer->incoming_write.open) counters_.add(Counter::drop_stream);
  peer->incoming_write = {true,
                          size.then != 0,
                          head.id,
                          head.key,
                          head.offset + data.size(),
                          size.length - data.size()};
  if (status == Status::ok) {
    store(at, data);
    counters_.add(Counter::bytes_written, data.size());
  }
  if (last || status != Status::ok) end_long_write(*peer, status, m.now);
  return link::RxResult::consumed;
}

template <link::PacketDevice D>
link::RxResult Engine<D>::serve_long_more(const link::Incoming& m) {
  Bytes data = m.bytes;
  StreamHead head;
  if (!take(data, head)) return drop(Counter::drop_length);
  PeerRequests* peer = find_peer(m.from);
  // Pieces that the initiator sent before it heard of a refusal are dropped here.
  if (peer == nullptr || !peer->incoming_write.open || peer->incoming_write.id != head.id)
    return drop(Counter::drop_stream);
  auto& write = peer->incoming_write;
  if (data.size() > write.remaining) return drop(Counter::drop_length);
  std::byte* at = nullptr;
  const Status status = keys_.segment({write.key}, write.offset, data.size(), Rights::write, at);
  const bool last = data.size() == write.remaining && !write.then;
  if ((last || status != Status::ok) && !may_answer(m.from)) return link::RxResult::backpressure;
  if (status == Status::ok) [[likely]] {
    if (!data.empty()) std::memcpy(at, data.data(), data.size());
    counters_.add(Counter::bytes_written, data.size());
  }
  write.offset += data.size();
  write.remaining -= data.size();
  if (last || status != Status::ok) end_long_write(*peer, status, m.now);
  return link::RxResult::consumed;
}

template <link::PacketDevice D>
link::RxResult Engine<D>::serve_long_then(const link::Incoming& m) {
  Bytes entry = m.bytes;
  StreamHead head;
  ThenHead then;
  if (!take(entry, head) || !take(entry, then)) return drop(Counter::drop_length);
  if (!plausible(then)) return drop(Counter::drop_field);
  if (then.length != entry.size()) return drop(Counter::drop_length);
  PeerRequests* peer = find_peer(m.from);
  if (peer == nullptr || !peer->incoming_write.open || peer->incoming_write.id != head.id ||
      !peer->incoming_write.then || peer->incoming_write.remaining != 0) {
    // The refusal of the write has crossed this message on the wire. The initiator takes back the
    // credit for the entry only if it has not sent the entry yet; so the owner frees it here.
    release_prepaid(m.from, then);
    return drop(Counter::drop_stream);
  }
  if (!may_answer(m.from)) return link::RxResult::backpressure;
  ChainedOp op;
  const Status status = check_chained(m.from, then, op);
  if (status == Status::ok) execute_chained(m.from, op, entry);
  end_long_write(*peer, status, m.now);
  return link::RxResult::consumed;
}

// ---- FIFO entries -----------------------------------------------------------------------------

template <link::PacketDevice D>
link::RxResult Engine<D>::serve_append(const link::Incoming& m, const TargetHead& head,
                                       Bytes data) {
  const std::uint64_t length = head.offset;  // of the whole entry, bytes
  if (data.size() > length) return drop(Counter::drop_length);
  const bool whole = data.size() == length;
  // Further pieces name the request by its number, which a silent one does not have on the wire.
  if (!whole && head.id >= kSilent) return drop(Counter::drop_field);
  PeerRequests* peer = peer_of(m.from);
  if (peer == nullptr) return drop(Counter::drop_stream);
  Fifo* fifo = nullptr;
  Status status = keys_.fifo({head.key}, fifo);
  if (status == Status::ok) status = fifo->check(m.from, length);
  if ((head.id < kSilent || status != Status::ok) && !may_answer(m.from))
    return link::RxResult::backpressure;
  if (!whole && peer->incoming_append.open) return drop(Counter::drop_stream);  // one at a time
  if (status == Status::ok) [[likely]] {
    std::uint32_t at = 0;
    fifo->begin(m.from, length, at);  // cannot fail after check()
    if (!data.empty()) std::memcpy(fifo->bytes(at), data.data(), data.size());
    counters_.add(Counter::bytes_appended, data.size());
    if (!whole) {
      peer->incoming_append = {true, head.id, at, head.key, length, data.size()};
      return link::RxResult::consumed;
    }
    fifo->finish(at);
    counters_.add(Counter::entries_received);
  }
  answer(m.from, head.id, status, m.now);
  return link::RxResult::consumed;
}

// The next piece of a long entry. It is copied to its final place at once; the reader does not see
// the entry before finish().
template <link::PacketDevice D>
link::RxResult Engine<D>::serve_append_more(const link::Incoming& m) {
  Bytes data = m.bytes;
  StreamHead head;
  if (!take(data, head)) return drop(Counter::drop_length);
  PeerRequests* peer = find_peer(m.from);
  if (peer == nullptr || !peer->incoming_append.open || peer->incoming_append.id != head.id)
    return drop(Counter::drop_stream);
  auto& entry = peer->incoming_append;
  if (data.size() > entry.length - entry.moved) return drop(Counter::drop_length);
  Fifo* fifo = nullptr;
  const Status status = keys_.fifo({entry.key}, fifo);
  const bool last = data.size() == entry.length - entry.moved;
  if ((last || status != Status::ok) && !may_answer(m.from)) return link::RxResult::backpressure;
  if (status == Status::ok) {
    if (!data.empty()) std::memcpy(fifo->bytes(entry.at) + entry.moved, data.data(), data.size());
    counters_.add(Counter::bytes_appended, data.size());
    entry.moved += data.size();
    if (!last) return link::RxResult::consumed;
    fifo->finish(entry.at);
    counters_.add(Counter::entries_received);
  }
  entry.open = false;
  answer(m.from, head.id, status, m.now);
  return link::RxResult::consumed;
}

// ---- the others -------------------------------------------------------------------------------

// A read that fits a frame is answered here. A longer one is queued for answer_read() in
// segmentation.hpp; a peer may have kMaxLongReads of them, and its low lane waits with the next.
template <link::PacketDevice D>
link::RxResult Engine<D>::serve_read(const link::Incoming& m, const TargetHead& head, Bytes rest) {
  LongHead size;
  if (!take(rest, size) || !rest.empty()) return drop(Counter::drop_length);
  if (size.then != 0) return drop(Counter::drop_field);
  std::byte* at = nullptr;
  const Status status = keys_.segment({head.key}, head.offset, size.length, Rights::read, at);
  if (!may_answer(m.from)) return link::RxResult::backpressure;
  if (status != Status::ok) {
    answer(m.from, head.id, status, m.now);
    return link::RxResult::consumed;
  }
  if (size.length + sizeof(StreamHead) > link_.max_message(m.from)) {
    PeerRequests* peer = peer_of(m.from);
    if (peer == nullptr) return drop(Counter::drop_stream);
    if (peer->incoming_read_count == PeerRequests::kMaxLongReads)
      return link::RxResult::backpressure;
    const std::uint32_t place =
        (peer->first_incoming_read + peer->incoming_read_count++) % PeerRequests::kMaxLongReads;
    peer->incoming_reads[place] = {head.id, head.key, head.offset, size.length};
    activate(*peer);
    return link::RxResult::consumed;
  }
  // A word is one load with acquire order; the copy into the frame, which may go byte by byte, then
  // reads `word` instead of the segment.
  Bytes bytes{at, static_cast<std::size_t>(size.length)};
  std::uint64_t word;
  if (bytes.size() == 8 && reinterpret_cast<std::uintptr_t>(at) % 8 == 0) {
    word = std::atomic_ref(*reinterpret_cast<std::uint64_t*>(at)).load(std::memory_order_acquire);
    bytes = bytes_of(word);
  } else if (bytes.size() == 4 && reinterpret_cast<std::uintptr_t>(at) % 4 == 0) {
    word = std::atomic_ref(*reinterpret_cast<std::uint32_t*>(at)).load(std::memory_order_acquire);
    bytes = bytes_of(word).first(4);
  }
  // At once: the initiator of a read waits for its bytes. The same holds for atomic operations.
  link_.try_send(m.from, link::Lane::high, link::Order::ordered, message_type(Kind::data),
                 bytes_of(StreamHead{head.id}), bytes, link::Urgency::now, m.now);
  counters_.add(Counter::reads_served);
  counters_.add(Counter::bytes_read, size.length);
  return link::RxResult::consumed;
}

// The CPU's atomic instruction, as other threads of this task may use the same word. (In the
// original MBCF the receive interrupt on the task's own CPU made operations atomic; here poll() may
// run beside the task's threads.) Returns what the word held before.
template <class Word>
std::uint64_t execute(const AtomicHead& head, std::byte* at) {
  const std::atomic_ref<Word> word(*reinterpret_cast<Word*>(at));
  const auto operand = static_cast<Word>(head.operand);
  auto before = static_cast<Word>(head.compare);
  switch (static_cast<AtomicOp>(head.op)) {
    case AtomicOp::swap: return word.exchange(operand);
    case AtomicOp::fetch_add: return word.fetch_add(operand);
    // Leaves the word's value in `before` if it differs from `compare`.
    case AtomicOp::compare_swap: word.compare_exchange_strong(before, operand); break;
  }
  return before;
}

template <link::PacketDevice D>
link::RxResult Engine<D>::serve_atomic(const link::Incoming& m, const TargetHead& head,
                                       Bytes rest) {
  AtomicHead atomic;
  if (!take(rest, atomic) || !rest.empty()) return drop(Counter::drop_length);
  if (!valid_width(atomic.width) || atomic.op > static_cast<std::uint8_t>(AtomicOp::compare_swap) ||
      atomic.reserved != 0)
    return drop(Counter::drop_field);
  std::byte* at = nullptr;
  Status status = keys_.segment({head.key}, head.offset, atomic.width, Rights::atomic, at);
  if (status == Status::ok && reinterpret_cast<std::uintptr_t>(at) % atomic.width != 0)
    status = Status::misaligned;
  if (!may_answer(m.from)) return link::RxResult::backpressure;
  if (status != Status::ok) {
    answer(m.from, head.id, status, m.now);
    return link::RxResult::consumed;
  }
  const std::uint64_t before =
      atomic.width == 8 ? execute<std::uint64_t>(atomic, at) : execute<std::uint32_t>(atomic, at);
  counters_.add(Counter::atomics_served);
  if (head.id >= kSilent) return link::RxResult::consumed;
  try_send(m.from, Kind::value, bytes_of(ValueAnswer{head.id, before}), {}, link::Urgency::now,
           m.now);
  return link::RxResult::consumed;
}

template <link::PacketDevice D>
link::RxResult Engine<D>::serve_signal(const link::Incoming& m, const TargetHead& head,
                                       Bytes rest) {
  if (!rest.empty()) return drop(Counter::drop_length);
  Signal* signal = nullptr;
  const Status status = keys_.signal({head.key}, signal);
  if ((head.id < kSilent || status != Status::ok) && !may_answer(m.from))
    return link::RxResult::backpressure;
  if (status == Status::ok) raise(*signal);
  answer(m.from, head.id, status, m.now);
  return link::RxResult::consumed;
}

// The low lane is ordered, so all short requests that were issued before the fence are executed by
// now. The initiator waits for long requests itself (Engine::fence).
template <link::PacketDevice D>
link::RxResult Engine<D>::serve_fence(const link::Incoming& m) {
  Bytes rest = m.bytes;
  StreamHead head;
  if (!take(rest, head) || !rest.empty()) return drop(Counter::drop_length);
  if (!may_answer(m.from)) return link::RxResult::backpressure;
  counters_.add(Counter::fences_served);
  answer(m.from, head.id, Status::ok, m.now);
  return link::RxResult::consumed;
}

}  // namespace viaduct::mbcf
