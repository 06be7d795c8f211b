// Link: from try_send to the device, which gets frames in bursts. A message either leaves in a
// frame of its own at once, or joins the last frame of the lane's backlog; credit (credit.hpp)
// decides when frames of the backlog leave. Sent frames stay in the lane for retransmission
// (loss_recovery.hpp).
#pragma once

#include <algorithm>
#include <cstring>
#include <optional>

#include "drivers/link/link.hpp"

namespace viaduct::link {

// The first half is the fast path: an urgent message, nothing waiting, credit. All else is the
// second half.
template <PacketDevice D>
SendStatus Link<D>::try_send(PeerId to, Lane lane, Order order, MessageType type,
                             std::span<const std::byte> head, std::span<const std::byte> body,
                             Urgency urgency, Time now) {
  const CallTime call(*this, now);
  Peer* p = find(to);
  if (!p || p->draining()) [[unlikely]]
    return SendStatus::peer_down;
  const std::size_t size = kMessageHeader + head.size() + body.size();
  const std::size_t capacity = p->up() ? p->payload_capacity() : kMinMtu - kLinkHeader;
  if (size > capacity) [[unlikely]] {
    if (size > device_.mtu() - kLinkHeader || p->up()) return SendStatus::too_big;
    send_request(p);  // the message may fit once the peer's MTU is known
    return SendStatus::try_again;
  }
  Flow& flow = p->flow(lane);
  const bool alone = urgency == Urgency::now && flow.send.in_flight().size() < kMaxAlone;
  if (alone && flow.send.backlog() == 0 && can_send(flow)) [[likely]] {
    Frame* f = new_frame(lane);
    if (!f) [[unlikely]]
      return SendStatus::try_again;
    const std::uint32_t sum =
        write_message(D::bytes(f) + kFrameHeader, type, head, body, p->outgoing_sum);
    D::set_length(f, kFrameHeader + size);
    D::meta(f).tx.order = static_cast<std::uint8_t>(order);
    build_header(flow, f, sum);
    flush();  // before the book-keeping, for which the peer need not wait
    on_transmitted(flow, f);
    counters_.add(Counter::messages_sent);
    return SendStatus::sent;
  }
  if (!enqueue(flow, order, type, head, body, capacity)) return SendStatus::try_again;
  counters_.add(Counter::messages_sent);
  if (!p->up()) [[unlikely]] {
    send_request(p);
  } else if (alone) {
    // Urgent, but not on the fast path: sends what credit and device allow, or probes for credit.
    transmit_lane(flow);
    if (tx_burst_size_ != 0) flush();
  } else {
    pending_.add(p);
  }
  return SendStatus::sent;
}

template <PacketDevice D>
bool Link<D>::secure(PeerId to, Lane lane, std::size_t messages) {
  const Peer* p = find(to);
  if (!p || p->draining()) return true;  // try_send will say peer_down
  if (messages > kMaxSecured || p->flow(lane).send.backlog() + messages > config_.max_backlog ||
      frames_sending_ + messages > sending_limit_[index_of(lane)])
    return false;
  // Allocates to find out: the frames go back to the pool, and nothing else of this thread takes a
  // frame before the caller's try_send does.
  Frame* frames[kMaxSecured];
  std::size_t taken = 0;
  while (taken != messages && (frames[taken] = device_.allocate()) != nullptr) ++taken;
  const bool all = taken == messages;
  while (taken != 0) D::release(frames[--taken]);
  return all;
}

// Adds a message to the last frame of the backlog, or to a new frame behind that. False: the
// backlog or the frame pool is full. `capacity`: payload bytes of a frame to this peer.
template <PacketDevice D>
bool Link<D>::enqueue(Flow& flow, Order order, MessageType type, std::span<const std::byte> head,
                      std::span<const std::byte> body, std::size_t capacity) {
  const std::size_t size = kMessageHeader + head.size() + body.size();
  Frame* f = flow.send.open_frame(order);
  if (!f || D::length(f) + size > kFrameHeader + capacity) {
    if (flow.send.backlog() >= config_.max_backlog) return false;
    f = new_frame(flow.lane);
    if (!f) return false;
    D::set_length(f, kFrameHeader);
    D::meta(f).tx.order = static_cast<std::uint8_t>(order);
    D::meta(f).tx.sum = flow.peer.outgoing_sum;
    flow.send.enqueue(f);
  }
  const std::size_t length = D::length(f);
  std::uint32_t& sum = D::meta(f).tx.sum;
  sum = write_message(D::bytes(f) + length, type, head, body, sum);
  D::set_length(f, length + size);
  return true;
}

// A frame for data; counts against what all lanes may hold for sending. nullptr: none for this
// lane.
template <PacketDevice D>
inline auto Link<D>::new_frame(Lane lane) -> Frame* {
  if (frames_sending_ >= sending_limit_[index_of(lane)]) return nullptr;
  Frame* f = device_.allocate();
  if (f) [[likely]]
    ++frames_sending_;
  return f;
}

// A frame for an acknowledgement or a handshake. Nothing keeps such a frame once it was sent, so no
// lane's limit applies: the link must be able to acknowledge when sending has used up its share.
template <PacketDevice D>
auto Link<D>::new_control_frame() -> Frame* {
  Frame* f = device_.allocate();
  if (f) D::set_length(f, kFrameHeader);
  return f;
}

// Whether credit and device allow one more frame to that lane now.
template <PacketDevice D>
inline bool Link<D>::can_send(Flow& flow) {
  if (!flow.peer.up()) [[unlikely]]
    return false;
  // A lease can only run out while nothing is in flight (TxLane::expire_credit).
  if (flow.send.in_flight().empty()) flow.send.expire_credit(now_);
  if (tx_burst_size_ == kBurst) flush();
  return flow.send.has_credit() && tx_burst_size_ != kBurst;
}

// Gives the frame its sequence number and header and lines the frame up for the device, with a
// reference for the burst. From here on the frame never changes, because a retransmission may
// happen while the device is still reading the frame. A retransmitted frame therefore tells of
// outdated acknowledgement and credit, which TxLane::acknowledge ignores. `sum`: over seed, route
// and payload. The caller has checked can_send(), so the burst has a place.
template <PacketDevice D>
inline void Link<D>::build_header(Flow& flow, Frame* f, std::uint32_t sum) {
  const Peer& p = flow.peer;
  auto flags = static_cast<std::uint8_t>(flow.lane);
  if (D::meta(f).tx.order == static_cast<std::uint8_t>(Order::unordered)) flags |= kFlagUnordered;
  if (flow.send.wants_credit()) flags |= kFlagWant;
  const FrameFields fields{FrameType::data,
                           flags,
                           static_cast<std::uint16_t>(D::length(f) - kFrameHeader),
                           flow.send.next_sequence(),
                           flow.receive.expected(),
                           flow.receive.credit()};
  write_header(D::bytes(f), p.outgoing, fields, p.checksums ? std::optional(sum) : std::nullopt);
  D::retain(f);
  tx_burst_[tx_burst_size_++] = f;
}

// The frame has gone to the device, or is lined up for the next flush: moves the frame to those in
// flight, and starts the retransmission timer if no other frame of the lane is in flight. The frame
// carried an acknowledgement of its lane, which is noted, too.
template <PacketDevice D>
inline void Link<D>::on_transmitted(Flow& flow, Frame* f) {
  if (flow.send.in_flight().empty()) timers_.set_no_later(&flow.peer, now_ + timeout(flow));
  flow.send.on_transmitted(f, now_);
  flow.receive.on_ack_sent(now_);
}

// Lines up the flow's waiting frames for the device as far as credit and device allow. A lane that
// has used up its credit begins to probe for credit if nothing is in flight.
template <PacketDevice D>
void Link<D>::transmit_lane(Flow& flow) {
  while (flow.send.backlog() != 0 && can_send(flow)) {
    Frame* f = flow.send.take_waiting();
    build_header(flow, f, D::meta(f).tx.sum);
    on_transmitted(flow, f);
  }
  if (flow.send.blocked()) {
    count(&flow.peer, Counter::credit_waits);
    flow.send.note_credit_shortage();
    probe_for_credit(flow);
  } else if (flow.send.ready()) {
    pending_.add(&flow.peer);  // the device is full: the next poll goes on
  }
}

template <PacketDevice D>
bool Link<D>::enqueue_tx(Frame* f) {
  if (tx_burst_size_ == kBurst) {
    flush();
    if (tx_burst_size_ == kBurst) return false;
  }
  D::retain(f);
  tx_burst_[tx_burst_size_++] = f;
  return true;
}

// Hands the burst to the device. Frames that a full device does not take stay at the front of the
// burst, in order, for the next flush.
template <PacketDevice D>
inline void Link<D>::flush() {
  const std::uint16_t taken = device_.transmit(tx_burst_, tx_burst_size_);
  counters_.add(Counter::frames_sent, taken);
  tx_burst_size_ = static_cast<std::uint16_t>(tx_burst_size_ - taken);
  if (tx_burst_size_ == 0) [[likely]]
    return;
  counters_.add(Counter::device_full);
  std::memmove(tx_burst_, tx_burst_ + taken, tx_burst_size_ * sizeof(Frame*));
}

// Sends frames that have been waiting for the next poll, for credit or for the device. The lane is
// the outer loop: the high lanes of all peers leave before any low lane.
template <PacketDevice D>
void Link<D>::send_pending() {
  for (Lane lane : {Lane::high, Lane::low, Lane::bulk})
    for (Peer* p = pending_.front(); p; p = pending_.next(p))
      if (p->flow(lane).send.backlog() != 0) transmit_lane(p->flow(lane));
  for (Peer* p = pending_.front(); p;) {
    Peer* next = pending_.next(p);
    if (std::none_of(p->flows.begin(), p->flows.end(),
                     [](const Flow& flow) { return flow.send.ready(); }))
      pending_.remove(p);  // acknowledge() adds a blocked peer again when credit comes
    p = next;
  }
}

template <PacketDevice D>
void Link<D>::push(Time now) {
  const CallTime call(*this, now);
  send_pending();
  if (tx_burst_size_ != 0) flush();
}

}  // namespace viaduct::link
