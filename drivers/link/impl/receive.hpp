// Link: from the device to the sinks.
#pragma once

#include <utility>

#include "drivers/link/crc32c.hpp"
#include "drivers/link/link.hpp"

namespace viaduct::link {

template <PacketDevice D>
void Link<D>::receive(Time now) {
  Frame* burst[kBurst];
  const std::uint16_t count = device_.receive(burst, kBurst);
  if (count == 0) return;
  counters_.add(Counter::frames_received, count);
  for (std::uint16_t i = 0; i < count; ++i) {
    if (i + 1 < count) __builtin_prefetch(D::bytes(burst[i + 1]));
    receive_frame(burst[i], now);
  }
}

// Takes over the frame. Cheap tests first; nothing is believed before the token and the checksum.
template <PacketDevice D>
void Link<D>::receive_frame(Frame* f, Time now) {
  const std::size_t length = D::length(f);
  const auto& header = *reinterpret_cast<const FrameHeader*>(D::bytes(f));
  const auto reject = [this, f](Counter reason) {
    drop(reason);
    D::release(f);
  };
  if (length < kEthernetHeader) return reject(Counter::drop_length);
  if (header.ether_type != kEtherType ||
      std::memcmp(header.to, device_.address().bytes.data(), 6) != 0)
    return reject(Counter::drop_foreign);
  if (length < kFrameHeader || header.length > length - kFrameHeader)
    return reject(Counter::drop_length);
  if (header.version_type >> 4 != kVersion) return reject(Counter::drop_version);
  if ((header.lane_flags & ~kFlagsKnown) != 0) return reject(Counter::drop_type);

  const std::span payload{D::bytes(f) + kFrameHeader, header.length};
  const auto type = static_cast<FrameType>(header.version_type & 15);
  switch (type) {
    case FrameType::hello:
    case FrameType::welcome:
    case FrameType::confirm:
      if (!intact(f, header, nullptr)) return reject(Counter::drop_checksum);
      receive_handshake(type, header, payload, now);
      break;
    case FrameType::data:
    case FrameType::ack:
    case FrameType::goodbye: {
      Peer* p = authenticate(header);
      if (!p) break;
      if (!intact(f, header, p)) return reject(Counter::drop_checksum);
      if (p->state == PeerState::answering) bring_up(p, now);  // proves as much as a confirm
      if (!p->up()) return reject(Counter::drop_state);
      p->last_heard = now;
      p->unanswered = 0;
      if (type == FrameType::data) return receive_data(p, f, header, now);
      if (type == FrameType::ack) {
        receive_ack(p, payload, now);
        if ((header.lane_flags & kFlagAnswer) != 0) {
          p->receive[0].ack_at_once = true;
          ack_later(p, p->receive[0], now);
        }
      } else {
        forget(p, DownReason::left);
      }
      break;
    }
    default: return reject(Counter::drop_type);
  }
  D::release(f);
}

template <PacketDevice D>
auto Link<D>::authenticate(const FrameHeader& header) -> Peer* {
  Peer* p = find(PeerId{header.connection});
  if (!p) {
    drop(Counter::drop_incarnation);
    return nullptr;
  }
  if (header.token != p->local_token) {
    drop(Counter::drop_token);
    return nullptr;
  }
  return p;
}

template <PacketDevice D>
bool Link<D>::intact(const Frame* f, const FrameHeader& header, const Peer* p) const {
  if (p && !p->checksum) return true;
  const std::byte* bytes = D::bytes(const_cast<Frame*>(f));
  const std::uint32_t payload = crc32c(bytes + kFrameHeader, header.length);
  return crc32c(bytes, kFrameHeader - sizeof(header.checksum), payload) == header.checksum;
}

template <PacketDevice D>
void Link<D>::receive_data(Peer* p, Frame* f, const FrameHeader& header, Time now) {
  using Arrival = typename Receive::Arrival;
  const std::size_t index = header.lane_flags & kLaneMask;
  if (index >= kLanes) {
    drop(Counter::drop_type);
    return D::release(f);
  }
  const auto lane = static_cast<Lane>(index);
  note_acknowledgement(p, lane, {header.ack, header.limit, {}}, now);

  Receive& flow = p->receive[index];
  const std::uint32_t sequence = header.sequence;
  const Arrival arrival = flow.classify(sequence);
  if (arrival == Arrival::duplicate || arrival == Arrival::beyond_credit) {
    // The peer has not heard what we have, or means to have credit that we took back.
    drop(arrival == Arrival::duplicate ? Counter::drop_duplicate : Counter::drop_credit);
    flow.ack_at_once = true;
    ack_later(p, flow, now);
    if (arrival == Arrival::beyond_credit) want_credit(p, lane, now);
    return D::release(f);
  }
  const bool had_gap = flow.has_gap();
  flow.arrived(sequence, now);
  if (had_gap || flow.has_gap()) flow.ack_at_once = true;
  if ((header.lane_flags & kFlagWant) != 0) want_credit(p, lane, now);

  D::meta(f).rx.consumed = 0;
  const Order order = (header.lane_flags & kFlagUnordered) != 0 ? Order::unordered : Order::ordered;
  const bool deliverable = arrival == Arrival::in_order || order == Order::unordered;
  if (!deliverable || flow.stalled) {
    flow.hold(f, sequence);
  } else if (deliver(p, lane, order, f, now)) {
    D::release(f);
    consumed(p, lane, now);
    if (!flow.held().empty()) deliver_held(p, lane, now);
  } else {
    flow.hold(f, sequence);
    flow.stalled = true;
    stalled_.add(p);
  }
  ack_later(p, flow, now);
}

// Offers the frame's messages from where the last offer stopped. False: a sink is busy.
template <PacketDevice D>
bool Link<D>::deliver(Peer* p, Lane lane, Order order, Frame* f, Time now) {
  const std::byte* bytes = D::bytes(f);
  const std::size_t end = kFrameHeader + reinterpret_cast<const FrameHeader*>(bytes)->length;
  std::size_t at = kFrameHeader + D::meta(f).rx.consumed;
  std::uint64_t delivered = 0;
  for (; at + kMessageHeader <= end;) {
    MessageHeader header;
    std::memcpy(&header, bytes + at, kMessageHeader);
    if (at + kMessageHeader + header.length > end) break;
    MessageSink* sink = header.protocol < kProtocols ? sinks_[header.protocol] : nullptr;
    if (!sink) {
      drop(Counter::drop_protocol);
    } else {
      const Incoming message{p->id,       lane, order,
                             header.kind, now,  {bytes + at + kMessageHeader, header.length}};
      if (sink->on_message(message) == Verdict::busy) {
        D::meta(f).rx.consumed = static_cast<std::uint32_t>(at - kFrameHeader);
        counters_.add(Counter::messages_delivered, delivered);
        return false;
      }
      ++delivered;
    }
    at += kMessageHeader + header.length;
  }
  if (at != end) drop(Counter::drop_message);
  counters_.add(Counter::messages_delivered, delivered);
  return true;
}

// Delivers what waited for a gap to close or for a busy sink, as far as that goes now.
template <PacketDevice D>
void Link<D>::deliver_held(Peer* p, Lane lane, Time now) {
  Receive& flow = p->receive[static_cast<std::size_t>(lane)];
  flow.stalled = false;
  Frame* before = nullptr;
  for (Frame* f = flow.held().front(); f;) {
    Frame* next = flow.held().next(f);
    const auto& header = *reinterpret_cast<const FrameHeader*>(D::bytes(f));
    const bool unordered = (header.lane_flags & kFlagUnordered) != 0;
    if (!unordered && !sequence_before(header.sequence, flow.expected())) {
      before = f;  // waits for a gap
    } else if (deliver(p, lane, unordered ? Order::unordered : Order::ordered, f, now)) {
      D::release(flow.held().remove_after(before));
      consumed(p, lane, now);
    } else {
      flow.stalled = true;
      stalled_.add(p);
      break;
    }
    f = next;
  }
}

template <PacketDevice D>
void Link<D>::offer_stalled(Time now) {
  // Those whose sinks are still busy go into the new list; each is offered once a poll.
  auto waiting = std::exchange(stalled_, {});
  while (Peer* p = waiting.front()) {
    waiting.remove(p);
    for (Lane lane : {Lane::high, Lane::low, Lane::bulk}) {
      Receive& flow = p->receive[static_cast<std::size_t>(lane)];
      if (!flow.stalled) continue;
      deliver_held(p, lane, now);
      if (flow.credit_due()) {
        flow.ack_at_once = true;
        ack_later(p, flow, now);
      }
    }
  }
}

// --- credit: docs/link.md -----------------------------------------------------------------------

template <PacketDevice D>
void Link<D>::consumed(Peer* p, Lane lane, Time now) {
  CreditPool& pool = credit_[static_cast<std::size_t>(lane)];
  Receive& flow = p->receive[static_cast<std::size_t>(lane)];
  const std::uint32_t share =
      pool.contended_until > now ? std::max(pool.capacity / (pool.borrowers + 1), 1u) : kMaxWindow;
  const std::uint32_t shrunk = flow.consume(share);
  if (shrunk == 0) return;
  pool.lent -= shrunk;
  if (flow.window() == flow.base_window()) --pool.borrowers;
}

// The peer has more to send than it may. If nothing is free now it stands in line.
template <PacketDevice D>
void Link<D>::want_credit(Peer* p, Lane lane, Time now) {
  Receive& flow = p->receive[static_cast<std::size_t>(lane)];
  if (!lend(p, lane, now)) {
    flow.wants = true;
    wanting_.add(p);
  }
  flow.ack_at_once = true;
  ack_later(p, flow, now);
}

// Doubles the peer's window as far as there is memory. False: there is none. A window that is not
// drained, or as large as any may be, is left as it is.
template <PacketDevice D>
bool Link<D>::lend(Peer* p, Lane lane, Time now) {
  CreditPool& pool = credit_[static_cast<std::size_t>(lane)];
  Receive& flow = p->receive[static_cast<std::size_t>(lane)];
  if (flow.window() >= config_.max_window || (flow.stalled && flow.window() != 0)) return true;
  const std::uint32_t wanted =
      std::min(std::max(flow.window(), 1u), config_.max_window - flow.window());
  std::uint32_t free = pool.capacity - pool.lent;
  if (free < wanted) free += reclaim_credit(lane, now);
  if (free < wanted) pool.contended_until = now + kContention;
  const std::uint32_t by = std::min(wanted, free);
  if (by == 0) return false;
  if (flow.window() == flow.base_window()) ++pool.borrowers;
  pool.lent += by;
  flow.grow(by, now);
  return true;
}

// One peer in line a poll, so that a poll stays short.
template <PacketDevice D>
void Link<D>::serve_wanting(Time now) {
  Peer* p = wanting_.front();
  wanting_.remove(p);
  for (Lane lane : {Lane::high, Lane::low, Lane::bulk}) {
    Receive& flow = p->receive[static_cast<std::size_t>(lane)];
    if (!flow.wants) continue;
    flow.wants = !lend(p, lane, now);
    if (flow.wants) {
      wanting_.add(p);
    } else {
      flow.ack_at_once = true;
      ack_later(p, flow, now);
    }
  }
}

// Looks at a few peers, round robin, whose lease may have run out.
template <PacketDevice D>
std::uint32_t Link<D>::reclaim_credit(Lane lane, Time now) {
  CreditPool& pool = credit_[static_cast<std::size_t>(lane)];
  std::uint32_t freed = 0;
  for (std::size_t n = std::min<std::size_t>(peers_.size(), 16); n != 0; --n) {
    reclaim_hand_ = reclaim_hand_ + 1 < peers_.size() ? reclaim_hand_ + 1 : 0;
    Peer* p = peers_[reclaim_hand_].get();
    if (!p) continue;
    const std::uint32_t got = p->receive[static_cast<std::size_t>(lane)].reclaim(now);
    if (got != 0) --pool.borrowers;
    freed += got;
  }
  pool.lent -= freed;
  return freed;
}

}  // namespace viaduct::link
