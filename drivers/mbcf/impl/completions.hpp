// Engine, as initiator: the target's answers to our requests, which end them (complete() in
// initiator.hpp); and peers that connect and end. All of these messages are taken at once, so the
// high lane, on which answers travel, never waits for this task.
//
// An answer is trusted only as far as it fits an open request of ours to that peer. Other answers
// are counted (drop_answer) and ignored: a broken peer can spoil only what it was asked for.
#pragma once

#include "drivers/mbcf/engine.hpp"

namespace viaduct::mbcf {

// Done or refused: writes, appends, signals, fences. Reads and atomic operations are only refused
// in this way.
template <link::PacketDevice D>
void Engine<D>::on_answer(const link::Incoming& m) {
  Bytes rest = m.bytes;
  Answer answer;
  if (!take(rest, answer) || !rest.empty()) return counters_.add(Counter::drop_length);
  if (!valid_status(answer.status)) return counters_.add(Counter::drop_field);
  const auto status = static_cast<Status>(answer.status);
  if (answer.id >= kSilent) {
    // The number holds the lower 31 bits of the count. `ago`: how many silent requests were issued
    // from that one on; only a number of the past half of the number space is believed.
    const std::uint64_t issued = silent_count(m.from).issued;
    const std::uint64_t ago = (issued - answer.id) & (kSilent - 1);
    if (status == Status::ok || ago == 0 || ago > issued || ago > kSilent / 2)
      return counters_.add(Counter::drop_answer);
    counters_.add(Counter::requests_refused);
    if (Completion* room = failures_.back()) {
      *room = {{answer.id}, status, m.from, 0, 0};
      failures_.push();
    } else {
      counters_.add(Counter::failures_lost);
    }
    return;
  }
  const Slot slot = requests_.find_open(answer.id, m.from);
  if (slot == base::kNoSlot) return counters_.add(Counter::drop_answer);
  Request& r = requests_[slot];
  PeerRequests* peer = find_peer(m.from);
  if (status == Status::ok) {
    // Only what has been sent wholly can have been executed. Reads and atomic operations succeed by
    // the data or value that they asked for.
    if (r.state != RequestState::sent || r.kind == Kind::read || r.kind == Kind::atomic)
      return counters_.add(Counter::drop_answer);
    if (r.kind == Kind::fence) {
      r.answered = true;
      if (r.open_before != 0) return;  // complete() of the last long request ends the fence
      peer->fences.remove(requests_, slot);
    }
    return complete(slot, status);
  }
  if (r.kind == Kind::fence) return counters_.add(Counter::drop_answer);  // nothing to refuse
  if (r.kind == Kind::read && r.segmented) {
    if (r.state != RequestState::sent) return counters_.add(Counter::drop_answer);
    --peer->reads_in_flight;
    activate(*peer);  // the next read may be sent
  } else if (r.state == RequestState::waiting) {
    // A long write or entry of which pieces have still to be sent: the target would drop them.
    if (r.kind == Kind::append)
      end_append(*peer);
    else
      peer->writes.remove(requests_, slot);
  }
  refund_credit(r);
  complete(slot, status);
}

// The former value of the word of an atomic operation.
template <link::PacketDevice D>
void Engine<D>::on_value(const link::Incoming& m) {
  Bytes rest = m.bytes;
  ValueAnswer answer;
  if (!take(rest, answer) || !rest.empty()) return counters_.add(Counter::drop_length);
  const Slot slot = requests_.find_open(answer.id, m.from);
  if (slot == base::kNoSlot || requests_[slot].kind != Kind::atomic)
    return counters_.add(Counter::drop_answer);
  requests_[slot].value = answer.value;
  complete(slot, Status::ok);
}

// Bytes that were read: all of a short read, or the next piece of a long one. The lane keeps the
// pieces of a read in order, so they need no offset.
template <link::PacketDevice D>
void Engine<D>::on_data(const link::Incoming& m) {
  Bytes data = m.bytes;
  StreamHead head;
  if (!take(data, head)) return counters_.add(Counter::drop_length);
  const Slot slot = requests_.find_open(head.id, m.from);
  if (slot == base::kNoSlot) return counters_.add(Counter::drop_answer);
  Request& r = requests_[slot];
  if (r.kind != Kind::read || r.state != RequestState::sent || data.size() > r.length - r.moved)
    return counters_.add(Counter::drop_answer);
  if (!data.empty()) std::memcpy(r.local + r.moved, data.data(), data.size());
  r.moved += data.size();
  if (r.moved != r.length) return;
  if (r.segmented) {
    PeerRequests* peer = find_peer(m.from);
    --peer->reads_in_flight;
    activate(*peer);
  }
  complete(slot, Status::ok);
}

template <link::PacketDevice D>
void Engine<D>::on_peer_up(link::PeerId peer, const link::Address& address) {
  peer_of(peer);  // allocates now, so that no request has to
  if (!events_.remember({link::Event::Kind::peer_up, peer, address, {}}))
    counters_.add(Counter::events_lost);
}

// Ends all that is under way with an incarnation of a peer: as target its half-received entry and
// its FIFO credit; as initiator our writers to it, and our open requests. Each of those requests
// has been executed once or not at all.
template <link::PacketDevice D>
void Engine<D>::on_peer_down(link::PeerId id, const link::Address& address,
                             link::DownReason reason) {
  if (PeerRequests* peer = find_peer(id)) {
    // Otherwise the half-received entry and the blocks behind it in the ring would stay in use.
    Fifo* fifo = nullptr;
    if (peer->incoming_append.open && keys_.fifo({peer->incoming_append.key}, fifo) == Status::ok) {
      fifo->abandon(peer->incoming_append.at);
      counters_.add(Counter::entries_abandoned);
    }
    std::erase(active_, peer);
    peers_[id.value & 0xffff].reset();
  }
  for (Fifo* fifo : fifos_) fifo->remove_peer(id);
  for (Writer& w : writers_)
    if (w.peer == id && w.state != Writer::State::free && w.state != Writer::State::gone)
      drop_writer(w, Status::peer_down);
  // The lists that requests were in have gone with the PeerRequests. complete() may reuse their
  // links.
  requests_.for_each([&](Slot slot, const Request& r) {
    if (r.peer == id && r.state != RequestState::complete) complete(slot, Status::peer_down);
  });
  if (!events_.remember({link::Event::Kind::peer_down, id, address, reason}))
    counters_.add(Counter::events_lost);
}

}  // namespace viaduct::mbcf
