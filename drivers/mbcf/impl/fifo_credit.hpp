// Engine: flow control of FIFOs by credit. First our writers to FIFOs of peers (engine.hpp draws
// their states at Engine::Writer), then our own FIFOs as their owner (fifo.hpp decides what is
// granted and recalled; this file carries the messages).
//
//    writer, low lane                          owner, high lane
//    want: needs more credit       ------->
//                                  <-------    grant: credit, asked for or not
//                                  <-------    recall: give back what you have not spent
//    give_back                     ------->
//    give_back, closing            ------->
//                                  <-------    gone, done: acknowledges the close
//                                  <-------    gone, with a reason: there is no such FIFO (now)
//
// Entries travel on the writer's low lane as well, so the owner sees a give_back behind the entries
// that were appended before. Entries chained to long writes come by the bulk lane; the owner counts
// their credit as lent until they arrive.
#pragma once

#include <algorithm>

#include "drivers/mbcf/engine.hpp"

namespace viaduct::mbcf {

// How long a writer holds credit that the FIFO's owner recalls, if its user has waited for that
// credit. Without the hold, two writers that each need most of a FIFO could take the credit from
// each other for ever, before either user had tried its append again.
inline constexpr link::Duration kRecallHold = std::chrono::milliseconds{1};

// nullptr: that writer has been closed, or there never was one.
template <link::PacketDevice D>
auto Engine<D>::find_writer(WriterId id) -> Writer* {
  const std::size_t index = (id.value & 0xffff) - std::size_t{1};  // wraps for 0: not found
  if (index >= writers_.size()) return nullptr;
  Writer& w = writers_[index];
  const bool there = w.state == Writer::State::open || w.state == Writer::State::gone;
  return there && w.generation == id.value >> 16 ? &w : nullptr;
}

// The writer that a message of the FIFO's owner is about, also one that the user has closed.
// nullptr: it is over, or the peer names a writer to another peer's FIFO.
template <link::PacketDevice D>
auto Engine<D>::find_writer_by_name(std::uint32_t name, link::PeerId owner) -> Writer* {
  const std::size_t index = (name & 0xffff) - std::size_t{1};
  if (index >= writers_.size()) return nullptr;
  Writer& w = writers_[index];
  const bool there = w.state != Writer::State::free && w.state != Writer::State::gone;
  return there && w.name == name && w.peer == owner ? &w : nullptr;
}

template <link::PacketDevice D>
WriterId Engine<D>::open_writer(link::PeerId peer, Key fifo, Time now) {
  std::size_t index = writers_.size();
  // A writer to the same FIFO that is closing or closed is opened again, in its place and under its
  // name, with the credit that it still has: the owner knows one writer of each peer.
  Writer before;
  for (std::size_t i = 0; i < writers_.size(); ++i) {
    Writer& w = writers_[i];
    if (w.peer == peer && w.key == fifo && w.state != Writer::State::free &&
        w.state != Writer::State::gone) {
      if (w.state == Writer::State::open) return id_of(w);
      // Its last entries have not been sent, and would count for the new writer.
      if (w.sending || w.chained_entries != 0) return {};
      index = i;
      before = w;
      break;
    }
    if (w.state == Writer::State::free) index = std::min(index, i);
  }
  if (index == writers_.size()) {
    if (index == max_writers_) return {};
    writers_.emplace_back();
  }
  Writer& w = writers_[index];
  const auto generation = static_cast<std::uint16_t>(w.generation + 1);
  if (w.control_due) --control_due_count_;
  w = {};
  w.credit = before.credit;
  w.capacity = before.capacity;
  w.pending_close_acks = before.pending_close_acks;
  w.recalled = before.recalled;
  // A writer in state closing has not sent its close yet: the owner takes it for open.
  w.open_unsent = before.state != Writer::State::closing || before.open_unsent;
  // Grants may be on their way to the old name.
  w.name = before.name != 0 ? before.name : ++names_ << 16 | static_cast<std::uint32_t>(index + 1);
  w.state = Writer::State::open;
  w.generation = generation;
  w.peer = peer;
  w.key = fifo;
  w.need = 1;  // any credit: the first grant tells the capacity, and brings an allotment
  schedule_control(w);
  pump(now);
  return id_of(w);
}

template <link::PacketDevice D>
void Engine<D>::close_writer(WriterId id) {
  Writer* w = find_writer(id);
  if (w == nullptr) return;
  if (w->state == Writer::State::gone) {
    w->state = Writer::State::free;
    return;
  }
  w->state = Writer::State::closing;
  schedule_control(*w);
}

template <link::PacketDevice D>
std::size_t Engine<D>::capacity(WriterId id) const {
  const Writer* w = const_cast<Engine*>(this)->find_writer(id);
  return w ? std::size_t{w->capacity} * kBlock : 0;
}

// ok if the writer may send an entry of so many blocks now; the caller then calls spend_credit().
// no_room: it has asked the owner for what is missing, or a long entry is half sent. Otherwise the
// reason why no such entry can be sent.
template <link::PacketDevice D>
Status Engine<D>::ensure_credit(Writer& w, std::uint64_t blocks, Time now) {
  if (w.state == Writer::State::gone) return w.why;
  if (w.sending) return Status::no_room;
  if (blocks <= w.credit) [[likely]]
    return Status::ok;
  if (w.capacity == 0)
    blocks = 1;  // the owner drops a want beyond the capacity, which is not known yet
  else if (blocks > w.capacity)
    return Status::too_long;
  counters_.add(Counter::fifo_waits);
  w.blocked = true;
  // Ask once for an entry; an entry of another size replaces what was asked for.
  if (!w.asked || blocks != w.need) {
    w.need = static_cast<std::uint32_t>(blocks);
    w.asked = false;
    schedule_control(w);
    send_control(w, now);
  }
  return Status::no_room;
}

// Pays for an entry that the link has taken, or that waits behind its long write.
template <link::PacketDevice D>
void Engine<D>::spend_credit(Writer& w, std::uint64_t blocks) {
  w.credit -= static_cast<std::uint32_t>(blocks);
  w.blocked = false;
  w.need = 0;
  w.hold_until = {};
}

// A long write was refused before its second part was sent, so the entry's credit comes back to the
// writer. The owner may have recalled credit meanwhile and got none of this: give it back unasked.
template <link::PacketDevice D>
void Engine<D>::refund_credit(const Request& r) {
  Writer* w = r.chained_unsent ? find_writer_by_name(r.writer, r.peer) : nullptr;
  if (w == nullptr) return;
  --w->chained_entries;
  w->credit += static_cast<std::uint32_t>(blocks_of(r.then.length));
  w->recalled = true;
  schedule_control(*w);
}

// Has pump() call send_control() for this writer until it has sent what is due.
template <link::PacketDevice D>
void Engine<D>::schedule_control(Writer& w) {
  if (!std::exchange(w.control_due, true)) ++control_due_count_;
}

// Sends the credit messages that are due to the FIFO's owner, give_back before want, as far as the
// link takes them. What it does not take, and what may not be sent yet, stays due: `control_due`.
template <link::PacketDevice D>
void Engine<D>::send_control(Writer& w, Time now) {
  const auto send = [&](Kind kind, Bytes bytes) {
    const auto status = try_send(w.peer, kind, bytes, {}, link::Urgency::now, now);
    if (status == link::SendStatus::peer_down) drop_writer(w, Status::peer_down);
    return status == link::SendStatus::sent;
  };
  if (w.state == Writer::State::closing) {
    if (w.sending || w.chained_entries != 0) return;  // the close is sent after all paid entries
    if (w.open_unsent) {  // the owner takes it for closed, or does not know it: no close to send
      w.state = Writer::State::closed;
      w.recalled = w.credit != 0;
    }
  }
  const bool closing = w.state == Writer::State::closing;
  if (closing || (w.recalled && w.hold_until <= now)) {
    if (!send(Kind::give_back, bytes_of(GiveBack{w.key.value, w.credit, closing ? w.name : 0})))
      return;
    // The user had the credit for its entry and did not use it: do not ask again before it tries
    // again. A need that was not met is asked for anew below, as all of the credit is gone.
    if (w.credit >= w.need) w.need = 0;
    w.credit = 0;
    w.recalled = w.asked = false;
    if (closing) {
      w.state = Writer::State::closed;
      ++w.pending_close_acks;
    }
  }
  if (w.state == Writer::State::open && (w.open_unsent || w.need > w.credit) && !w.asked) {
    const std::uint32_t more = w.need > w.credit ? w.need - w.credit : 0;
    if (!send(Kind::want, bytes_of(Want{w.key.value, w.name, more}))) return;
    w.asked = true;
    w.open_unsent = false;
  }
  if (w.recalled) return;  // the hold has still to pass
  if (w.state == Writer::State::closed && w.pending_close_acks == 0) w.state = Writer::State::free;
  w.control_due = false;
  --control_due_count_;
}

// The writer's FIFO or peer is gone. An open writer stays, as `gone`, until its user closes it: the
// next append returns the reason. A writer that was closing or closed is free.
template <link::PacketDevice D>
void Engine<D>::drop_writer(Writer& w, Status why) {
  w.why = why;
  w.state = w.state == Writer::State::open ? Writer::State::gone : Writer::State::free;
  w.credit = w.need = 0;
  w.recalled = w.sending = false;
  w.pending_close_acks = w.chained_entries = 0;
  if (std::exchange(w.control_due, false)) --control_due_count_;
}

template <link::PacketDevice D>
void Engine<D>::on_grant(const link::Incoming& m) {
  Bytes rest = m.bytes;
  Grant grant;
  if (!take(rest, grant) || !rest.empty()) return counters_.add(Counter::drop_length);
  Writer* w = find_writer_by_name(grant.writer, m.from);
  if (w == nullptr || grant.blocks > grant.capacity) return counters_.add(Counter::drop_credit);
  w->capacity = grant.capacity;
  w->credit = std::min(w->credit + grant.blocks, grant.capacity);
  if (w->asked) {
    w->asked = false;
    if (w->credit < w->need)
      schedule_control(*w);  // wants what is still missing
    else if (w->blocked)
      w->hold_until = m.now + kRecallHold;  // the hold begins
  }
}

template <link::PacketDevice D>
void Engine<D>::on_recall(const link::Incoming& m) {
  Bytes rest = m.bytes;
  StreamHead head;
  if (!take(rest, head) || !rest.empty()) return counters_.add(Counter::drop_length);
  Writer* w = find_writer_by_name(head.id, m.from);
  if (w == nullptr) return counters_.add(Counter::drop_credit);
  w->recalled = true;
  schedule_control(*w);
}

template <link::PacketDevice D>
void Engine<D>::on_gone(const link::Incoming& m) {
  Bytes rest = m.bytes;
  Answer gone;
  if (!take(rest, gone) || !rest.empty()) return counters_.add(Counter::drop_length);
  if (!valid_status(gone.status)) return counters_.add(Counter::drop_field);
  Writer* w = find_writer_by_name(gone.id, m.from);
  if (w == nullptr) return counters_.add(Counter::drop_credit);
  if (gone.status != 0) return drop_writer(*w, static_cast<Status>(gone.status));
  if (w->pending_close_acks == 0) return counters_.add(Counter::drop_credit);
  --w->pending_close_acks;
  if (w->state != Writer::State::closed) return;  // opened again since
  // Gives back grants that crossed the close on the wire; then the writer is free.
  w->recalled = true;
  schedule_control(*w);
}

// ---- at the owner -----------------------------------------------------------------------------

template <link::PacketDevice D>
link::RxResult Engine<D>::on_want(const link::Incoming& m) {
  Bytes rest = m.bytes;
  Want want;
  if (!take(rest, want) || !rest.empty()) return drop(Counter::drop_length);
  Fifo* fifo = nullptr;
  const Status status = keys_.fifo({want.key}, fifo);
  if (status == Status::ok) {
    if (fifo->want(m.from, want.writer, want.blocks)) return link::RxResult::consumed;
    return drop(Counter::drop_credit);
  }
  return send_gone(m, want.writer, status);
}

// Refuses a credit message: the FIFO that it names is withdrawn, or was never there.
template <link::PacketDevice D>
link::RxResult Engine<D>::send_gone(const link::Incoming& m, std::uint32_t writer, Status why) {
  if (!may_answer(m.from)) return link::RxResult::backpressure;
  count_refusal(why);
  const Answer gone{writer, static_cast<std::uint32_t>(why)};
  try_send(m.from, Kind::gone, bytes_of(gone), {}, link::Urgency::batch, m.now);
  return link::RxResult::consumed;
}

template <link::PacketDevice D>
link::RxResult Engine<D>::on_give_back(const link::Incoming& m) {
  Bytes rest = m.bytes;
  GiveBack back;
  if (!take(rest, back) || !rest.empty()) return drop(Counter::drop_length);
  Fifo* fifo = nullptr;
  const Status status = keys_.fifo({back.key}, fifo);
  // A writer that closes waits for an answer; another one hears of it with its next entry or want.
  if (status != Status::ok)
    return back.closing != 0 ? send_gone(m, back.closing, status) : link::RxResult::consumed;
  if (!fifo->give_back(m.from, back.blocks, back.closing != 0)) return drop(Counter::drop_credit);
  return link::RxResult::consumed;
}

// Sends, as owner, what is due to writers: `gone` to those whose FIFO was withdrawn, then grants,
// recalls and close acknowledgements of all FIFOs in pending_updates_. What the link does not take
// is tried again in the next poll.
template <link::PacketDevice D>
void Engine<D>::send_credit_updates(Time now) {
  std::erase_if(orphaned_writers_, [&](const OrphanedWriter& w) {
    const Answer gone{w.name, static_cast<std::uint32_t>(Status::withdrawn)};
    return try_send(w.peer, Kind::gone, bytes_of(gone), {}, link::Urgency::batch, now) !=
           link::SendStatus::try_again;  // sent, or the peer has ended
  });
  for (std::size_t i = 0; i < pending_updates_.size();) {
    if (send_credit_updates(*pending_updates_[i], now)) {
      ++i;
    } else {  // the order in pending_updates_ does not matter
      pending_updates_[i] = pending_updates_.back();
      pending_updates_.pop_back();
    }
  }
}

// One FIFO's messages. False: it has no more to send, and leaves pending_updates_.
template <link::PacketDevice D>
bool Engine<D>::send_credit_updates(Fifo& fifo, Time now) {
  const auto send = [&](link::PeerId to, Kind kind, Bytes bytes) {
    return try_send(to, kind, bytes, {}, link::Urgency::batch, now) == link::SendStatus::sent;
  };
  fifo.send_updates(
      [&](link::PeerId to, std::uint32_t name, std::uint32_t blocks) {
        const Grant grant{name, blocks, static_cast<std::uint32_t>(fifo.capacity() / kBlock)};
        const bool sent = send(to, Kind::grant, bytes_of(grant));
        counters_.add(Counter::fifo_grants, sent);
        return sent;
      },
      [&](link::PeerId to, std::uint32_t name) {
        const bool sent = send(to, Kind::recall, bytes_of(StreamHead{name}));
        counters_.add(Counter::fifo_recalls, sent);
        return sent;
      },
      [&](link::PeerId to, std::uint32_t name) {
        return send(to, Kind::gone, bytes_of(Answer{name, 0}));
      });
  return fifo.has_updates();
}

}  // namespace viaduct::mbcf
