// Link: from try_send to the device.
#pragma once

#include <algorithm>

#include "drivers/link/crc32c.hpp"
#include "drivers/link/link.hpp"

namespace viaduct::link {

template <PacketDevice D>
SendStatus Link<D>::try_send(PeerId to, Lane lane, Order order, MessageType type,
                             std::span<const std::byte> head, std::span<const std::byte> body,
                             Urgency urgency, Time now) {
  Peer* p = find(to);
  if (!p) return SendStatus::peer_down;
  const std::size_t size = kMessageHeader + head.size() + body.size();
  const std::size_t capacity = p->up() ? p->payload_capacity() : kMinMtu - kLinkHeader;
  if (size > capacity) [[unlikely]] {
    if (size > device_.mtu() - kLinkHeader || p->up()) return SendStatus::too_big;
    connect(to, now);  // it may fit once the peer's MTU is known
    return SendStatus::try_again;
  }
  Send& flow = p->send[static_cast<std::size_t>(lane)];
  Frame* f = flow.open_frame(order);
  if (!f || D::length(f) + size > kFrameHeader + capacity) {
    if (flow.backlog() >= config_.max_backlog) return SendStatus::try_again;
    f = new_frame(lane);
    if (!f) return SendStatus::try_again;
    D::meta(f).tx.order = static_cast<std::uint8_t>(order);
    flow.wait(f);
  }
  append(f, type, head, body);
  counters_.add(Counter::messages_sent);
  if (!p->up()) [[unlikely]] {
    connect(to, now);
  } else if (urgency == Urgency::now) {
    transmit_lane(p, lane, now);
    if (staged_count_ != 0) flush();
  } else {
    pumping_.add(p);
  }
  return SendStatus::sent;
}

template <PacketDevice D>
auto Link<D>::new_frame(Lane lane) -> Frame* {
  if (frames_sending_ >= sending_limit_[static_cast<std::size_t>(lane)]) return nullptr;
  Frame* f = device_.allocate();
  if (!f) return nullptr;
  ++frames_sending_;
  D::set_length(f, kFrameHeader);
  D::meta(f).tx.payload_crc = 0;
  return f;
}

template <PacketDevice D>
auto Link<D>::new_control_frame() -> Frame* {
  Frame* f = device_.allocate();
  if (f) D::set_length(f, kFrameHeader);
  return f;
}

template <PacketDevice D>
void Link<D>::append(Frame* f, MessageType type, std::span<const std::byte> head,
                     std::span<const std::byte> body) {
  const std::size_t length = D::length(f);
  std::byte* const start = D::bytes(f) + length;
  const MessageHeader header{static_cast<std::uint16_t>(head.size() + body.size()),
                             static_cast<std::uint8_t>(type.protocol), type.kind};
  std::memcpy(start, &header, kMessageHeader);
  std::byte* to = start + kMessageHeader;
  if (!head.empty()) std::memcpy(to, head.data(), head.size());
  to += head.size();
  // The checksum is made while the bytes are in cache: in the same pass as the copy.
  std::uint32_t& crc = D::meta(f).tx.payload_crc;
  crc = crc32c(start, static_cast<std::size_t>(to - start), crc);
  if (!body.empty()) crc = crc32c_copy(to, body.data(), body.size(), crc);
  D::set_length(f, length + kMessageHeader + head.size() + body.size());
}

// Hands the lane's waiting frames to the device as far as credit and device allow.
template <PacketDevice D>
void Link<D>::transmit_lane(Peer* p, Lane lane, Time now) {
  Send& flow = p->send[static_cast<std::size_t>(lane)];
  if (flow.in_flight().empty()) {
    flow.expire_credit(now);
    timers_.set_no_later(p, now + timeout(p, flow));
  }
  while (flow.ready()) {
    if (staged_count_ == kBurst) {
      flush();
      if (staged_count_ == kBurst) break;
    }
    Frame* f = flow.oldest_waiting();
    finish(p, lane, f);
    flow.transmitted(now);
    D::retain(f);
    staged_[staged_count_++] = f;
  }
  if (flow.blocked()) {
    counters_.add(Counter::credit_waits);
    flow.block(now);
  } else if (flow.ready()) {
    pumping_.add(p);  // the device is full
  }
}

// Fills in the header. From here on the frame never changes: it may be sent again while the device
// still has it, and whatever it says of acknowledgement and credit only grows old.
template <PacketDevice D>
void Link<D>::finish(Peer* p, Lane lane, Frame* f) {
  Send& flow = p->send[static_cast<std::size_t>(lane)];
  Receive& back = p->receive[static_cast<std::size_t>(lane)];
  auto* header = reinterpret_cast<FrameHeader*>(D::bytes(f));
  *header = p->header;
  auto flags = static_cast<std::uint8_t>(lane);
  if (D::meta(f).tx.order == static_cast<std::uint8_t>(Order::unordered)) flags |= kFlagUnordered;
  if (flow.wants_credit()) flags |= kFlagWant;
  header->lane_flags = flags;
  header->length = static_cast<std::uint16_t>(D::length(f) - kFrameHeader);
  header->sequence = flow.next_sequence();
  header->ack = back.expected();
  header->limit = back.limit();
  back.acknowledged();
  if (p->checksum)
    seal(f, D::meta(f).tx.payload_crc);
  else
    header->checksum = 0;
}

template <PacketDevice D>
void Link<D>::seal(Frame* f, std::uint32_t payload_crc) {
  auto* header = reinterpret_cast<FrameHeader*>(D::bytes(f));
  header->checksum = crc32c(D::bytes(f), kFrameHeader - sizeof(header->checksum), payload_crc);
}

template <PacketDevice D>
bool Link<D>::stage(Frame* f) {
  if (staged_count_ == kBurst) {
    flush();
    if (staged_count_ == kBurst) return false;
  }
  D::retain(f);
  staged_[staged_count_++] = f;
  return true;
}

template <PacketDevice D>
void Link<D>::flush() {
  const std::uint16_t taken = device_.transmit(staged_, staged_count_);
  counters_.add(Counter::frames_sent, taken);
  staged_count_ = static_cast<std::uint16_t>(staged_count_ - taken);
  if (staged_count_ == 0) return;
  counters_.add(Counter::device_full);
  std::memmove(staged_, staged_ + taken, staged_count_ * sizeof(Frame*));
}

// Sends what has been waiting for the next poll, for credit or for the device; high lanes first.
template <PacketDevice D>
void Link<D>::pump(Time now) {
  for (Lane lane : {Lane::high, Lane::low, Lane::bulk})
    for (Peer* p = pumping_.front(); p; p = pumping_.next(p))
      if (p->send[static_cast<std::size_t>(lane)].backlog() != 0) transmit_lane(p, lane, now);
  for (Peer* p = pumping_.front(); p;) {
    Peer* next = pumping_.next(p);
    if (std::none_of(p->send.begin(), p->send.end(), [](const Send& s) { return s.ready(); }))
      pumping_.remove(p);  // what is blocked comes back with the credit
    p = next;
  }
}

template <PacketDevice D>
void Link<D>::push(Time now) {
  pump(now);
  if (staged_count_ != 0) flush();
}

}  // namespace viaduct::link
