// Engine: sends what is long, piece by piece as the link takes it. As initiator: long writes, long
// entries and the requests of long reads, which initiator.hpp has queued. As target: the data of
// long reads, which target.hpp has queued. target.hpp and completions.hpp take the pieces.
#pragma once

#include <algorithm>

#include "drivers/mbcf/engine.hpp"

namespace viaduct::mbcf {

// How many bytes one poll sends at most (plus the rest of a piece): sending long requests must not
// keep a poll from receiving.
inline constexpr std::size_t kPumpBytes = 64 * 1024;

// Round robin: one piece of each kind for each active peer in turn, so that a request of moderate
// length does not wait for a very long one to another peer. Ends when the budget is spent, or when
// the link has taken nothing for any peer since the last success. Credit messages that are due come
// first: they are few and short, and entries wait for them.
template <link::PacketDevice D>
void Engine<D>::pump(Time now) {
  if (control_due_count_ != 0)
    for (Writer& w : writers_)
      if (w.control_due) send_control(w, now);
  std::size_t budget = kPumpBytes, without_progress = 0;
  while (budget != 0 && without_progress < active_.size()) {
    if (next_active_ >= active_.size()) next_active_ = 0;
    PeerRequests& peer = *active_[next_active_];
    const bool moved = pump_peer(peer, budget, now);
    if (peer.idle()) {  // leaves the list, whose last peer takes its place
      peer.listed = false;
      active_[next_active_] = active_.back();
      active_.pop_back();
    } else {
      ++next_active_;
      without_progress = moved ? 0 : without_progress + 1;
    }
  }
}

// Urgency::now: sends as much as the budget and the link allow before the call returns.
// send_piece() only queues frames at the link; push() hands them to the device in bursts.
template <link::PacketDevice D>
void Engine<D>::start_now(PeerRequests& peer, const Options& options, Time now) {
  if (options.urgency != link::Urgency::now) return;
  std::size_t budget = kPumpBytes;
  while (budget != 0 && !peer.idle() && pump_peer(peer, budget, now)) continue;
  link_.push(now);
}

// One piece of each kind. True if the link took any.
template <link::PacketDevice D>
bool Engine<D>::pump_peer(PeerRequests& peer, std::size_t& budget, Time now) {
  bool moved = false;
  if (peer.append != base::kNoSlot) moved |= send_append(peer, budget, now);
  if (!peer.reads.empty() && peer.reads_in_flight != PeerRequests::kMaxLongReads)
    moved |= send_read(peer, now);
  if (peer.incoming_read_count != 0) moved |= answer_read(peer, budget, now);
  if (!peer.writes.empty()) moved |= send_write(peer, budget, now);
  return moved;
}

// Hands one message to the link: head ++ as many bytes of `rest` as fit a frame.
// Returns how many bytes those were, which may be 0; nullopt when the link has no room. Takes the
// message's length from the budget.
template <link::PacketDevice D>
std::optional<std::size_t> Engine<D>::send_piece(link::PeerId to, Kind kind, Bytes head, Bytes rest,
                                                 std::size_t& budget, Time now) {
  const std::size_t room = link_.max_message(to);
  if (room <= head.size()) return std::nullopt;
  const std::size_t size = std::min(room - head.size(), rest.size());
  if (try_send(to, kind, head, rest.first(size), link::Urgency::batch, now) !=
      link::SendStatus::sent)
    return std::nullopt;
  budget -= std::min(budget, size + head.size());
  return size;
}

// The long entry to that peer is sent, or need not be sent any more: other entries may follow. The
// writer is not found if it has been dropped in the meantime.
template <link::PacketDevice D>
void Engine<D>::end_append(PeerRequests& peer) {
  if (Writer* writer = find_writer_by_name(requests_[peer.append].writer, peer.id))
    writer->sending = false;
  peer.append = base::kNoSlot;
}

// What is left to send of a long write or append.
inline std::span<const std::byte> unsent(const Request& r) {
  return {r.local + r.moved, r.length - r.moved};
}

template <link::PacketDevice D>
bool Engine<D>::send_append(PeerRequests& peer, std::size_t& budget, Time now) {
  Request& r = requests_[peer.append];
  const StreamHead head{requests_.id(peer.append).value};
  const auto sent = send_piece(peer.id, Kind::append_more, bytes_of(head), unsent(r), budget, now);
  if (!sent) return false;
  r.moved += *sent;
  if (r.moved == r.length) {
    r.state = RequestState::sent;
    end_append(peer);
  }
  return true;
}

// The next message of the first long write: long_write, long_more as often as needed, and long_then
// if a second part is chained to the write.
template <link::PacketDevice D>
bool Engine<D>::send_write(PeerRequests& peer, std::size_t& budget, Time now) {
  const Slot slot = peer.writes.first();
  Request& r = requests_[slot];
  const StreamHead more{requests_.id(slot).value};
  std::optional<std::size_t> sent;
  if (r.moved == 0) {
    const LongRequestHead first{{r.key.value, r.offset, more.id}, {r.length, r.chained_unsent}};
    sent = send_piece(peer.id, Kind::long_write, bytes_of(first), unsent(r), budget, now);
  } else if (r.moved < r.length) {
    sent = send_piece(peer.id, Kind::long_more, bytes_of(more), unsent(r), budget, now);
  } else {
    struct [[gnu::packed]] {
      StreamHead stream;
      ThenHead then;
    } chained_op{more, r.then};
    if (try_send(peer.id, Kind::long_then, bytes_of(chained_op),
                 Bytes(r.entry).first(r.then.length), link::Urgency::batch,
                 now) != link::SendStatus::sent)
      return false;
    r.chained_unsent = false;  // from now on the target accounts for the credit of a refused entry
    if (Writer* writer = find_writer_by_name(r.writer, r.peer)) --writer->chained_entries;
    sent = 0;
  }
  if (!sent) return false;
  r.moved += *sent;
  if (r.moved == r.length && !r.chained_unsent) {
    r.state = RequestState::sent;
    peer.writes.remove(requests_, slot);
  }
  return true;
}

// Sends the request of the first long read that waits.
template <link::PacketDevice D>
bool Engine<D>::send_read(PeerRequests& peer, Time now) {
  const Slot slot = peer.reads.first();
  Request& r = requests_[slot];
  const LongRequestHead head{{r.key.value, r.offset, requests_.id(slot).value}, {r.length, 0}};
  if (try_send(peer.id, Kind::read, bytes_of(head), {}, link::Urgency::batch, now) !=
      link::SendStatus::sent)
    return false;
  r.state = RequestState::sent;
  ++peer.reads_in_flight;
  peer.reads.remove(requests_, slot);
  return true;
}

// As target: sends the next piece of the long read that came first. The key is checked with each
// piece, because it may be withdrawn meanwhile; the bytes are copied into the frame.
template <link::PacketDevice D>
bool Engine<D>::answer_read(PeerRequests& peer, std::size_t& budget, Time now) {
  auto& read = peer.incoming_reads[peer.first_incoming_read];
  const auto over = [&] {
    peer.first_incoming_read = (peer.first_incoming_read + 1) % PeerRequests::kMaxLongReads;
    --peer.incoming_read_count;
    return true;
  };
  std::byte* from = nullptr;
  const Status status = keys_.segment({read.key}, read.offset, read.remaining, Rights::read, from);
  if (status != Status::ok) {
    if (!may_answer(peer.id)) return false;
    answer(peer.id, read.id, status, now);
    return over();
  }
  const StreamHead head{read.id};
  const auto sent =
      send_piece(peer.id, Kind::data, bytes_of(head), {from, read.remaining}, budget, now);
  if (!sent) return false;
  counters_.add(Counter::bytes_read, *sent);
  read.offset += *sent;
  read.remaining -= *sent;
  if (read.remaining != 0) return true;
  counters_.add(Counter::reads_served);
  return over();
}

}  // namespace viaduct::mbcf
