// Link: the connection table. Construction and destruction of the link, making a Peer for an
// address, ending a Peer (stop_sending, release_address, on_goodbye, end_connection, free_peer),
// and the plain queries about peers. How a connection comes up is in handshake.hpp.
#pragma once

#include <algorithm>

#include "drivers/link/link.hpp"

namespace viaduct::link {

template <PacketDevice D>
Link<D>::Link(D& device, const LinkConfig& config)
    : device_(device), config_(config), random_(config.seed) {
  if (config.max_peers == 0 || config.max_peers > 0xffff)
    throw SetupError("LinkConfig::max_peers must be 1 to 65535.");
  if (config.max_window == 0 || config.max_window > kMaxWindow ||
      config.idle_window > config.max_window)
    throw SetupError("LinkConfig::max_window must be 1 to " + std::to_string(kMaxWindow) +
                     " and idle_window no larger (see VIADUCT_MAX_WINDOW).");
  if (device.mtu() < kMinMtu)
    throw SetupError("The port's MTU is " + std::to_string(device.mtu()) + "; at least " +
                     std::to_string(kMinMtu) + " is needed: raise it with `ip link set DEV mtu`.");
  while (config_.incarnation == 0) config_.incarnation = random_.next();
  if (config_.dead_after < std::chrono::milliseconds{1})
    throw SetupError("LinkConfig::dead_after must be a millisecond or more.");

  // All credit together must fit the receive ring, so that no number of peers overruns the ring. A
  // quarter of the ring stays free for ack frames and handshakes, which need no credit; the bulk
  // lane gets half of the rest, high and low a quarter each.
  const auto ring = static_cast<std::uint32_t>(device.receive_capacity());
  credit_[0].capacity = credit_[1].capacity = std::max(ring * 3 / 16, 1u);
  credit_[2].capacity = std::max(ring * 3 / 8, 1u);
  // Sending must leave the pool enough frames to fill the receive ring (one capacity) and to hold
  // what the lanes have received (another). Lower lanes stop allocating earlier, so that they
  // cannot take the last frames from higher lanes.
  const std::size_t reserved = 2 * device.receive_capacity();
  const std::size_t sending =
      device.pool_size() > reserved + 64 ? device.pool_size() - reserved : 64;
  sending_limit_ = {sending, sending * 3 / 4, sending / 2};
}

template <PacketDevice D>
Link<D>::~Link() {
  for (auto& p : peers_)
    if (p && p->up()) send_goodbye(p.get());
  flush();
  while (tx_burst_size_ != 0) D::release(tx_burst_[--tx_burst_size_]);
  while (delivered_count_ != 0) D::release(delivered_[--delivered_count_].frame);
  for (auto& p : peers_)
    if (p) free_peer(p.get());
}

template <PacketDevice D>
void Link<D>::attach(Protocol protocol, ReceiveHandler* sink) {
  sinks_[static_cast<std::size_t>(protocol)] = sink;
}

template <PacketDevice D>
PeerId Link<D>::peer(const Address& address) {
  if (address == device_.address()) return {};
  if (const auto known = by_address_.find(address_key(address)); known != by_address_.end()) {
    Peer* p = peers_[known->second].get();
    remove_half_open(p);  // the peer may be half-open, connecting to us just now
    return p->id;
  }
  // A peer that our side names is worth more than an unknown peer's unfinished request.
  if (!has_slot() && half_open_.front()) evict(half_open_.front());
  Peer* p = create_peer(address);
  if (!p) return {};
  by_address_[address_key(address)] = p->id.value & 0xffff;
  return p->id;
}

// Takes the peer out of the half-open ones: our side has named the peer, or the connection is up,
// or the peer ends. A half-open peer may be evicted and ends unreported; any other peer may not.
template <PacketDevice D>
void Link<D>::remove_half_open(Peer* p) {
  if (!p->half_open()) return;
  half_open_.remove(p);
  --half_open_count_;
}

// Gives up a half-open peer for a newer request, or for a peer that our side names.
// end_connection() does not report half-open peers, so no handler sees the reason.
template <PacketDevice D>
void Link<D>::evict(Peer* half_open) {
  counters_.add(Counter::half_open_evicted);
  end_connection(half_open, DownReason::refused);
}

// A peer in a free slot, in state fresh, with a new PeerId and token; nullptr: the table is full.
// The caller enters the peer into by_address_ or as a successor.
template <PacketDevice D>
auto Link<D>::create_peer(const Address& address) -> Peer* {
  std::uint32_t slot;
  if (!free_slots_.empty()) {
    slot = free_slots_.back();
    free_slots_.pop_back();
  } else {
    if (!has_slot()) return nullptr;
    slot = static_cast<std::uint32_t>(peers_.size());
    peers_.emplace_back();
    generations_.push_back(static_cast<std::uint16_t>(random_.next()));
    peer_counters_.emplace_back();
    timers_.reserve(peers_.capacity());  // so that the data path never makes the heap grow
  }
  peers_[slot] = std::make_unique<Peer>();
  Peer* p = peers_[slot].get();
  if (++generations_[slot] == 0) generations_[slot] = 1;  // 0 in slot 0 would be PeerId{}
  peer_counters_[slot] = {};
  p->id = PeerId{static_cast<std::uint32_t>(generations_[slot]) << 16 | slot};
  p->address = address;
  const Address own = device_.address();
  std::memcpy(p->outgoing.to, address.bytes.data(), 6);
  std::memcpy(p->outgoing.from, own.bytes.data(), 6);
  std::memcpy(p->incoming.to, own.bytes.data(), 6);
  std::memcpy(p->incoming.from, address.bytes.data(), 6);
  p->outgoing.ether_type = p->incoming.ether_type = kEtherType;
  p->incoming.connection = static_cast<std::uint16_t>(slot + 1);
  draw_token(p);
  for (Flow& flow : p->flows) {
    flow.send.start(config_.first_sequence.value_or(static_cast<std::uint32_t>(random_.next())));
    // Half of the lane's credit may be granted for good, as base windows; later peers start without
    // credit and must ask. Leases do not count against that half, because leased credit comes back.
    CreditPool& pool = credit_[index_of(flow.lane)];
    const bool plenty = pool.base_granted + config_.idle_window <= pool.capacity / 2 &&
                        pool.granted + config_.idle_window <= pool.capacity;
    flow.receive.start(0, plenty ? config_.idle_window : 0);
    pool.base_granted += flow.receive.base_window();
    pool.granted += flow.receive.window();
  }
  return p;
}

// Gives the connection a new token and seed. Frames with the earlier token are from then on dropped
// (drop_token).
template <PacketDevice D>
void Link<D>::draw_token(Peer* p) {
  const std::uint64_t secrets = secrets_.next();
  p->incoming.token = static_cast<std::uint32_t>(secrets);
  p->incoming_seed = static_cast<std::uint32_t>(secrets >> 32);
  p->incoming_sum = route_checksum(p->incoming, p->incoming_seed);
}

// Stops all sending to the peer: frees its frames in backlog and in flight, and takes the peer out
// of the lists and the timers that could send. Frames that a handler has still to take stay
// (stalled_).
template <PacketDevice D>
void Link<D>::stop_sending(Peer* p) {
  for (Flow& flow : p->flows) flow.send.clear([this](Frame* f) { release_sent(f); });
  pending_.remove(p);
  acking_.remove(p);
  credit_waiters_.remove(p);
  // The frames themselves are freed with the next poll (finish_delivered).
  for (std::uint16_t i = 0; i < delivered_count_; ++i)
    if (Flow*& flow = delivered_[i].flow; flow && &flow->peer == p) flow = nullptr;
  timers_.remove(p);
}

// Frees the peer, everything it holds and its slot, and returns its credit to the pools. Reports
// nothing, and leaves by_address_ alone: see end_connection().
template <PacketDevice D>
void Link<D>::free_peer(Peer* p) {
  stop_sending(p);
  stalled_.remove(p);
  for (Flow& flow : p->flows) {
    flow.receive.clear([](Frame* f) { D::release(f); });
    CreditPool& pool = credit_[index_of(flow.lane)];
    pool.base_granted -= flow.receive.base_window();
    pool.granted -= flow.receive.window();
    if (flow.receive.has_lease()) --pool.lease_holders;
  }
  remove_half_open(p);  // out of the half-open list
  const std::uint32_t slot = p->id.value & 0xffff;
  free_slots_.push_back(slot);
  peers_[slot].reset();
}

// Makes the peer's address free for another incarnation. A successor that is not up yet ends, too:
// its requester repeats the hello and then finds the address free.
template <PacketDevice D>
void Link<D>::release_address(Peer* p) {
  if (Peer* next = find(p->successor)) free_peer(next);
  const auto known = by_address_.find(address_key(p->address));
  if (known != by_address_.end() && known->second == (p->id.value & 0xffff))
    by_address_.erase(known);
}

// The peer has said goodbye. If busy handlers have made messages wait, our side has acknowledged
// those messages, so the peer counts on their delivery: offer_stalled() delivers them, and only
// then does the peer end. The address is free meanwhile.
template <PacketDevice D>
void Link<D>::on_goodbye(Peer* p) {
  if (!p->stalled_hook.linked) return end_connection(p, DownReason::left);
  p->state = PeerState::draining;
  stop_sending(p);
  release_address(p);
}

// Ends a peer: frees the peer and reports `reason` to all handlers, unless the peer is half-open.
// `p` is invalid afterwards. The handlers are called last, when the link's state is consistent
// again, because they may call try_send.
template <PacketDevice D>
void Link<D>::end_connection(Peer* p, DownReason reason) {
  const PeerId id = p->id;
  const Address address = p->address;
  const bool tell = !p->half_open();
  release_address(p);
  free_peer(p);
  if (!tell) return;
  counters_.add(Counter::peers_down);
  for (ReceiveHandler* sink : sinks_)
    if (sink) sink->on_peer_down(id, address, reason);
}

// Reports that the connection is up.
template <PacketDevice D>
void Link<D>::report_up(Peer* p) {
  counters_.add(Counter::peers_up);
  for (ReceiveHandler* sink : sinks_)
    if (sink) sink->on_peer_up(p->id, p->address);
}

template <PacketDevice D>
void Link<D>::connect(PeerId id, Time now) {
  const CallTime call(*this, now);
  if (Peer* p = find(id)) send_request(p);
}

template <PacketDevice D>
void Link<D>::disconnect(PeerId id, Time) {
  Peer* p = find(id);
  if (!p) return;
  if (p->up()) {
    send_goodbye(p);
    flush();
  }
  end_connection(p, DownReason::closed);
}

template <PacketDevice D>
std::size_t Link<D>::max_message(PeerId id) const {
  const Peer* p = find(id);
  return (p && p->up() ? p->payload_capacity() : kMinMtu - kLinkHeader) - kMessageHeader;
}

template <PacketDevice D>
bool Link<D>::connected(PeerId id) const {
  const Peer* p = find(id);
  return p && p->up();
}

template <PacketDevice D>
bool Link<D>::idle(PeerId id) const {
  const Peer* p = find(id);
  if (!p) return true;
  return std::all_of(p->flows.begin(), p->flows.end(),
                     [](const Flow& flow) { return flow.send.empty(); });
}

template <PacketDevice D>
bool Link<D>::idle() const {
  return frames_sending_ == 0;
}

template <PacketDevice D>
PeerView Link<D>::view(PeerId id) const {
  PeerView v;
  const Peer* p = find(id);
  if (!p) return v;
  v.address = p->address;
  v.state = p->state;
  v.answered = p->tried_mtu != 0 || p->no_room || p->up();
  v.no_room = p->no_room;
  v.mtu = p->mtu;
  v.round_trip = p->rtt.smoothed();
  v.timeout = p->rtt.timeout(config_.min_timeout);
  for (const Flow& flow : p->flows) {
    const Send& s = flow.send;
    const Receive& r = flow.receive;
    v.lanes[index_of(flow.lane)] = {s.backlog(), s.in_flight().size(), s.credit(), r.held().size(),
                                    r.window()};
  }
  return v;
}

template <PacketDevice D>
std::vector<PeerId> Link<D>::peers() const {
  std::vector<PeerId> ids;
  for (const auto& p : peers_)
    if (p) ids.push_back(p->id);
  return ids;
}

template <PacketDevice D>
std::size_t Link<D>::memory_per_peer() const {
  // The peer itself, its counters, its slot, generation and place in the heap, and an estimate of
  // its node in the address map.
  return sizeof(Peer) + sizeof(Counters) + 3 * sizeof(void*) + sizeof(std::uint16_t) +
         6 * sizeof(void*);
}

template <PacketDevice D>
std::size_t Link<D>::frames_held() const {
  std::size_t held = frames_sending_ + tx_burst_size_ + delivered_count_;
  for (const auto& p : peers_)
    if (p)
      for (const Flow& flow : p->flows) held += flow.receive.held().size();
  return held;
}

}  // namespace viaduct::link
