// Link: from the device to the receive handlers: the checks on a frame, sequence numbers, delivery,
// and frames held for a gap to close or for a busy handler. Every drop has a counter. Ack frames go
// on to loss_recovery.hpp, handshakes to handshake.hpp.
#pragma once

#include <utility>

#include "drivers/base/crc32c.hpp"
#include "drivers/link/link.hpp"

namespace viaduct::link {

// Fetches frames in short bursts: bytes that the device's driver has just copied are then still in
// the first-level cache when their frame is summed and delivered.
template <PacketDevice D>
void Link<D>::receive() {
  Frame* burst[kReceiveBurst];
  for (std::uint16_t taken = 0; taken < kBurst && device_.may_receive();) {
    const std::uint16_t count = device_.receive(burst, kReceiveBurst);
    if (count == 0) break;
    device_.expect_transmit();  // a prefetch, which the work on the frames hides
    counters_.add(Counter::frames_received, count);
    for (std::uint16_t i = 0; i < count; ++i) {
      if (i + 1 < count) __builtin_prefetch(D::bytes(burst[i + 1]));
      receive_frame(burst[i]);
    }
    delivered_at_ = now_;
    // So many frames are a stream: its sender waits for acknowledgements rather than for an answer.
    if (delivered_count_ > kFewFrames) finish_delivered();
    taken = static_cast<std::uint16_t>(taken + count);
    if (count < kReceiveBurst) break;
  }
}

// Takes over the caller's reference. The link believes nothing in a frame before the route (source,
// connection, token) and the checksum are right: first the table by the connection number, then one
// comparison of the whole route.
template <PacketDevice D>
inline void Link<D>::receive_frame(Frame* f) {
  const std::size_t length = D::length(f);
  const auto& header = *reinterpret_cast<const FrameHeader*>(D::bytes(f));
  Peer* p = length >= kFrameHeader ? find_connection(header.connection) : nullptr;
  if (!p || !same_route(header, p->incoming)) [[unlikely]]
    return receive_from_unknown(f);
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
  if (p->checksums || handshake) {
    const std::uint32_t sum = base::crc32c(payload.data(), payload.size(), p->incoming_sum);
    if (frame_checksum(header, sum) != header.checksum) [[unlikely]]
      return reject(Counter::drop_checksum);
  }
  if (handshake) [[unlikely]] {
    receive_handshake(p, type, header, payload);
    return D::release(f);
  }
  if (!p->up()) [[unlikely]] {
    if (!p->nearly_up()) return reject(Counter::drop_state);
    bring_up(p);
  }
  p->last_heard = now_;
  p->unanswered_probes = 0;
  if (type == FrameType::data) [[likely]]
    return receive_data(p, f, header);
  receive_control(p, type, header, payload);
  D::release(f);
}

// An ack frame or a goodbye of a connection that is up. After a goodbye the peer may be gone.
template <PacketDevice D>
void Link<D>::receive_control(Peer* p, FrameType type, const FrameHeader& header,
                              std::span<const std::byte> payload) {
  if (type == FrameType::ack) {
    receive_ack(p, payload);
    if ((header.lane_flags & kFlagAnswer) != 0) {
      Flow& any = p->flow(Lane::high);  // any lane will do: the ack frame is the answer
      any.receive.ack_at_once = true;
      ack_later(any);
    }
  } else if (type == FrameType::goodbye) {
    on_goodbye(p);
  } else {
    count(p, Counter::drop_type);
  }
}

// A frame whose route is not that of a connection: a hello, or a stray to be counted and dropped.
// The order of the checks is that of docs/wire.md, so a counter has one meaning.
template <PacketDevice D>
void Link<D>::receive_from_unknown(Frame* f) {
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
  receive_handshake(nullptr, type, header, payload);
  D::release(f);
}

// A data frame of a connection that is up; takes over the reference. The fast path: the frame is
// the next in order, nothing waits in either direction, and the peer has enough credit. That path
// delivers at once and leaves all upkeep to finish_delivered(). receive_unusual has the other
// cases.
template <PacketDevice D>
inline void Link<D>::receive_data(Peer* p, Frame* f, const FrameHeader& header) {
  const std::size_t index = header.lane_flags & kLaneMask;
  if (index >= kLanes) [[unlikely]] {
    count(p, Counter::drop_type);
    return D::release(f);
  }
  Flow& flow = p->flows[index];
  const std::uint32_t sequence = header.sequence;
  // With a backlog of our own the acknowledgement counts at once: the frame may bring credit.
  if (!flow.receive.is_next_in_order(sequence) || (header.lane_flags & kFlagWant) != 0 ||
      flow.send.backlog() != 0) [[unlikely]]
    return receive_unusual(flow, f, header);
  flow.receive.arrived_in_order(now_);
  D::meta(f).rx.consumed = 0;
  if (!deliver(flow, f)) [[unlikely]] {
    acknowledge(flow, acknowledgement_in(header), now_);
    return stall(flow, f, sequence);
  }
  on_consumed(flow);
  // There is room: at most kFewFrames are left of earlier bursts, and a burst has kReceiveBurst.
  delivered_[delivered_count_++] = {&flow, f};
}

// A data frame off the fast path: duplicates, gaps, frames beyond the credit, requests for credit,
// a busy handler. Upkeep happens at once; takes over the reference.
template <PacketDevice D>
void Link<D>::receive_unusual(Flow& flow, Frame* f, const FrameHeader& header) {
  using Arrival = typename Receive::Arrival;
  acknowledge(flow, acknowledgement_in(header), now_);
  Receive& r = flow.receive;
  const std::uint32_t sequence = header.sequence;
  const bool wants = (header.lane_flags & kFlagWant) != 0;
  const Arrival arrival = r.classify(sequence);
  if (arrival == Arrival::duplicate || arrival == Arrival::beyond_credit) {
    // Either our acknowledgement was lost, or the peer counts on a lease that our side has taken
    // back. An ack frame at once corrects both.
    count(&flow.peer,
          arrival == Arrival::duplicate ? Counter::drop_duplicate : Counter::drop_credit);
    r.ack_at_once = true;
    ack_later(flow);
    if (arrival == Arrival::beyond_credit) on_credit_wanted(flow);
    return D::release(f);
  }
  const bool had_gap = r.has_gap();
  r.arrived(sequence, now_);
  // A gap has opened, changed or closed: the sender's loss detection needs to know at once.
  if (had_gap || r.has_gap()) r.ack_at_once = true;
  if (wants) on_credit_wanted(flow);

  D::meta(f).rx.consumed = 0;
  const bool deliverable = arrival == Arrival::in_order || order_of(header) == Order::unordered;
  if (!deliverable || r.stalled) {
    r.hold(f, sequence);
  } else if (deliver(flow, f)) {
    D::release(f);
    on_consumed(flow);
    if (!r.held().empty()) deliver_held(flow);
  } else {
    return stall(flow, f, sequence);
  }
  ack_later(flow);
}

// Holds a frame whose handler is busy; offer_stalled() offers the frame again at each poll. The
// frame is acknowledged, since the frame has arrived; not being consumed, the frame brings no new
// credit.
template <PacketDevice D>
void Link<D>::stall(Flow& flow, Frame* f, std::uint32_t sequence) {
  flow.receive.hold(f, sequence);
  flow.receive.stalled = true;
  stalled_.add(&flow.peer);
  ack_later(flow);
}

// The upkeep of frames that the fast path has delivered: applies the acknowledgement that each
// frame carried, schedules ours, and frees the frame.
template <PacketDevice D>
void Link<D>::finish_delivered() {
  for (std::uint16_t i = 0; i < delivered_count_; ++i) {
    const auto& [flow, f] = delivered_[i];
    if (flow) [[likely]] {
      const auto& header = *reinterpret_cast<const FrameHeader*>(D::bytes(f));
      acknowledge(*flow, acknowledgement_in(header), delivered_at_);
      if (flow->receive.ack_pending()) ack_later(*flow);
    }
    D::release(f);
  }
  delivered_count_ = 0;
}

// Offers the frame's messages to their handlers, from where the last offer stopped (rx.consumed).
// False: a handler is busy. Bytes that do not make up a whole message end the frame: the checksum
// was right, so the sender is wrong, and there is nothing to wait for. The order is read for each
// message: held across the loop it lands on the stack as one byte, and GCC 12 loads it as two,
// which the processor cannot forward from the store (some 30 cycles just before the handler runs).
template <PacketDevice D>
inline bool Link<D>::deliver(Flow& flow, Frame* f) {
  const auto& frame = *reinterpret_cast<const FrameHeader*>(D::bytes(f));
  const std::byte* const payload = D::bytes(f) + kFrameHeader;
  const std::byte* const end = payload + frame.length;
  const std::byte* at = payload + D::meta(f).rx.consumed;
  while (static_cast<std::size_t>(end - at) >= kMessageHeader) {
    MessageHeader header;
    std::memcpy(&header, at, kMessageHeader);
    const std::byte* const body = at + kMessageHeader;
    if (header.length > static_cast<std::size_t>(end - body)) break;
    ReceiveHandler* const sink = header.protocol < kProtocols ? sinks_[header.protocol] : nullptr;
    if (sink) [[likely]] {
      const Incoming message{flow.peer.id, flow.lane, order_of(frame),
                             header.kind,  now_,      {body, header.length}};
      if (sink->on_message(message) == RxResult::backpressure) [[unlikely]] {
        D::meta(f).rx.consumed = static_cast<std::uint32_t>(at - payload);
        return false;
      }
      counters_.add(Counter::messages_delivered);
    } else {
      count(&flow.peer, Counter::drop_protocol);
    }
    at = body + header.length;
  }
  if (at != end) count(&flow.peer, Counter::drop_message);
  return true;
}

// Delivers held frames in order, as far as gaps and handlers allow. Unordered frames do not wait
// for a gap; only a busy handler holds them.
template <PacketDevice D>
void Link<D>::deliver_held(Flow& flow) {
  Receive& r = flow.receive;
  r.stalled = false;
  Frame* before = nullptr;
  for (Frame* f = r.held().front(); f;) {
    Frame* next = Receive::List::next(f);
    const auto& header = *reinterpret_cast<const FrameHeader*>(D::bytes(f));
    if (order_of(header) == Order::ordered && !sequence_before(header.sequence, r.expected())) {
      before = f;  // waits for a gap
    } else if (deliver(flow, f)) {
      D::release(r.held().remove_after(before));
      on_consumed(flow);
    } else {
      r.stalled = true;
      stalled_.add(&flow.peer);
      break;
    }
    f = next;
  }
}

// Offers the messages of every stalled lane again, once a poll. A peer that has said goodbye ends
// when its last message is taken.
template <PacketDevice D>
void Link<D>::offer_stalled() {
  // deliver_held() adds a peer whose handler is still busy to the list again, so the loop must not
  // work on that list itself.
  auto waiting = std::exchange(stalled_, {});
  while (Peer* p = waiting.front()) {
    waiting.remove(p);
    for (Flow& flow : p->flows) {
      if (!flow.receive.stalled) continue;
      deliver_held(flow);
      if (flow.receive.credit_due() && !p->draining()) {
        flow.receive.ack_at_once = true;
        ack_later(flow);
      }
    }
    if (p->draining() && !p->stalled_hook.linked) end_connection(p, DownReason::left);
  }
}

}  // namespace viaduct::link
