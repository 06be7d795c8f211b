// Long transfers of the VI channel: RDMA writes into the receiver's buffer, or pieces through slots
// where a buffer cannot be registered.
//
//      sender                                         receiver
//        |                                  open_receive(): the buffer is registered
//        |  <------ (transfer/: CTS or RTR with the remote key) ------  |
//   start_send(): the data is registered                                |
//        |  ======= RDMA writes of at most MaxTransferSize =========>   |
//        |  ======= the last one with immediate data ===============>  the transfer has ended
//   all completed: the transfer has ended
//
// or, instead of the writes, pieces: messages that the receiver copies to their places, the last of
// which ends the transfer.
#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

#include "libmpi_lite/channel/vi/vi_channel.hpp"

namespace viaduct::mpi {

// ---- registrations -----------------------------------------------------------------------------

void ViChannel::forget_unmapped() {
  std::array<AddressRange, 64> room;
  bool all = false;
  for (;;) {
    const auto ranges = UnmappedWatch::take(room, all);
    if (all) registrations_.forget({0, ~std::uintptr_t{0}});
    for (const AddressRange& range : ranges) registrations_.forget(range);
    if (ranges.size() < room.size()) break;
  }
  unmapped_.set_interest(registrations_.kept());
}

ViChannel::Registration* ViChannel::registration_of(const void* address, std::size_t bytes) {
  if (UnmappedWatch::any()) forget_unmapped();
  Registration* const registration = registrations_.acquire(address, bytes);
  unmapped_.set_interest(registrations_.kept());
  return registration;
}

// ---- receiver ----------------------------------------------------------------------------------

bool ViChannel::open_receive(int from, MutableBytes into, const RemoteKey*, Cookie cookie,
                             RemoteKey& remote_key) {
  ViRemoteKey key;
  if (peer(from).state == State::lost) {
    pending_failures_.add_receive(cookie);
    key.receive = kViMaxNumber;
  } else {
    if (free_receives_.empty()) return false;
    key.receive = free_receives_.back();
    free_receives_.pop_back();
    OpenReceive& receive = receives_[key.receive];
    receive = {cookie, from, into, 0, registration_of(into.data(), into.size())};
    key.address = reinterpret_cast<std::uint64_t>(into.data());
    key.room = into.size();
    if (receive.registration != nullptr) key.handle = receive.registration->handle();
  }
  std::memcpy(remote_key.bytes.data(), &key, sizeof key);
  return true;
}

void ViChannel::close_receive(int from, const RemoteKey& remote_key) {
  const std::uint32_t number = vi_key_of(remote_key).receive;
  OpenReceive* const receive = open_receive_of(from, number);
  if (receive == nullptr) return;
  if (receive->registration != nullptr) registrations_.release(*receive->registration);
  *receive = {};
  free_receives_.push_back(number);
}

// Numbers come from the peer: nullptr if it has no such receive.
ViChannel::OpenReceive* ViChannel::open_receive_of(int from, std::uint32_t number) {
  if (number >= receives_.size() || receives_[number].from != from) return nullptr;
  return &receives_[number];
}

// The place is free before the sink hears of the end: it may open the next receive.
void ViChannel::end_receive(std::uint32_t number, bool ok) {
  const OpenReceive receive = std::exchange(receives_[number], {});
  if (receive.registration != nullptr) registrations_.release(*receive.registration);
  free_receives_.push_back(number);
  sink_.on_long_received(receive.cookie, ok);
}

void ViChannel::take_piece(const ViPeer& p, Bytes message) {
  PieceHead head;
  if (message.size() < sizeof head) return counters_.add(ViCounter::drop_malformed);
  std::memcpy(&head, message.data(), sizeof head);
  const Bytes data = message.subspan(sizeof head);
  OpenReceive* const receive = open_receive_of(p.rank, head.receive);
  if (receive == nullptr || head.offset != receive->arrived || head.total > receive->into.size() ||
      data.size() > head.total - std::min(head.offset, head.total))
    return counters_.add(ViCounter::drop_malformed);
  if (!data.empty()) std::memcpy(receive->into.data() + head.offset, data.data(), data.size());
  receive->arrived += data.size();
  if (receive->arrived == head.total) end_receive(head.receive, true);
}

// ---- sender ------------------------------------------------------------------------------------

bool ViChannel::start_send(int to, Bytes data, const RemoteKey& remote_key, Cookie cookie) {
  ViPeer& p = peer(to);
  const ViRemoteKey key = vi_key_of(remote_key);
  if (p.state == State::lost || data.size() > key.room) {
    pending_failures_.add_send(cookie);
    return true;
  }
  if (p.state != State::connected) {
    want(p);
    return p.state == State::lost && start_send(to, data, remote_key, cookie);
  }
  if (free_sends_.empty()) return false;
  const std::uint32_t place = free_sends_.back();
  free_sends_.pop_back();
  LongSend& send = sends_[place];
  send = {.cookie = cookie, .to = to, .data = data, .key = key};
  if (key.handle != 0 && !data.empty())
    send.registration = registration_of(data.data(), data.size());
  ++p.sending;
  if (!post_parts(place)) unsent_.push_back(place);
  return true;
}

bool ViChannel::post_parts(std::uint32_t place) {
  LongSend& send = sends_[place];
  while (!send.whole) {
    const ViPeer& p = peer(send.to);
    if ((p.state != State::connected && p.state != State::closing) || p.close_sent ||
        p.posted >= kSends - 1)
      return false;
    if (!(send.registration != nullptr ? post_write(send, place) : post_piece(send, place)))
      return false;
  }
  return true;
}

bool ViChannel::post_write(LongSend& send, std::uint32_t place) {
  ViPeer& p = peer(send.to);
  const std::size_t bytes =
      std::min<std::size_t>(send.data.size() - send.started, nic_.vi_attributes().MaxTransferSize);
  const bool last = send.started + bytes == send.data.size();
  if (last && p.credits == 0) return false;
  ViSlot* const slot = slots_.take();
  if (slot == nullptr) return false;
  VIP_DESCRIPTOR& d = slot->descriptor;
  slot->send = place;
  d.CS.SegCount = 2;
  d.CS.Control = VIP_CONTROL_OP_RDMAWRITE;
  d.CS.Length = static_cast<VIP_UINT32>(bytes);
  d.DS[0].Remote = {.Data = {.AddressBits = send.key.address + send.started},
                    .Handle = send.key.handle,
                    .Reserved = 0};
  d.DS[1].Local = {.Data = {.Address = const_cast<std::byte*>(send.data.data() + send.started)},
                   .Handle = send.registration->handle(),
                   .Length = static_cast<VIP_UINT32>(bytes)};
  if (last) {
    d.CS.Control |= VIP_CONTROL_IMMEDIATE;
    set_immediate(p, *slot, ViKind::written, send.key.receive);
  }
  send.started += bytes;
  send.whole = last;
  ++send.parts;
  counters_.add(ViCounter::rdma_writes);
  submit(p, *slot);
  return true;
}

bool ViChannel::post_piece(LongSend& send, std::uint32_t place) {
  ViPeer& p = peer(send.to);
  if (p.credits == 0) return false;
  ViSlot* const slot = slots_.take();
  if (slot == nullptr) return false;
  const PieceHead head{send.key.receive, 0, send.started, send.data.size()};
  const std::size_t bytes = std::min(send.data.size() - send.started, slots_.room() - sizeof head);
  std::memcpy(slot->data(), &head, sizeof head);
  if (bytes != 0) std::memcpy(slot->data() + sizeof head, send.data.data() + send.started, bytes);
  send.started += bytes;
  send.whole = send.started == send.data.size();
  ++send.parts;
  counters_.add(ViCounter::pieces_sent);
  post(p, *slot, ViKind::piece, sizeof head + bytes, 0, place);
  return true;
}

void ViChannel::part_sent(std::uint32_t place, bool ok) {
  LongSend& send = sends_[place];
  send.failed |= !ok;
  if (--send.parts == 0 && send.whole) end_send(place, !send.failed);
}

void ViChannel::end_send(std::uint32_t place, bool ok) {
  const LongSend send = std::exchange(sends_[place], {});
  if (send.registration != nullptr) registrations_.release(*send.registration);
  --peer(send.to).sending;
  free_sends_.push_back(place);
  sink_.on_long_sent(send.cookie, ok);
}

// ---- both --------------------------------------------------------------------------------------

void ViChannel::end_transfers(int rank) {
  for (std::uint32_t number = 0; number < receives_.size(); ++number)
    if (receives_[number].from == rank) end_receive(number, false);
  for (std::uint32_t place = 0; place < sends_.size(); ++place)
    if (sends_[place].to == rank) end_send(place, false);
}

}  // namespace viaduct::mpi
