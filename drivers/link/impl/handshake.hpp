// Link: making and ending connections. Three legs (hello, welcome, confirm) prove to both sides
// that the other is alive in the incarnation it names, before anything of an earlier life is given
// up: a replayed hello costs one half-open peer and no connection.
#pragma once

#include "drivers/link/crc32c.hpp"
#include "drivers/link/link.hpp"

namespace viaduct::link {

inline constexpr std::size_t kMaxHalfOpen = 64;
inline constexpr std::uint32_t kFullSizeWelcomes = 16;  // lost in a row: it is their size
inline constexpr Duration kFirstGreetingInterval = std::chrono::milliseconds{1};

// Our side wants the connection. A hello that came before ours is no reason to send none: whoever
// sent it may be dead, and another life of it, which has not, may hear ours.
template <PacketDevice D>
void Link<D>::greet(Peer* p, Time now) {
  p->wanted = true;
  if (p->state == PeerState::fresh) p->state = PeerState::greeting;
  p->last_heard = now;  // the start: a handshake that takes longer than dead_after has failed
  p->greetings = 0;
  repeat_later(p, now);
  send_handshake(p, FrameType::hello, false, 0);
}

// A hello or a welcome goes, and again if nothing comes of it.
template <PacketDevice D>
void Link<D>::repeat_later(Peer* p, Time now) {
  const auto doublings = std::min(p->greetings++, 5u);
  p->greeted_at = now;
  p->handshake_at = now + kFirstGreetingInterval * (1u << doublings);
  timers_.set_no_later(p, p->handshake_at);
}

template <PacketDevice D>
void Link<D>::send_welcome(Peer* p, Time now) {
  const bool full_size = p->greetings < kFullSizeWelcomes || p->up();
  if (!p->up()) repeat_later(p, now);
  send_handshake(p, FrameType::welcome, full_size, full_size ? 0 : kHandshakePathMtu);
}

template <PacketDevice D>
void Link<D>::send_handshake(Peer* p, FrameType type, bool full_size, std::uint8_t flags) {
  Frame* f = new_control_frame();
  if (!f) return;
  const std::size_t length =
      full_size ? std::max(p->payload_capacity(), sizeof(Handshake)) : sizeof(Handshake);
  D::set_length(f, kFrameHeader + length);
  Handshake body{};
  body.job_key = config_.job_key;
  body.incarnation = config_.incarnation;
  FrameHeader route = p->outgoing;
  std::uint32_t sum = p->outgoing_sum;
  if (type == FrameType::hello) {  // to whatever life there is
    route.connection = 0;
    route.token = 0;
    sum = route_checksum(route, 0);
  } else {
    body.echo = p->incarnation;
  }
  body.connection = p->incoming.connection;
  body.token = p->incoming.token;
  body.seed = p->seed;
  for (std::size_t lane = 0; lane < kLanes; ++lane) {
    body.sequence[lane] = p->send[lane].first_sequence();
    body.window[lane] = static_cast<std::uint16_t>(p->receive[lane].base_window());
  }
  body.mtu = static_cast<std::uint16_t>(std::min<std::size_t>(device_.mtu(), UINT16_MAX));
  body.flags = static_cast<std::uint8_t>(flags | (config_.checksum ? 0 : kHandshakeNoChecksum));
  std::byte* payload = D::bytes(f) + kFrameHeader;
  std::memset(payload, 0, length);
  std::memcpy(payload, &body, sizeof(body));
  write_header(D::bytes(f), route, {type, 0, static_cast<std::uint16_t>(length)},
               crc32c(payload, length, sum));
  stage(f);
  D::release(f);
  flush();
}

template <PacketDevice D>
void Link<D>::send_goodbye(Peer* p) {
  Frame* f = new_control_frame();
  if (!f) return;
  write_header(D::bytes(f), p->outgoing, {FrameType::goodbye, 0, 0}, p->outgoing_sum);
  stage(f);
  D::release(f);
}

template <PacketDevice D>
void Link<D>::receive_handshake(Peer* p, FrameType type, const FrameHeader& header,
                                std::span<const std::byte> payload, Time now) {
  Handshake body;
  if (payload.size() < sizeof(body)) return drop(Counter::drop_length);
  std::memcpy(&body, payload.data(), sizeof(body));
  if (body.job_key != config_.job_key) return drop(Counter::drop_job);
  bool possible = body.incarnation != 0 && body.connection != 0 && body.mtu >= kMinMtu;
  for (std::size_t lane = 0; lane < kLanes; ++lane)
    possible = possible && body.window[lane] <= kMaxWindow;
  if (!possible) return drop(Counter::drop_handshake);

  if (type == FrameType::hello) {
    Address from;
    std::memcpy(from.bytes.data(), header.from, 6);
    if ((from.bytes[0] & 1) != 0 || from == device_.address() || header.connection != 0)
      return drop(Counter::drop_handshake);
    return receive_hello(from, body, now);
  }
  if (body.echo != config_.incarnation) return drop(Counter::drop_incarnation);
  if (type == FrameType::welcome) return receive_welcome(p, body, now);
  if (p->incarnation != body.incarnation) return drop(Counter::drop_incarnation);
  if (p->state == PeerState::answering) bring_up(p, now);
}

template <PacketDevice D>
void Link<D>::receive_hello(const Address& from, const Handshake& hello, Time now) {
  const auto same_life = [&hello](const Peer* p) {
    return p->incarnation == hello.incarnation && p->outgoing.connection == hello.connection &&
           p->outgoing.token == hello.token;
  };
  const auto known = by_address_.find(address_key(from));
  Peer* p = known == by_address_.end() ? nullptr : peers_[known->second].get();
  Peer* mapped = p;
  if (p && p->up() && !same_life(p)) {  // a later life of a peer that is up, or a replay
    Peer* next = find(p->successor);
    if (next && !same_life(next)) {
      destroy(next);
      next = nullptr;
    }
    p = next;
  }
  if (!p) {
    p = answer(from, hello);
    if (!p) return drop(Counter::drop_peers_full);
    p->last_heard = now;
    if (mapped)
      mapped->successor = p->id;
    else
      by_address_[address_key(from)] = p->id.value & 0xffff;
  } else if (!p->up()) {
    if (p->state != PeerState::answering || !same_life(p)) {
      if (p->state == PeerState::answering) draw_token(p);  // the earlier life may have heard ours
      p->last_heard = now;
      p->greetings = 0;
      learn(p, hello);
      p->state = PeerState::answering;
    }
  }
  send_welcome(p, now);
}

// A peer made by somebody else's hello.
template <PacketDevice D>
auto Link<D>::answer(const Address& from, const Handshake& hello) -> Peer* {
  if (half_open_ >= kMaxHalfOpen) return nullptr;
  Peer* p = create(from);
  if (!p) return nullptr;
  p->never_owned = true;
  ++half_open_;
  learn(p, hello);
  p->state = PeerState::answering;
  return p;
}

template <PacketDevice D>
void Link<D>::learn(Peer* p, const Handshake& theirs) {
  p->incarnation = theirs.incarnation;
  p->outgoing.connection = theirs.connection;
  p->outgoing.token = theirs.token;
  p->outgoing_sum = route_checksum(p->outgoing, theirs.seed);
  p->checksum = config_.checksum || (theirs.flags & kHandshakeNoChecksum) == 0;
  p->mtu = static_cast<std::uint16_t>(std::min<std::size_t>(device_.mtu(), theirs.mtu));
  for (std::size_t lane = 0; lane < kLanes; ++lane) {
    p->send[lane].grant(theirs.window[lane]);
    p->receive[lane].start(theirs.sequence[lane], p->receive[lane].base_window());
  }
}

template <PacketDevice D>
void Link<D>::receive_welcome(Peer* p, const Handshake& welcome, Time now) {
  switch (p->state) {
    case PeerState::fresh:
    case PeerState::leaving: return drop(Counter::drop_state);
    case PeerState::up:
      if (p->incarnation != welcome.incarnation) return drop(Counter::drop_incarnation);
      break;  // our confirm was lost
    case PeerState::greeting:
    case PeerState::answering:
      if ((welcome.flags & kHandshakePathMtu) != 0) return forget(p, DownReason::path_mtu);
      // When hellos have crossed there is no telling which of our frames it answers.
      if (p->state == PeerState::greeting && p->greetings == 1) p->rtt.sample(now - p->greeted_at);
      learn(p, welcome);
      break;
  }
  send_handshake(p, FrameType::confirm, true, 0);
  if (!p->up()) bring_up(p, now);
}

template <PacketDevice D>
void Link<D>::bring_up(Peer* p, Time now) {
  if (p->never_owned) {
    p->never_owned = false;
    --half_open_;
  }
  const std::uint32_t slot = p->id.value & 0xffff;
  const auto known = by_address_.try_emplace(address_key(p->address), slot).first;
  Peer* const earlier = known->second == slot ? nullptr : peers_[known->second].get();
  known->second = slot;
  p->state = PeerState::up;
  p->last_heard = p->asked_at = now;
  // What has been waiting was summed before the route was known.
  for (Send& flow : p->send)
    flow.for_each_waiting([&](Frame* f) {
      D::meta(f).tx.sum =
          crc32c(D::bytes(f) + kFrameHeader, D::length(f) - kFrameHeader, p->outgoing_sum);
    });
  timers_.set_no_later(p, next_deadline(p));
  pumping_.add(p);
  if (earlier) {  // whoever connects anew because of this finds the new life
    earlier->successor = PeerId{};
    forget(earlier, DownReason::restarted);
  }
  announce(p);
}

template <PacketDevice D>
void Link<D>::handshake_timer(Peer* p, Time now) {
  if (p->handshake_at > now) return;
  if (now - p->last_heard >= config_.dead_after) {
    if (p->wanted || p->never_owned) return forget(p, DownReason::refused);
    p->state = PeerState::fresh;  // only named so far: who greeted it has not failed its user
    p->handshake_at = Time::max();
    draw_token(p);
    return;
  }
  if (p->wanted) send_handshake(p, FrameType::hello, false, 0);
  if (p->state == PeerState::answering)
    send_welcome(p, now);
  else
    repeat_later(p, now);
}

}  // namespace viaduct::link
