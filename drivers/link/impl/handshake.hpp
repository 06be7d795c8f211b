// Link: making and ending connections. A request (hello) from an address that has not been proven
// is answered by a cookie (retry), no larger than it and without keeping anything. The request that
// returns the cookie is padded to the size of frame that the connection is to carry, and so is its
// answer (welcome). Then each side waits for any frame of the connection from the other, and only
// then gives up what it has of an earlier life: a replayed request costs one half-open peer and no
// connection. docs/link.md has the reasons.
#pragma once

#include "drivers/base/crc32c.hpp"
#include "drivers/link/link.hpp"

namespace viaduct::link {

inline constexpr Duration kFirstGreetingInterval = std::chrono::milliseconds{1};
// In which a half-open peer hears five welcomes, if it is there.
inline constexpr Duration kHalfOpenGrace = std::chrono::milliseconds{20};
// Requests of one size that go unanswered while those without a cookie are answered: it is their
// size. Then the next smaller one of these is tried.
inline constexpr std::uint16_t kProbesOfASize = 8;
inline constexpr std::uint16_t kPathMtus[] = {9000, 4000, 1500, 1400, 1280, kMinMtu};

// Our side wants the connection. A hello that came before ours is no reason to send none: whoever
// sent it may be dead, and another life of it, which has not, may hear ours.
template <PacketDevice D>
void Link<D>::greet(Peer* p, Time now) {
  p->wanted = true;
  if (p->state == PeerState::fresh) p->state = PeerState::greeting;
  p->last_heard = now;  // the start: a handshake that takes longer than dead_after has failed
  p->greetings = 0;
  repeat_later(p, now);
  send_hello(p, 0);
}

// A hello or a welcome goes, and again if nothing comes of it: at least every 32 ms if our side
// wants the connection.
template <PacketDevice D>
void Link<D>::repeat_later(Peer* p, Time now) {
  const auto doublings = std::min(p->greetings++, p->wanted ? 5u : 10u);
  p->greeted_at = now;
  p->handshake_at = now + kFirstGreetingInterval * (1u << doublings);
  timers_.set_no_later(p, p->handshake_at);
}

// Without a cookie it is small, and asks for one; so each one with a cookie is sent to a peer that
// answered just before.
template <PacketDevice D>
void Link<D>::send_hello(Peer* p, std::uint64_t cookie) {
  p->tried = cookie != 0;
  send_handshake(p, FrameType::hello, cookie != 0 ? p->probed_mtu : 0, cookie);
}

template <PacketDevice D>
void Link<D>::send_welcome(Peer* p, Time now) {
  if (!p->up()) repeat_later(p, now);
  send_handshake(p, FrameType::welcome, p->mtu, 0);
}

// `mtu`: padded to that size; 0: not padded.
template <PacketDevice D>
void Link<D>::send_handshake(Peer* p, FrameType type, std::size_t mtu, std::uint64_t cookie) {
  Handshake body{};
  body.cookie = cookie;
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
  body.mtu = static_cast<std::uint16_t>(mtu);
  stage_handshake(route, type, body, mtu, sum);
  flush();
}

// To an address that is not proven. Such answers leave together at the end of a poll.
template <PacketDevice D>
void Link<D>::send_retry(const FrameHeader& header, const Handshake& hello, std::uint64_t cookie) {
  FrameHeader route = header;
  std::memcpy(route.to, header.from, sizeof route.to);
  std::memcpy(route.from, header.to, sizeof route.from);
  route.connection = hello.connection;
  route.token = hello.token;
  Handshake body{};
  body.echo = hello.incarnation;
  body.cookie = cookie;
  body.flags = cookie == 0 ? kHandshakeNoRoom : 0;
  stage_handshake(route, FrameType::retry, body, 0, route_checksum(route, hello.seed));
  counters_.add(Counter::retries_sent);
}

template <PacketDevice D>
void Link<D>::stage_handshake(const FrameHeader& route, FrameType type, Handshake body,
                              std::size_t mtu, std::uint32_t sum) {
  Frame* f = new_control_frame();
  if (!f) return;
  const std::size_t length = mtu != 0 ? mtu - kLinkHeader : sizeof body;
  D::set_length(f, kFrameHeader + length);
  body.job_key = config_.job_key;
  body.incarnation = config_.incarnation;
  if (mtu == 0) body.mtu = own_mtu();
  if (!config_.checksum) body.flags |= kHandshakeNoChecksum;
  std::byte* payload = D::bytes(f) + kFrameHeader;
  std::memset(payload, 0, length);
  std::memcpy(payload, &body, sizeof body);
  write_header(D::bytes(f), route, {type, 0, static_cast<std::uint16_t>(length)},
               base::crc32c(payload, length, sum));
  enqueue_tx(f);
  D::release(f);
}

template <PacketDevice D>
void Link<D>::send_goodbye(Peer* p) {
  Frame* f = new_control_frame();
  if (!f) return;
  write_header(D::bytes(f), p->outgoing, {FrameType::goodbye, 0, 0}, p->outgoing_sum);
  enqueue_tx(f);
  D::release(f);
}

template <PacketDevice D>
void Link<D>::receive_handshake(Peer* p, FrameType type, const FrameHeader& header,
                                std::span<const std::byte> payload, Time now) {
  Handshake body;
  if (payload.size() < sizeof(body)) return drop(Counter::drop_length);
  std::memcpy(&body, payload.data(), sizeof(body));
  if (body.job_key != config_.job_key) return drop(Counter::drop_job);
  bool possible = body.incarnation != 0 && body.mtu >= kMinMtu &&
                  (body.connection != 0 || type == FrameType::retry);
  for (std::size_t lane = 0; lane < kLanes; ++lane)
    possible = possible && body.window[lane] <= kMaxWindow;
  // A connection is for frames of the size that has passed.
  const bool padded = type == FrameType::welcome || (type == FrameType::hello && body.cookie != 0);
  if (padded && payload.size() + kLinkHeader < body.mtu) possible = false;
  if (!possible) return drop(Counter::drop_handshake);

  if (type == FrameType::hello) {
    if ((header.from[0] & 1) != 0 || header.connection != 0 ||
        std::memcmp(header.from, header.to, sizeof header.to) == 0)
      return drop(Counter::drop_handshake);
    return receive_hello(header, body, now);
  }
  if (body.echo != config_.incarnation) return drop(Counter::drop_incarnation);
  if (type == FrameType::welcome) return receive_welcome(p, body, now);
  receive_retry(p, body, now);
}

template <PacketDevice D>
void Link<D>::receive_hello(const FrameHeader& header, const Handshake& hello, Time now) {
  Address from;
  std::memcpy(from.bytes.data(), header.from, from.bytes.size());
  if (!cookies_.good(hello.cookie, from, hello.incarnation, now))
    return send_retry(header, hello, cookies_.make(from, hello.incarnation, now));
  if (Peer* p = accept(from, hello, now)) return send_welcome(p, now);
  drop(Counter::drop_peers_full);
  send_retry(header, hello, 0);
}

// The peer that says so and whose address is proven; nullptr: no room.
template <PacketDevice D>
auto Link<D>::accept(const Address& from, const Handshake& hello, Time now) -> Peer* {
  const auto same_life = [&hello](const Peer* p) {
    return p->incarnation == hello.incarnation && p->outgoing.connection == hello.connection &&
           p->outgoing.token == hello.token;
  };
  const auto known = by_address_.find(address_key(from));
  Peer* p = known == by_address_.end() ? nullptr : peers_[known->second].get();
  const PeerId mapped = p ? p->id : PeerId{};
  if (p && p->up() && !same_life(p)) {  // a later life of a peer that is up, or a replay
    Peer* next = find(p->successor);
    if (next && !same_life(next)) {
      destroy(next);
      next = nullptr;
    }
    p = next;
  }
  if (!p) {
    p = open_half(from, now);
    if (!p) return nullptr;
    learn(p, hello);
    p->state = PeerState::answering;
    p->last_heard = now;
    if (Peer* earlier = find(mapped))
      earlier->successor = p->id;
    else
      by_address_[address_key(from)] = p->id.value & 0xffff;
  } else if (!p->up()) {
    if (!p->nearly_up() || !same_life(p)) {
      if (p->nearly_up()) draw_token(p);  // the earlier life may have heard ours
      p->last_heard = now;
      p->greetings = 0;
      learn(p, hello);
      p->state = PeerState::answering;
    }
    p->mtu = smaller_mtu(hello.mtu);  // it may have found that larger frames do not pass
  }
  return p;
}

// A peer made by somebody else's hello, if need be instead of one that has been waited for in vain.
// nullptr: none of them has had the time that an honest one takes, and the new one has to try
// again.
template <PacketDevice D>
auto Link<D>::open_half(const Address& from, Time now) -> Peer* {
  Peer* const oldest = half_open_.front();
  const bool full = half_open_count_ == kMaxHalfOpen || !has_slot();
  if (full && (!oldest || now - oldest->last_heard < kHalfOpenGrace)) return nullptr;
  if (full) evict(oldest);
  Peer* p = create(from);
  if (!p) return nullptr;
  half_open_.add(p);
  ++half_open_count_;
  return p;
}

template <PacketDevice D>
void Link<D>::learn(Peer* p, const Handshake& theirs) {
  p->incarnation = theirs.incarnation;
  p->outgoing.connection = theirs.connection;
  p->outgoing.token = theirs.token;
  p->outgoing_sum = route_checksum(p->outgoing, theirs.seed);
  p->checksum = config_.checksum || (theirs.flags & kHandshakeNoChecksum) == 0;
  p->mtu = smaller_mtu(theirs.mtu);
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
    case PeerState::up:  // and what told it so was lost
      if (p->incarnation != welcome.incarnation) return drop(Counter::drop_incarnation);
      send_ack(p, 0, now);
      return;
    case PeerState::greeting:
    case PeerState::answering:
    case PeerState::confirming:
      learn(p, welcome);
      p->state = PeerState::confirming;
      p->probes = 0;
      send_ack(p, kFlagAnswer, now);
      return;
  }
}

template <PacketDevice D>
void Link<D>::receive_retry(Peer* p, const Handshake& retry, Time now) {
  if (!p->wanted || p->up()) return drop(Counter::drop_state);
  if ((retry.flags & kHandshakeNoRoom) != 0) {
    p->no_room = true;
    p->probes = 0;  // that size has got through
    return;
  }
  if (p->tried) return;  // until the timer asks again
  const std::uint16_t largest = smaller_mtu(retry.mtu);
  if (p->probed_mtu == 0) {
    p->probed_mtu = largest;
    // When hellos have crossed there is no telling which of our frames it answers.
    if (p->state == PeerState::greeting && p->greetings == 1) p->rtt.sample(now - p->greeted_at);
  }
  p->probed_mtu = std::min(p->probed_mtu, largest);
  if (p->probes == kProbesOfASize && !lower_path_mtu(p)) return forget(p, DownReason::path_mtu);
  ++p->probes;
  send_hello(p, retry.cookie);
}

// False: not even the least size gets through.
template <PacketDevice D>
bool Link<D>::lower_path_mtu(Peer* p) {
  for (const std::uint16_t mtu : kPathMtus) {
    if (mtu >= p->probed_mtu) continue;
    p->probed_mtu = mtu;
    p->probes = 0;
    counters_.add(Counter::path_mtu_lowered);
    return true;
  }
  return false;
}

template <PacketDevice D>
void Link<D>::bring_up(Peer* p, Time now) {
  adopt(p);
  const std::uint32_t slot = p->id.value & 0xffff;
  const auto known = by_address_.try_emplace(address_key(p->address), slot).first;
  Peer* const earlier = known->second == slot ? nullptr : peers_[known->second].get();
  known->second = slot;
  p->state = PeerState::up;
  p->last_heard = p->probe_sent_at = now;
  // What has been waiting was summed before the route was known.
  for (Send& flow : p->send)
    flow.for_each_waiting([&](Frame* f) {
      D::meta(f).tx.sum =
          base::crc32c(D::bytes(f) + kFrameHeader, D::length(f) - kFrameHeader, p->outgoing_sum);
    });
  timers_.set_no_later(p, next_deadline(p));
  pending_.add(p);
  if (earlier) {  // whoever connects anew because of this finds the new life
    earlier->successor = PeerId{};
    forget(earlier, DownReason::restarted);
  }
  announce(p);
}

template <PacketDevice D>
void Link<D>::handshake_timer(Peer* p, Time now) {
  if (p->handshake_at > now) return;
  const Duration patience =
      p->wanted ? config_.dead_after : std::min(config_.half_open_for, config_.dead_after);
  if (now - p->last_heard >= patience) {
    if (p->wanted || p->half_open())
      return forget(p, p->no_room ? DownReason::no_room : DownReason::refused);
    p->state = PeerState::fresh;  // only named so far: who greeted it has not failed its user
    p->handshake_at = Time::max();
    draw_token(p);
    return;
  }
  if (p->wanted) send_hello(p, 0);
  if (p->state == PeerState::answering)
    send_welcome(p, now);
  else
    repeat_later(p, now);
}

}  // namespace viaduct::link
