// Link: from the device to the receive handlers.
#pragma once

#include <utility>

#include "drivers/base/crc32c.hpp"
#include "drivers/link/link.hpp"

namespace viaduct::link {

// In short bursts: what the driver has just copied is then still in the first-level cache when it
// is summed and delivered.
template <PacketDevice D>
void Link<D>::receive(Time now) {
  Frame* burst[kReceiveBurst];
  for (std::uint16_t taken = 0; taken < kBurst && device_.may_receive();) {
    const std::uint16_t count = device_.receive(burst, kReceiveBurst);
    if (count == 0) break;
    device_.expect_transmit();  // before the work, which hides it
    counters_.add(Counter::frames_received, count);
    for (std::uint16_t i = 0; i < count; ++i) {
      if (i + 1 < count) __builtin_prefetch(D::bytes(burst[i + 1]));
      receive_frame(burst[i], now);
    }
    delivered_at_ = now;
    // A burst is a stream, whose sender waits for acknowledgements rather than for an answer.
    if (delivered_count_ > kFewFrames) settle_delivered();
    taken = static_cast<std::uint16_t>(taken + count);
    if (count < kReceiveBurst) break;
  }
}

// Takes over the frame. Nothing is believed before the route (who it is from, which connection, its
// token) and the checksum.
template <PacketDevice D>
inline void Link<D>::receive_frame(Frame* f, Time now) {
  const std::size_t length = D::length(f);
  const auto& header = *reinterpret_cast<const FrameHeader*>(D::bytes(f));
  Peer* p = length >= kFrameHeader ? find_connection(header.connection) : nullptr;
  if (!p || !same_route(header, p->incoming)) [[unlikely]]
    return receive_from_unknown(f, now);
  const auto reject = [this, p, f](Counter reason) {
    count(p, reason);
    D::release(f);
  };
  const auto type = static_cast<FrameType>(header.version_type & 15);
  const std::span payload{D::bytes(f) + kFrameHeader, header.length};
  if (header.length > length - kFrameHeader) [[unlikely]]
    return reject(Counter::drop_length);
  if (header.version_type >> 4 != kVersion) [[unlikely]]
    return reject(Counter::drop_version);
  if ((header.lane_flags & ~kFlagsKnown) != 0) [[unlikely]]
    return reject(Counter::drop_type);
  const bool handshake = type >= FrameType::hello && type <= FrameType::retry;
  if (p->checksum || handshake) {
    const std::uint32_t sum = base::crc32c(payload.data(), payload.size(), p->incoming_sum);
    if (frame_checksum(header, sum) != header.checksum) [[unlikely]]
      return reject(Counter::drop_checksum);
  }
  if (handshake) [[unlikely]] {
    receive_handshake(p, type, header, payload, now);
    return D::release(f);
  }
  if (!p->up()) [[unlikely]] {
    if (!p->nearly_up()) return reject(Counter::drop_state);
    bring_up(p, now);
  }
  p->last_heard = now;
  p->unanswered_probes = 0;
  if (type == FrameType::data) [[likely]]
    return receive_data(p, f, header, now);
  receive_control(p, type, header, payload, now);
  D::release(f);
}

template <PacketDevice D>
void Link<D>::receive_control(Peer* p, FrameType type, const FrameHeader& header,
                              std::span<const std::byte> payload, Time now) {
  if (type == FrameType::ack) {
    receive_ack(p, payload, now);
    if ((header.lane_flags & kFlagAnswer) != 0) {
      p->receive[0].ack_at_once = true;
      ack_later(p, p->receive[0], now);
    }
  } else if (type == FrameType::goodbye) {
    leave(p);
  } else {
    count(p, Counter::drop_type);
  }
}

// A frame that does not start like those of any connection: a hello, or something to be counted.
template <PacketDevice D>
void Link<D>::receive_from_unknown(Frame* f, Time now) {
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
  const auto type = static_cast<FrameType>(header.version_type & 15);
  if ((header.lane_flags & ~kFlagsKnown) != 0 || type < FrameType::data ||
      type > FrameType::goodbye)
    return reject(Counter::drop_type);
  if (type != FrameType::hello)
    return reject(find_connection(header.connection) ? Counter::drop_token
                                                     : Counter::drop_incarnation);
  const std::span payload{D::bytes(f) + kFrameHeader, header.length};
  const std::uint32_t sum = base::crc32c(payload.data(), payload.size(), route_checksum(header, 0));
  if (frame_checksum(header, sum) != header.checksum) return reject(Counter::drop_checksum);
  receive_handshake(nullptr, type, header, payload, now);
  D::release(f);
}

// The usual case, without a gap and with nothing waiting in either direction, is short and leaves
// all upkeep for later; receive_unusual has the others.
template <PacketDevice D>
inline void Link<D>::receive_data(Peer* p, Frame* f, const FrameHeader& header, Time now) {
  const std::size_t index = header.lane_flags & kLaneMask;
  if (index >= kLanes) [[unlikely]] {
    count(p, Counter::drop_type);
    return D::release(f);
  }
  const auto lane = static_cast<Lane>(index);
  const std::uint32_t sequence = header.sequence;
  Receive& flow = p->receive[index];
  if (!flow.next_in_line(sequence) || (header.lane_flags & kFlagWant) != 0 ||
      p->send[index].backlog() != 0) [[unlikely]]
    return receive_unusual(p, lane, f, header, now);
  flow.arrived_in_line(now);
  D::meta(f).rx.consumed = 0;
  const Order order = (header.lane_flags & kFlagUnordered) != 0 ? Order::unordered : Order::ordered;
  if (!deliver(p, lane, order, f, now)) [[unlikely]] {
    acknowledge(p, lane, acknowledgement_in(header), now);
    return stall(p, lane, f, sequence, now);
  }
  consumed(p, lane, now);
  delivered_[delivered_count_++] = {p, f, lane};
}

template <PacketDevice D>
void Link<D>::receive_unusual(Peer* p, Lane lane, Frame* f, const FrameHeader& header, Time now) {
  using Arrival = typename Receive::Arrival;
  acknowledge(p, lane, acknowledgement_in(header), now);
  Receive& flow = p->receive[static_cast<std::size_t>(lane)];
  const std::uint32_t sequence = header.sequence;
  const bool wants = (header.lane_flags & kFlagWant) != 0;
  const Arrival arrival = flow.classify(sequence);
  if (arrival == Arrival::duplicate || arrival == Arrival::beyond_credit) {
    // The peer has not heard what we have, or means to have credit that we took back.
    count(p, arrival == Arrival::duplicate ? Counter::drop_duplicate : Counter::drop_credit);
    flow.ack_at_once = true;
    ack_later(p, flow, now);
    if (arrival == Arrival::beyond_credit) on_credit_wanted(p, lane, now);
    return D::release(f);
  }
  const bool had_gap = flow.has_gap();
  flow.arrived(sequence, now);
  if (had_gap || flow.has_gap()) flow.ack_at_once = true;
  if (wants) on_credit_wanted(p, lane, now);

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
    return stall(p, lane, f, sequence, now);
  }
  ack_later(p, flow, now);
}

// Keeps a frame whose sink is busy.
template <PacketDevice D>
void Link<D>::stall(Peer* p, Lane lane, Frame* f, std::uint32_t sequence, Time now) {
  Receive& flow = p->receive[static_cast<std::size_t>(lane)];
  flow.hold(f, sequence);
  flow.stalled = true;
  stalled_.add(p);
  ack_later(p, flow, now);
}

template <PacketDevice D>
void Link<D>::settle_delivered() {
  for (std::uint16_t i = 0; i < delivered_count_; ++i) {
    const auto& [p, f, lane] = delivered_[i];
    if (p) [[likely]] {
      const auto& header = *reinterpret_cast<const FrameHeader*>(D::bytes(f));
      acknowledge(p, lane, acknowledgement_in(header), delivered_at_);
      const Receive& flow = p->receive[static_cast<std::size_t>(lane)];
      if (flow.ack_pending()) ack_later(p, flow, delivered_at_);
    }
    D::release(f);
  }
  delivered_count_ = 0;
}

// Offers the frame's messages from where the last offer stopped. False: a sink is busy.
template <PacketDevice D>
inline bool Link<D>::deliver(Peer* p, Lane lane, Order order, Frame* f, Time now) {
  const std::byte* const payload = D::bytes(f) + kFrameHeader;
  const std::byte* const end = payload + reinterpret_cast<const FrameHeader*>(D::bytes(f))->length;
  const std::byte* at = payload + D::meta(f).rx.consumed;
  while (static_cast<std::size_t>(end - at) >= kMessageHeader) {
    MessageHeader header;
    std::memcpy(&header, at, kMessageHeader);
    const std::byte* const body = at + kMessageHeader;
    if (header.length > static_cast<std::size_t>(end - body)) break;
    MessageSink* const sink = header.protocol < kProtocols ? sinks_[header.protocol] : nullptr;
    if (sink) [[likely]] {
      const Incoming message{p->id, lane, order, header.kind, now, {body, header.length}};
      if (sink->on_message(message) == Verdict::busy) [[unlikely]] {
        D::meta(f).rx.consumed = static_cast<std::uint32_t>(at - payload);
        return false;
      }
      counters_.add(Counter::messages_delivered);
    } else {
      count(p, Counter::drop_protocol);
    }
    at = body + header.length;
  }
  if (at != end) count(p, Counter::drop_message);
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
      if (flow.credit_due() && !p->leaving()) {
        flow.ack_at_once = true;
        ack_later(p, flow, now);
      }
    }
    if (p->leaving() && !p->stalled_hook.linked) forget(p, DownReason::left);
  }
}

}  // namespace viaduct::link
