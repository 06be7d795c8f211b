// Link: the handshake that makes a connection, and the goodbye that ends one. docs/link.md has the
// reasons, docs/wire.md the frames, peer.hpp the states.
//
// A connection request (hello) from an address that has not been proven is answered by a cookie
// (retry). The answer is no longer than the request, and the responder keeps nothing for it, so
// forged addresses can neither fill the connection table nor amplify traffic. The request that
// returns the cookie is padded to the size of frame that the connection is to carry, and so is its
// answer (welcome). Then each side waits for any frame of the connection from the other, and only
// then ends an earlier incarnation: a replayed request costs one half-open peer and no connection.
#pragma once

#include "drivers/base/crc32c.hpp"
#include "drivers/link/link.hpp"

namespace viaduct::link {

// The interval before the first repetition of a hello or welcome; doubles with each repetition.
inline constexpr Duration kFirstHandshakeInterval = std::chrono::milliseconds{1};
// How long a half-open peer is safe from eviction. A requester that exists hears five welcomes
// meanwhile (after 0, 1, 3, 7 and 15 ms).
inline constexpr Duration kHalfOpenGrace = std::chrono::milliseconds{20};
// Path-MTU search. So many padded hellos of one size in a row go unanswered, although the small
// hello just before each was answered: frames of that size do not pass. The next smaller size of
// the table is tried then. The sizes are Ethernet payloads.
inline constexpr std::uint16_t kMaxMtuTries = 8;
inline constexpr std::uint16_t kPathMtus[] = {9000, 4000, 1500, 1400, 1280, kMinMtu};

// Requests the connection for our side, unless that has happened or the connection is up. Sends our
// hello even if the peer's has arrived (state accept_sent): the incarnation that sent that hello
// may be dead, and its successor, which has not sent one, can answer ours.
template <PacketDevice D>
void Link<D>::send_request(Peer* p) {
  if (p->wanted || (p->state != PeerState::fresh && p->state != PeerState::accept_sent)) return;
  p->wanted = true;
  if (p->state == PeerState::fresh) p->state = PeerState::request_sent;
  p->last_heard = now_;  // the handshake begins: after dead_after without success it has failed
  p->handshake_rounds = 0;
  repeat_later(p);
  send_hello(p, 0);
}

// Sets the handshake timer, with exponential back-off. If our side wants the connection, the
// interval grows to 32 ms only, so that a peer which starts late is found soon; else to about a
// second.
template <PacketDevice D>
void Link<D>::repeat_later(Peer* p) {
  const auto doublings = std::min(p->handshake_rounds++, p->wanted ? 5u : 10u);
  p->handshake_sent_at = now_;
  p->handshake_at = now_ + kFirstHandshakeInterval * (1u << doublings);
  timers_.set_no_later(p, p->handshake_at);
}

// `cookie` 0: a small hello, which asks for a cookie. With a cookie: a padded hello. A padded hello
// only follows a retry, so its peer answered just before; if nothing comes of the padded hello, its
// size is the likely reason.
template <PacketDevice D>
void Link<D>::send_hello(Peer* p, std::uint64_t cookie) {
  p->cookie_returned = cookie != 0;
  send_handshake(p, FrameType::hello, cookie != 0 ? p->tried_mtu : 0, cookie);
}

// The answer to a hello with a good cookie. For a peer that is up, the hello is a late duplicate:
// the welcome goes once and sets no timer.
template <PacketDevice D>
void Link<D>::send_welcome(Peer* p) {
  if (!p->up()) repeat_later(p);
  send_handshake(p, FrameType::welcome, p->mtu, 0);
}

// Sends a hello or welcome, at once. `mtu`: the Ethernet payload to pad to; 0: no padding.
template <PacketDevice D>
void Link<D>::send_handshake(Peer* p, FrameType type, std::size_t mtu, std::uint64_t cookie) {
  Handshake body{};
  body.cookie = cookie;
  FrameHeader route = p->outgoing;
  std::uint32_t sum = p->outgoing_sum;
  if (type == FrameType::hello) {  // for whatever incarnation is at the address: no route yet
    route.connection = 0;
    route.token = 0;
    sum = route_checksum(route, 0);
  } else {
    body.echo = p->incarnation;
  }
  body.connection = p->incoming.connection;
  body.token = p->incoming.token;
  body.seed = p->incoming_seed;
  for (const Flow& flow : p->flows) {
    const std::size_t lane = index_of(flow.lane);
    body.sequence[lane] = flow.send.first_sequence();
    body.window[lane] = static_cast<std::uint16_t>(flow.receive.base_window());
  }
  body.mtu = static_cast<std::uint16_t>(mtu);
  enqueue_handshake(route, type, body, mtu, sum);
  flush();
}

// The answer to a hello whose address is not proven, and (cookie 0) to one for which there is no
// room. The frame uses the route and seed that the hello names; the link keeps nothing. There is no
// flush: under a flood of requests these answers leave in bursts, at the end of the poll.
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
  enqueue_handshake(route, FrameType::retry, body, 0, route_checksum(route, hello.seed));
  counters_.add(Counter::retries_sent);
}

// Completes a handshake frame and lines it up for the device. Without a free frame nothing is sent:
// the requester's timer repeats the handshake. `sum`: the route's checksum so far. Handshakes
// always have a checksum, because neither side knows yet whether the other does without.
template <PacketDevice D>
void Link<D>::enqueue_handshake(const FrameHeader& route, FrameType type, Handshake body,
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

// Best effort: a goodbye is sent once and never acknowledged. A peer that misses it finds out by
// its keepalives.
template <PacketDevice D>
void Link<D>::send_goodbye(Peer* p) {
  Frame* f = new_control_frame();
  if (!f) return;
  write_header(D::bytes(f), p->outgoing, {FrameType::goodbye, 0, 0}, p->outgoing_sum);
  enqueue_tx(f);
  D::release(f);
}

// Checks a handshake frame and passes it on. `p`: the connection that the frame's route names;
// nullptr for most hellos.
template <PacketDevice D>
void Link<D>::receive_handshake(Peer* p, FrameType type, const FrameHeader& header,
                                std::span<const std::byte> payload) {
  Handshake body;
  if (payload.size() < sizeof(body)) return drop(Counter::drop_length);
  std::memcpy(&body, payload.data(), sizeof(body));
  if (body.job_key != config_.job_key) return drop(Counter::drop_job);
  bool possible = body.incarnation != 0 && body.mtu >= kMinMtu &&
                  (body.connection != 0 || type == FrameType::retry);
  for (std::size_t lane = 0; lane < kLanes; ++lane)
    possible = possible && body.window[lane] <= kMaxWindow;
  // A padded frame must be as long as the MTU that it claims has passed.
  const bool padded = type == FrameType::welcome || (type == FrameType::hello && body.cookie != 0);
  if (padded && payload.size() + kLinkHeader < body.mtu) possible = false;
  if (!possible) return drop(Counter::drop_handshake);

  if (type == FrameType::hello) {
    // The source must be a single host's address (no group bit), and not ours.
    if ((header.from[0] & 1) != 0 || header.connection != 0 ||
        std::memcmp(header.from, header.to, sizeof header.to) == 0)
      return drop(Counter::drop_handshake);
    return receive_hello(header, body);
  }
  // Retry and welcome must answer our present incarnation, not an earlier one of this address.
  if (body.echo != config_.incarnation) return drop(Counter::drop_incarnation);
  if (type == FrameType::welcome) return receive_welcome(p, body);
  receive_retry(p, body);
}

template <PacketDevice D>
void Link<D>::receive_hello(const FrameHeader& header, const Handshake& hello) {
  Address from;
  std::memcpy(from.bytes.data(), header.from, from.bytes.size());
  if (!cookies_.is_valid(hello.cookie, from, hello.incarnation, now_))
    return send_retry(header, hello, cookies_.make(from, hello.incarnation, now_));
  if (Peer* p = accept(from, hello)) return send_welcome(p);
  // The address is proven, so an answer cannot be misdirected: cookie 0 says "no room".
  drop(Counter::drop_peers_full);
  send_retry(header, hello, 0);
}

// The Peer for a hello whose address is proven, made if need be; nullptr: no room. The hello may
// repeat one that was accepted (same incarnation), come from a new incarnation, or be a replay of
// an earlier incarnation's. A peer that is up therefore stays up: the other incarnation becomes its
// successor, and takes over only when a frame proves that it is alive (bring_up).
template <PacketDevice D>
auto Link<D>::accept(const Address& from, const Handshake& hello) -> Peer* {
  const auto same_incarnation = [&hello](const Peer* p) {
    return p->incarnation == hello.incarnation && p->outgoing.connection == hello.connection &&
           p->outgoing.token == hello.token;
  };
  const auto known = by_address_.find(address_key(from));
  Peer* p = known == by_address_.end() ? nullptr : peers_[known->second].get();
  const PeerId mapped = p ? p->id : PeerId{};
  if (p && p->up() && !same_incarnation(p)) {
    Peer* next = find(p->successor);
    if (next && !same_incarnation(next)) {  // at most one successor: the latest hello's
      free_peer(next);
      next = nullptr;
    }
    p = next;
  }
  if (!p) {
    p = create_half_open(from);
    if (!p) return nullptr;
    apply_handshake(p, hello);
    p->state = PeerState::accept_sent;
    p->last_heard = now_;
    if (Peer* earlier = find(mapped))
      earlier->successor = p->id;
    else
      by_address_[address_key(from)] = p->id.value & 0xffff;
  } else if (!p->up()) {
    if (!p->nearly_up() || !same_incarnation(p)) {
      // A new token, as the other incarnation may know the old one: its frames must not bring up
      // this connection.
      if (p->nearly_up()) draw_token(p);
      p->last_heard = now_;
      p->handshake_rounds = 0;
      apply_handshake(p, hello);
      p->state = PeerState::accept_sent;
    }
    p->mtu = smaller_mtu(hello.mtu);  // smaller than before if larger frames did not pass
  }
  return p;
}

// A half-open peer for a hello from `from`. If there are too many, the oldest half-open peer is
// evicted, provided that it has had the time an honest requester needs (kHalfOpenGrace). Otherwise
// nullptr: the new requester has to try again.
template <PacketDevice D>
auto Link<D>::create_half_open(const Address& from) -> Peer* {
  Peer* const oldest = half_open_.front();
  const bool full = half_open_count_ == kMaxHalfOpen || !has_slot();
  if (full && (!oldest || now_ - oldest->last_heard < kHalfOpenGrace)) return nullptr;
  if (full) evict(oldest);
  Peer* p = create_peer(from);
  if (!p) return nullptr;
  half_open_.add(p);
  ++half_open_count_;
  return p;
}

// Takes the connection's parameters from the peer's handshake. Not for a peer that is up: this
// resets the receive lanes and the credit.
template <PacketDevice D>
void Link<D>::apply_handshake(Peer* p, const Handshake& theirs) {
  p->incarnation = theirs.incarnation;
  p->outgoing.connection = theirs.connection;
  p->outgoing.token = theirs.token;
  p->outgoing_sum = route_checksum(p->outgoing, theirs.seed);
  p->checksums = config_.checksum || (theirs.flags & kHandshakeNoChecksum) == 0;
  p->mtu = smaller_mtu(theirs.mtu);
  for (Flow& flow : p->flows) {
    const std::size_t lane = index_of(flow.lane);
    flow.send.grant(theirs.window[lane]);
    flow.receive.start(theirs.sequence[lane], flow.receive.base_window());
  }
}

template <PacketDevice D>
void Link<D>::receive_welcome(Peer* p, const Handshake& welcome) {
  switch (p->state) {
    case PeerState::fresh:
    case PeerState::draining: return drop(Counter::drop_state);
    case PeerState::up:  // the ack that should have brought the peer up was lost
      if (p->incarnation != welcome.incarnation) return drop(Counter::drop_incarnation);
      send_ack(p, 0);
      return;
    case PeerState::request_sent:
    case PeerState::accept_sent:
    case PeerState::accept_received:
      apply_handshake(p, welcome);
      p->state = PeerState::accept_received;
      p->mtu_tries = 0;
      // This ack brings the peer up, and its answer our side.
      send_ack(p, kFlagAnswer);
      return;
  }
}

// A retry brings a cookie: answers with a padded hello, and searches for the path MTU on the way.
template <PacketDevice D>
void Link<D>::receive_retry(Peer* p, const Handshake& retry) {
  if (!p->wanted || p->up() || p->state == PeerState::draining) return drop(Counter::drop_state);
  if ((retry.flags & kHandshakeNoRoom) != 0) {
    p->no_room = true;
    p->mtu_tries = 0;  // "no room" answers a padded hello, so that size passes
    return;
  }
  // One padded hello for each small hello: duplicates of a retry must not use up the tries.
  if (p->cookie_returned) return;
  const std::uint16_t largest = smaller_mtu(retry.mtu);
  if (p->tried_mtu == 0) {
    p->tried_mtu = largest;
    // The first sample of the round trip, only if exactly one hello has gone: otherwise the retry
    // may answer either (Karn).
    if (p->state == PeerState::request_sent && p->handshake_rounds == 1)
      p->rtt.sample(now_ - p->handshake_sent_at);
  }
  p->tried_mtu = std::min(p->tried_mtu, largest);
  if (p->mtu_tries == kMaxMtuTries && !lower_path_mtu(p))
    return end_connection(p, DownReason::path_mtu);
  ++p->mtu_tries;
  send_hello(p, retry.cookie);
}

// Goes on to the next smaller size. False: there is none, not even kMinMtu passes.
template <PacketDevice D>
bool Link<D>::lower_path_mtu(Peer* p) {
  for (const std::uint16_t mtu : kPathMtus) {
    if (mtu >= p->tried_mtu) continue;
    p->tried_mtu = mtu;
    p->mtu_tries = 0;
    counters_.add(Counter::path_mtu_lowered);
    return true;
  }
  return false;
}

// The first frame of the connection has arrived: the peer is alive and has our token. From here on
// the connection is up, and ends the incarnation that was up before.
template <PacketDevice D>
void Link<D>::bring_up(Peer* p) {
  remove_half_open(p);
  const std::uint32_t slot = p->id.value & 0xffff;
  const auto known = by_address_.try_emplace(address_key(p->address), slot).first;
  Peer* const earlier = known->second == slot ? nullptr : peers_[known->second].get();
  known->second = slot;
  p->state = PeerState::up;
  p->last_heard = p->probe_sent_at = now_;
  // The checksums of waiting frames begin with the route, which was not known when the messages
  // were written: compute them anew.
  for (Flow& flow : p->flows)
    flow.send.for_each_waiting([&](Frame* f) {
      D::meta(f).tx.sum =
          base::crc32c(D::bytes(f) + kFrameHeader, D::length(f) - kFrameHeader, p->outgoing_sum);
    });
  timers_.set_no_later(p, next_deadline(p));
  pending_.add(p);
  // by_address_ names the new incarnation already, so a handler that reacts to the loss by sending
  // to the address again reaches the new incarnation.
  if (earlier) {
    earlier->successor = PeerId{};
    end_connection(earlier, DownReason::restarted);
  }
  report_up(p);
}

// The peer is not up and its timer has run out: gives the handshake up, or repeats it.
template <PacketDevice D>
void Link<D>::handshake_timer(Peer* p) {
  if (p->handshake_at > now_) return;
  const Duration patience =
      p->wanted ? config_.dead_after : std::min(config_.half_open_for, config_.dead_after);
  if (now_ - p->last_heard >= patience) {
    if (p->wanted || p->half_open())
      return end_connection(p, p->no_room ? DownReason::no_room : DownReason::refused);
    // Our side has named the peer but asked for nothing, so there is no failure to report: the
    // PeerId stays valid, and only the other side's unfinished request is forgotten.
    p->state = PeerState::fresh;
    p->handshake_at = Time::max();
    draw_token(p);
    return;
  }
  // Always a small hello: a fresh retry proves that the peer still answers, and brings a cookie
  // that has not expired.
  if (p->wanted) send_hello(p, 0);
  if (p->state == PeerState::accept_sent)
    send_welcome(p);
  else
    repeat_later(p);
}

}  // namespace viaduct::link
