// The protocol of remote DMA: what each call and each message does to a transfer, and when grants,
// data and dones are sent. transfer_table.cpp keeps the transfers, regions.cpp the memory. Niu
// calls on_message() from Link::poll and poll() from Niu::poll.
#include "drivers/startx_emul/rdma.hpp"

#include <algorithm>

#include "drivers/port/port.hpp"
#include "drivers/sim/sim_network.hpp"

namespace viaduct::startx {

namespace {

using link::Incoming;
using link::Lane;
using link::Order;
using link::PeerId;
using link::RxResult;
using link::SendStatus;
using link::Urgency;

// Bytes that one poll sends at most (the last piece may go beyond): long transfers must not keep
// the owner from receiving.
constexpr std::size_t kMaxPollBytes = 64 * 1024;
// Attempts to send that may fail one after the other before a poll leaves the remaining transfers
// to the next poll: with thousands of transfers to peers without credit a poll must stay short.
constexpr std::size_t kMaxFailedSends = 32;

// In the initializer list, so that wrong numbers are refused before tables are made of them.
const RdmaConfig& checked(const RdmaConfig& config) {
  const auto demand = [](bool good, const char* name, std::size_t value, std::size_t most) {
    if (!good)
      throw base::SetupError("StarT-X RDMA cannot work with " + std::string(name) + " = " +
                             std::to_string(value) + ": choose 1 to " + std::to_string(most));
  };
  demand(config.max_posted >= 1 && config.max_posted <= kMaxPosted, "max_posted", config.max_posted,
         kMaxPosted);
  demand(config.max_regions >= 1 && config.max_regions <= kMaxRegions, "max_regions",
         config.max_regions, kMaxRegions);
  demand(config.max_open >= 1 && config.max_open <= config.max_posted, "max_open", config.max_open,
         config.max_posted);
  return config;
}

}  // namespace

template <link::PacketDevice D>
Rdma<D>::Rdma(Link& link, const RdmaConfig& config, Counters& counters)
    : link_(link),
      counters_(counters),
      max_open_(checked(config).max_open),
      regions_(config.max_regions),
      table_(config.max_posted),
      random_(link.config().seed) {}

template <link::PacketDevice D>
bool Rdma<D>::peer_lives(PeerId peer) const {
  // The link has no address for an incarnation of a peer that has ended.
  return peer && link_.view(peer).address != link::Address{};
}

template <link::PacketDevice D>
Started Rdma<D>::start(bool receiving, PeerId peer, std::uint32_t tag, const RegionBytes& bytes,
                       Slot& slot) {
  const auto memory = regions_.resolve(bytes);
  if (!memory) return {RdmaStatus::bad_region, {}};
  slot = table_.add(receiving);
  if (slot == base::kNoSlot) return {RdmaStatus::no_room, {}};
  regions_.use(bytes.region);
  Transfer& t = table_[slot];
  t.peer = peer;
  t.tag = tag;
  t.region = bytes.region;
  t.memory = *memory;
  t.length = bytes.length;
  return {RdmaStatus::ok, table_.id(slot)};
}

template <link::PacketDevice D>
Started Rdma<D>::post(PeerId from, std::uint32_t tag, RegionBytes into) {
  if (from && !peer_lives(from)) return {RdmaStatus::peer_down, {}};
  Slot slot;
  const Started started = start(true, from, tag, into, slot);
  if (started.status != RdmaStatus::ok) return started;
  table_.enter(slot, TransferState::posted);
  // An unexpected request may have waited for this post. match() sends nothing: the next poll does.
  Request request;
  if (table_.take_unexpected(from, tag, request)) match(slot, request);
  return started;
}

template <link::PacketDevice D>
bool Rdma<D>::cancel(TransferId post) {
  const Slot slot = table_.find(post, TransferState::posted);
  if (slot == base::kNoSlot) return false;
  regions_.release(table_[slot].region);
  table_.remove(slot);
  return true;
}

template <link::PacketDevice D>
Started Rdma<D>::request(PeerId to, std::uint32_t tag, RegionBytes from, link::Time now) {
  Slot slot;
  Started started = start(false, to, tag, from, slot);
  if (started.status != RdmaStatus::ok) return started;
  // The request is sent before the transfer is in any list. A request that the link does not take
  // is not kept: the caller tries again, and requests with one tag stay in order.
  const RequestMessage message{started.transfer.value, tag, from.length};
  const SendStatus status =
      link_.try_send(to, Lane::low, Order::ordered, message_type(Kind::rdma_request),
                     bytes_of(message), {}, Urgency::now, now);
  if (status != SendStatus::sent) {
    regions_.release(from.region);
    table_.free(slot);
    return {status == SendStatus::peer_down ? RdmaStatus::peer_down : RdmaStatus::no_room, {}};
  }
  counters_.add(Counter::rdma_requests_sent);
  table_.enter(slot, TransferState::requested);
  return started;
}

template <link::PacketDevice D>
Started Rdma<D>::grant(PeerId to, RegionBytes into, Right& right) {
  if (!peer_lives(to)) return {RdmaStatus::peer_down, {}};
  if (table_.open() >= max_open_) return {RdmaStatus::no_room, {}};
  Slot slot;
  const Started started = start(true, to, 0, into, slot);
  if (started.status != RdmaStatus::ok) return started;
  Transfer& t = table_[slot];
  t.slot = slot;
  t.key = static_cast<std::uint32_t>(random_.next());  // a new one, so earlier rights are void
  right = {t.slot, t.key, t.length};
  table_.enter(slot, TransferState::open);
  return started;
}

template <link::PacketDevice D>
bool Rdma<D>::revoke(TransferId grant) {
  const Slot slot = table_.find(grant, TransferState::open);
  if (slot == base::kNoSlot || table_[slot].by_request) return false;
  regions_.release(table_[slot].region);
  table_.remove(slot);
  open_matched();  // the revoked grant counted against max_open
  return true;
}

template <link::PacketDevice D>
Started Rdma<D>::write(PeerId to, const Right& right, RegionBytes from, link::Time) {
  // `sending` at once: the right is there already, and poll() sends the data.
  if (!peer_lives(to)) return {RdmaStatus::peer_down, {}};
  if (from.length > right.length) return {RdmaStatus::too_long, {}};
  Slot slot;
  const Started started = start(false, to, 0, from, slot);
  if (started.status != RdmaStatus::ok) return started;
  table_[slot].slot = right.slot;
  table_[slot].key = right.key;
  table_.enter(slot, TransferState::sending);
  return started;
}

template <link::PacketDevice D>
bool Rdma<D>::take_completion(Completion& completion) {
  const Slot slot = table_.take_complete();
  Transfer& t = table_[slot];
  completion = {table_.id(slot), t.receiving, t.status, t.peer, t.moved};
  t.taken = true;
  table_.free_if_finished(slot);
  return true;
}

template <link::PacketDevice D>
void Rdma<D>::complete(Slot slot, RdmaStatus status) {
  Transfer& t = table_[slot];
  t.status = status;
  regions_.release(t.region);
  counters_.add(t.receiving ? Counter::rdma_receives_completed : Counter::rdma_sends_completed);
  table_.move(slot, TransferState::complete);
}

// ---- receiving -------------------------------------------------------------------------------

template <link::PacketDevice D>
void Rdma<D>::match(Slot post, const Request& request) {
  Transfer& t = table_[post];
  // Move first, change the peer afterwards. move() finds the list of posts by the transfer as it
  // is, and a post for any peer becomes one for this peer here.
  table_.move(post, TransferState::matched);
  t.peer = request.from;
  t.by_request = true;
  t.peer_transfer_id = request.transfer;
  if (request.length > t.length) {
    complete(post, RdmaStatus::too_long);
    table_.set_pending_control(post, PendingControl::refusal);
    return;
  }
  t.length = request.length;
  open_matched();
}

// With max_open = 1 two peers take turns: a peer's request is granted only when our own transfer to
// that peer is over. Our transfer already has its grant, so it ends without anything that this
// waiting could hold up. Hence the waiting ends as well.
template <link::PacketDevice D>
bool Rdma<D>::defers_grant(const Transfer& t) {
  if (max_open_ > 1) return false;
  for (TransferList* list : {&table_.sending(), &table_.sent()})
    for (Slot s = list->first(); s != base::kNoSlot; s = TransferList::after(table_, s))
      if (table_[s].peer == t.peer) return true;
  return false;
}

// With max_open = 1: both sides had sent a grant before the other's grant came. Then the side with
// the lower Ethernet address sends first. Only the side with the higher address waits, and for data
// that is already under way, so no circle of waiting nodes can close.
template <link::PacketDevice D>
bool Rdma<D>::defers_data(const Transfer& t) {
  if (max_open_ > 1 || table_.open() == 0) return false;
  const Transfer& receiving = table_[table_.first_open()];
  return receiving.by_request && receiving.peer == t.peer &&
         link_.view(t.peer).address < link_.device().address();
}

template <link::PacketDevice D>
void Rdma<D>::open_matched() {
  for (Slot slot = table_.matched().first(); slot != base::kNoSlot && table_.open() < max_open_;) {
    // Before the move, which changes the links. Transfers that must wait are passed over: they do
    // not hold up those of other peers.
    const Slot next = TransferList::after(table_, slot);
    Transfer& t = table_[slot];
    if (!defers_grant(t)) {
      t.slot = slot;
      t.key = static_cast<std::uint32_t>(random_.next());
      table_.move(slot, TransferState::open);
      table_.set_pending_control(slot, PendingControl::grant);
    }
    slot = next;
  }
}

template <link::PacketDevice D>
RxResult Rdma<D>::on_message(const Incoming& message) {
  // The lane is part of the protocol: it keeps grants from waiting behind requests or data. Another
  // lane is an error of the peer's.
  const Kind kind{message.kind};
  const bool data = kind == Kind::rdma_data || kind == Kind::rdma_last;
  const Lane lane = data ? Lane::bulk : kind == Kind::rdma_request ? Lane::low : Lane::high;
  if (message.lane != lane) {
    counters_.add(Counter::drop_lane);
    return RxResult::consumed;
  }
  switch (kind) {
    case Kind::rdma_request: return on_request(message);
    case Kind::rdma_grant: on_grant(message); break;
    case Kind::rdma_refuse: on_refuse(message); break;
    case Kind::rdma_done: on_done(message); break;
    default: return on_data(message);
  }
  return RxResult::consumed;
}

template <link::PacketDevice D>
RxResult Rdma<D>::on_request(const Incoming& message) {
  RequestMessage m;
  if (!read_exactly(message.bytes, m)) {
    counters_.add(Counter::drop_length);
    return RxResult::consumed;
  }
  const Request request{{}, message.from, m.tag, m.transfer, m.length};
  // Busy pushes the request back: the low lane from that peer waits until there is room. Nothing
  // has been changed, because the link offers the same message again.
  const Slot post = table_.find_post(message.from, m.tag);
  if (post == base::kNoSlot && !table_.add_unexpected(request)) {
    counters_.add(Counter::rdma_requests_busy);
    return RxResult::backpressure;
  }
  counters_.add(Counter::rdma_requests_received);
  if (post != base::kNoSlot) {
    match(post, request);
    // The grant leaves now rather than with the next poll.
    send_pending_controls(message.now);
  }
  return RxResult::consumed;
}

// Only the last piece is refused: the sender is then in `sent` and waits for done or refusal,
// whereas earlier it would not look at a refusal. secure() comes before anything is done, so that a
// refusal that cannot be sent leaves the message with the link, which offers it again.
template <link::PacketDevice D>
RxResult Rdma<D>::reject_data(const Incoming& message, const DataHead& head, Counter why) {
  if (message.kind == static_cast<std::uint8_t>(Kind::rdma_last)) {
    if (!link_.secure(message.from, Lane::high)) return RxResult::backpressure;
    link_.try_send(message.from, Lane::high, Order::ordered, message_type(Kind::rdma_refuse),
                   bytes_of(RefuseMessage{head.transfer}), {}, Urgency::now, message.now);
    counters_.add(Counter::rdma_refusals_sent);
  }
  counters_.add(why);
  return RxResult::consumed;
}

template <link::PacketDevice D>
RxResult Rdma<D>::on_data(const Incoming& message) {
  if (message.bytes.size() < sizeof(DataHead)) {
    counters_.add(Counter::drop_length);
    return RxResult::consumed;
  }
  DataHead head;
  std::memcpy(&head, message.bytes.data(), sizeof head);
  const std::span<const std::byte> bytes = message.bytes.subspan(sizeof head);

  if (head.slot >= table_.slots()) return reject_data(message, head, Counter::rdma_drop_right);
  Transfer& t = table_[head.slot];
  // Slot, key and peer must be those of an open transfer. The pieces of one right must all be of
  // one transfer of the sender's; for a grant() the first piece to arrive tells which.
  if (t.state != TransferState::open || t.peer != message.from || t.key != head.key ||
      (t.moved != 0 && t.peer_transfer_id != head.transfer))
    return reject_data(message, head, Counter::rdma_drop_right);

  // Differences only, no sums: the peer chose the offset, and a sum could overflow. The comparison
  // with `moved` keeps a peer from writing more bytes than were granted by writing some twice.
  const bool last = message.kind == static_cast<std::uint8_t>(Kind::rdma_last);
  if (head.offset > t.length || bytes.size() > t.length - head.offset ||
      bytes.size() > t.length - t.moved || (last && t.length_known))
    return reject_data(message, head, Counter::rdma_drop_range);
  if (last) {
    // A write may be shorter than its right, so the last piece sets the length. Pieces are
    // unordered: the last one may arrive first, but never with an offset below the bytes already
    // placed.
    if (head.offset < t.moved) return reject_data(message, head, Counter::rdma_drop_range);
    t.length = head.offset + bytes.size();
    t.length_known = true;
  }
  if (!bytes.empty()) std::memcpy(t.memory + head.offset, bytes.data(), bytes.size());
  t.moved += bytes.size();
  t.peer_transfer_id = head.transfer;
  counters_.add(Counter::rdma_data_received);
  counters_.add(Counter::rdma_bytes_received, bytes.size());
  if (!t.length_known || t.moved < t.length) return RxResult::consumed;

  // The receiver's completion does not wait until the done is sent; the slot does.
  complete(head.slot, RdmaStatus::ok);
  table_.set_pending_control(head.slot, PendingControl::done);
  open_matched();
  send_pending_controls(message.now);
  return RxResult::consumed;
}

template <link::PacketDevice D>
SendStatus Rdma<D>::send_control(const Transfer& t, link::Time now) {
  const auto send = [&](Kind kind, std::span<const std::byte> bytes) {
    return link_.try_send(t.peer, Lane::high, Order::ordered, message_type(kind), bytes, {},
                          Urgency::now, now);
  };
  const RightMessage right{t.peer_transfer_id, t.slot, t.key};
  const RefuseMessage refusal{t.peer_transfer_id};
  switch (t.pending_control) {
    case PendingControl::grant: return send(Kind::rdma_grant, bytes_of(right));
    case PendingControl::done: return send(Kind::rdma_done, bytes_of(right));
    case PendingControl::refusal: return send(Kind::rdma_refuse, bytes_of(refusal));
    case PendingControl::none: break;
  }
  return SendStatus::sent;
}

// Tries each pending control message once.
template <link::PacketDevice D>
void Rdma<D>::send_pending_controls(link::Time now) {
  std::size_t left = table_.pending_controls().size(), failed = 0;
  while (left-- > 0 && failed < kMaxFailedSends) {
    const Slot slot = table_.pending_controls().first();
    const PendingControl control = table_[slot].pending_control;
    const SendStatus status = send_control(table_[slot], now);
    table_.clear_pending_control(slot);
    if (status == SendStatus::try_again) {  // to the end of the queue: others may have room
      table_.set_pending_control(slot, control);
      ++failed;
      continue;
    }
    // peer_down also clears it; on_peer_down() completes the transfer.
    if (status == SendStatus::sent && control == PendingControl::grant)
      counters_.add(Counter::rdma_grants_sent);
    if (status == SendStatus::sent && control == PendingControl::refusal)
      counters_.add(Counter::rdma_refusals_sent);
    table_.free_if_finished(slot);
  }
}

// ---- sending ---------------------------------------------------------------------------------

template <link::PacketDevice D>
void Rdma<D>::on_grant(const Incoming& message) {
  RightMessage m;
  if (!read_exactly(message.bytes, m)) return counters_.add(Counter::drop_length);
  const Slot slot = table_.find({m.transfer}, TransferState::requested);
  if (slot == base::kNoSlot || table_[slot].peer != message.from)
    return counters_.add(Counter::rdma_drop_control);
  table_[slot].slot = m.slot;
  table_[slot].key = m.key;
  table_.move(slot, TransferState::sending);
}

template <link::PacketDevice D>
void Rdma<D>::on_refuse(const Incoming& message) {
  RefuseMessage m;
  if (!read_exactly(message.bytes, m)) return counters_.add(Counter::drop_length);
  // In `requested` the refusal answers the request, in `sent` the last piece of data.
  const Slot requested = table_.find({m.transfer}, TransferState::requested);
  const Slot slot =
      requested != base::kNoSlot ? requested : table_.find({m.transfer}, TransferState::sent);
  if (slot == base::kNoSlot || table_[slot].peer != message.from)
    return counters_.add(Counter::rdma_drop_control);
  complete(slot, slot == requested ? RdmaStatus::too_long : RdmaStatus::no_right);
  open_matched();
  send_pending_controls(message.now);
}

template <link::PacketDevice D>
void Rdma<D>::on_done(const Incoming& message) {
  RightMessage m;
  if (!read_exactly(message.bytes, m)) return counters_.add(Counter::drop_length);
  const Slot slot = table_.find({m.transfer}, TransferState::sent);
  if (slot == base::kNoSlot || table_[slot].peer != message.from || table_[slot].slot != m.slot ||
      table_[slot].key != m.key)
    return counters_.add(Counter::rdma_drop_control);
  complete(slot, RdmaStatus::ok);
  open_matched();
  send_pending_controls(message.now);
}

template <link::PacketDevice D>
std::optional<std::size_t> Rdma<D>::send_piece(Slot slot, link::Time now) {
  Transfer& t = table_[slot];
  // One piece fills one frame. Unordered, because the receiver places each piece by its offset;
  // batch, because the pieces of a poll leave in bursts.
  const std::size_t room = link_.max_message(t.peer);
  if (room <= sizeof(DataHead) || defers_data(t)) return std::nullopt;
  const auto size = static_cast<std::size_t>(
      std::min<std::uint64_t>(room - sizeof(DataHead), t.length - t.moved));
  const Kind kind = size == t.length - t.moved ? Kind::rdma_last : Kind::rdma_data;
  const DataHead head{table_.id(slot).value, t.slot, t.key, t.moved};
  const SendStatus status =
      link_.try_send(t.peer, Lane::bulk, Order::unordered, message_type(kind), bytes_of(head),
                     {t.memory + t.moved, size}, Urgency::batch, now);
  if (status != SendStatus::sent) return std::nullopt;
  t.moved += size;
  counters_.add(Counter::rdma_data_sent);
  counters_.add(Counter::rdma_bytes_sent, size);
  // Decided by the kind and not by the bytes left: an empty transfer is one empty piece, too.
  if (kind == Kind::rdma_last) table_.move(slot, TransferState::sent);
  return size;
}

// Sends data: one piece of each transfer in turn (round robin), so that a short transfer does not
// wait for a long one.
template <link::PacketDevice D>
void Rdma<D>::send_data(link::Time now) {
  TransferList& sending = table_.sending();
  std::size_t failed = 0;
  for (std::size_t bytes = 0; bytes < kMaxPollBytes;) {
    if (failed >= std::min(sending.size(), kMaxFailedSends)) break;
    const Slot slot = sending.first();
    // A transfer that stays in `sending` goes to the end of its list: that makes the turns.
    const auto sent = send_piece(slot, now);
    if (table_[slot].state == TransferState::sending) table_.move(slot, TransferState::sending);
    failed = sent ? 0 : failed + 1;
    // 64 bytes more for each piece, as an estimate of the work that it costs beside its bytes: many
    // tiny transfers must not make a poll long either.
    bytes += sent ? *sent + 64 : 0;
  }
  if (failed > 0) counters_.add(Counter::rdma_waits);
}

// ---- both ------------------------------------------------------------------------------------

template <link::PacketDevice D>
void Rdma<D>::on_peer_down(PeerId peer) {
  // All slots are looked at: a peer seldom goes down. Posts for any peer stay; they name no peer.
  table_.drop_unexpected(peer);
  for (Slot slot = 0; slot < table_.slots(); ++slot) {
    Transfer& t = table_[slot];
    if (t.state == TransferState::free || t.peer != peer) continue;
    table_.clear_pending_control(slot);
    if (t.state != TransferState::complete) complete(slot, RdmaStatus::peer_down);
    table_.free_if_finished(slot);
  }
  open_matched();
}

// The two packet devices: a DPDK port, and a port of the simulated network that tests run on.
template class Rdma<port::Port>;
template class Rdma<sim::SimPort>;

}  // namespace viaduct::startx
