// The StarT-X channel: control messages as packets, long transfers as remote DMA.
// drivers/startx_emul/niu.hpp and rdma.hpp have the mechanisms; net_impl.hpp has connection set-up
// and loss of peers.
#include "libmpi_lite/channel/startx.hpp"

#include <algorithm>
#include <cstring>

#include "drivers/startx_emul/payload.hpp"
#include "libmpi_lite/channel/copy.hpp"
#include "libmpi_lite/channel/net_impl.hpp"
#include "libmpi_lite/core/error.hpp"
#include "mpi.h"

namespace viaduct::mpi {

namespace {

using link::SendStatus;
using startx::Packet;
using startx::RdmaStatus;

constexpr auto kLow = startx::Priority::low;  // of all control messages: one priority, one order
constexpr std::size_t kWord = sizeof(std::uint32_t);
constexpr std::size_t kMinBytes = startx::kMinWords * kWord;     // of the smallest payload
constexpr std::size_t kPacketBytes = startx::kMaxWords * kWord;  // of the largest payload

// The meaning of a packet: the upper 4 bits of its tag, the user's header word. The lower 28 bits
// are a number. Both ends must agree on these values: they are on the wire.
enum class PacketKind : std::uint32_t {
  whole = 1,  // a message; the number is its size in bytes
  first = 2,  // the first packet of a message of several; the number is the size of the message
  more = 3,   // a later packet; the number is the offset of its bytes in the message
  introduction = 4,  // the number is the rank of the sender; always a process's first packet
};
constexpr std::uint32_t kKindShift = 28, kNumberMask = (1u << kKindShift) - 1;

constexpr std::uint32_t tag(PacketKind kind, std::size_t number) {
  return static_cast<std::uint32_t>(kind) << kKindShift | static_cast<std::uint32_t>(number);
}

constexpr std::size_t words_of(std::size_t bytes) {
  return std::max(startx::kMinWords, (bytes + kWord - 1) / kWord);
}

// The content of a RemoteKey.
struct StartxRemoteKey {
  startx::Right right;          // what the sender needs to write
  startx::TransferId transfer;  // the receiver's own; 0: the peer was lost before it was opened
};
static_assert(sizeof(StartxRemoteKey) <= RemoteKey::kMax);

StartxRemoteKey startx_remote_key_of(const RemoteKey& remote_key) {
  StartxRemoteKey content;
  std::memcpy(&content, remote_key.bytes.data(), sizeof content);
  return content;
}

// Copies bytes [offset, offset + count) of head ++ body.
void copy_range(Bytes head, Bytes body, std::size_t offset, std::size_t count, std::byte* to) {
  if (offset < head.size()) {
    const std::size_t size = std::min(count, head.size() - offset);
    startx::copy_payload(to, head.data() + offset, size);
    to += size;
    offset += size;
    count -= size;
  }
  if (count != 0) startx::copy_payload(to, body.data() + (offset - head.size()), count);
}

// Fills in the payload: bytes [offset, offset + count) of head ++ body. A packet has whole words,
// and two at least, so up to 8 bytes behind the last byte go out, too. They are set to 0, or the
// packet would carry what the stack held before.
void fill(Packet& packet, Bytes head, Bytes body, std::size_t offset, std::size_t count) {
  const std::size_t words = words_of(count);
  packet.words = static_cast<std::uint8_t>(words);
  packet.payload[words - 2] = packet.payload[words - 1] = 0;
  copy_range(head, body, offset, count, reinterpret_cast<std::byte*>(packet.payload));
}

startx::NiuConfig niu_config(const Launch& launch) {
  const std::size_t transfers = net_transfers(launch.size());
  startx::NiuConfig config;
  // Grants count as open from open_receive() on, even if nobody has begun to send. So every receive
  // needs a place among the open transfers.
  config.rdma.max_open = config.rdma.max_posted = transfers;
  config.rdma.max_regions = 2 * transfers;
  return config;
}

}  // namespace

template <link::PacketDevice D>
StartxChannel<D>::StartxChannel(ChannelSink& sink, Launch& launch, std::shared_ptr<D> device,
                                const NetConfig& config, ClockOf<D> clock)
    : Net(sink, launch, std::move(device), config, niu_config(launch), clock),
      transfers_(2 * net_transfers(launch.size())) {  // sends and receives
  // One entry for each peer at most: send_pieces() never allocates for this list.
  unsent_ranks_.reserve(static_cast<std::size_t>(launch.size()));
  this->publish(0);
}

template <link::PacketDevice D>
std::string StartxChannel<D>::detail() const {
  return "packets of " + std::to_string(kPacketBytes) + " bytes";
}

// ---- control messages ------------------------------------------------------------------------

template <link::PacketDevice D>
bool StartxChannel<D>::send_control(int to, Bytes head, Bytes body) {
  if (!ready(to)) [[unlikely]]
    return lost(to);
  const std::size_t size = head.size() + body.size();
  const StartxPeer& p = peer(to);
  // A message must not overtake the rest of the one before it.
  if (size > kPacketBytes || p.unsent.size != 0) [[unlikely]]
    return send_pieces(to, head, body);
  if (size >= kMinBytes && head.size() % kWord == 0 && body.size() % kWord == 0) [[likely]] {
    // Whole words at both ends: the NIU puts head and body together in the frame, without a copy
    // here.
    std::uint32_t words[1 + startx::kMaxWords];
    words[0] = tag(PacketKind::whole, size);
    copy_words(reinterpret_cast<std::byte*>(words + 1), head);
    return driver_.try_send(p.id, kLow, {words, 1 + head.size() / kWord}, body, now()) !=
           SendStatus::try_again;
  }
  Packet packet;
  packet.tag = tag(PacketKind::whole, size);
  fill(packet, head, body, 0, size);
  return driver_.try_send(p.id, kLow, packet, now()) != SendStatus::try_again;
}

template <link::PacketDevice D>
bool StartxChannel<D>::send_pieces(int to, Bytes head, Bytes body) {
  StartxPeer& p = peer(to);
  // The message is taken as a whole or not at all. Packets that find no room in the link wait in
  // the peer's `unsent`, of which there is one.
  if (p.unsent.size != 0) return false;
  const std::size_t size = head.size() + body.size(), most = this->limits().control;
  if (size > most)
    throw Error(MPI_ERR_INTERN, "a control message has " + std::to_string(size) +
                                    " bytes; at most " + std::to_string(most) + " can be sent");
  std::size_t offset = 0;
  // Sent, or the peer is down: then the message vanishes.
  if (send_packets(p, head, body, offset) != SendStatus::try_again) return true;
  if (offset == 0) return false;
  // Only what has not been sent is copied, at its own offset.
  p.unsent.bytes.resize(most);
  copy_range(head, body, offset, size - offset, p.unsent.bytes.data() + offset);
  p.unsent.size = size;
  p.unsent.offset = offset;
  unsent_ranks_.push_back(to);
  return true;
}

template <link::PacketDevice D>
SendStatus StartxChannel<D>::send_packets(const StartxPeer& p, Bytes head, Bytes body,
                                          std::size_t& offset) {
  const std::size_t size = head.size() + body.size();
  const link::Time now = this->now();
  while (offset != size) {
    const std::size_t count = std::min(kPacketBytes, size - offset);
    Packet packet;
    packet.tag = offset == 0 ? tag(PacketKind::first, size) : tag(PacketKind::more, offset);
    fill(packet, head, body, offset, count);
    const bool last = offset + count == size;
    const SendStatus status =
        // The packets share frames; the last one sends the last frame off.
        driver_.try_send(p.id, kLow, packet, last ? link::Urgency::now : link::Urgency::batch, now);
    if (status != SendStatus::sent) return status;
    offset += count;
  }
  return SendStatus::sent;
}

template <link::PacketDevice D>
bool StartxChannel<D>::send_unsent() {
  bool any = false;
  for (std::size_t i = 0; i < unsent_ranks_.size();) {
    StartxPeer& p = peer(unsent_ranks_[i]);
    const std::size_t before = p.unsent.offset;
    const Bytes message(p.unsent.bytes.data(), p.unsent.size);
    // If the peer is down, the rest counts as sent.
    const SendStatus status = send_packets(p, {}, message, p.unsent.offset);
    any |= p.unsent.offset != before;
    if (status == SendStatus::try_again) {
      ++i;
      continue;
    }
    p.unsent.size = 0;
    unsent_ranks_[i] = unsent_ranks_.back();
    unsent_ranks_.pop_back();
  }
  return any;
}

template <link::PacketDevice D>
bool StartxChannel<D>::send_introduction(int rank) {
  const link::PeerId id = peer(rank).id;
  // Wait for the connection. The link would take the message before, and send it when the
  // connection is up; but that needs a poll, and this process may compute meanwhile. A program that
  // has returned from MPI_Send may expect that the message is under way.
  if (!this->link_.connected(id)) {
    this->link_.connect(id, now());
    return false;
  }
  Packet packet;
  packet.tag = tag(PacketKind::introduction, static_cast<std::uint32_t>(this->launch_.rank()));
  packet.payload[0] = packet.payload[1] = 0;
  return driver_.try_send(id, kLow, packet, now()) == SendStatus::sent;
}

template <link::PacketDevice D>
bool StartxChannel<D>::receive(std::size_t most) {
  std::size_t taken = 0;
  for (; taken < most; ++taken) {
    const startx::Received* packet = driver_.peek(kLow);
    if (packet == nullptr) break;
    on_packet(*packet);
    // Only now: the sink reads the packet in place. The pop gives credit back to the sender.
    driver_.pop(kLow);
  }
  return taken != 0;
}

template <link::PacketDevice D>
inline void StartxChannel<D>::on_packet(const startx::Received& packet) {
  const std::size_t size = packet.tag & kNumberMask;
  const int from = this->rank_of(packet.from);
  if (packet.tag >> kKindShift != static_cast<std::uint32_t>(PacketKind::whole) || from < 0)
      [[unlikely]]
    return on_other_packet(from, packet);
  // A size that the packet cannot hold does not come from a channel: drop the packet.
  if (size <= packet.words * kWord) [[likely]]
    sink_.on_control(from, {reinterpret_cast<const std::byte*>(packet.payload), size});
}

template <link::PacketDevice D>
void StartxChannel<D>::on_other_packet(int from, const startx::Received& packet) {
  // All numbers come from the network: each is checked before it is used.
  const std::size_t number = packet.tag & kNumberMask;
  const auto kind = static_cast<PacketKind>(packet.tag >> kKindShift);
  if (kind == PacketKind::introduction)
    return this->on_introduction(packet.from, static_cast<std::uint32_t>(number), 0);
  if (from < 0) return;
  StartxPeer::Message& m = peer(from).arriving;
  if (kind == PacketKind::first && m.size == 0 && number > kPacketBytes &&
      number <= this->limits().control) {
    m.bytes.resize(this->limits().control);
    m.size = number;
    m.offset = 0;
  } else if (kind != PacketKind::more || m.size == 0 || number != m.offset) {
    return;  // not a part that a channel would send now: drop it
  }
  const std::size_t count = std::min(kPacketBytes, m.size - m.offset);
  if (packet.words != words_of(count)) return;
  startx::copy_payload(m.bytes.data() + m.offset, packet.payload, count);
  m.offset += count;
  if (m.offset == m.size) sink_.on_control(from, {m.bytes.data(), std::exchange(m.size, 0)});
}

// ---- long transfers --------------------------------------------------------------------------

template <link::PacketDevice D>
bool StartxChannel<D>::open_receive(int from, MutableBytes into, const RemoteKey*, Cookie cookie,
                                    RemoteKey& remote_key) {
  StartxRemoteKey content{};
  // A right is granted to one link peer, so the peer must be known. It need not be connected.
  if (!this->resolve(from)) {
    this->queue_failed_receive(cookie);
  } else {
    const startx::RegionId region = rdma().register_memory(into);
    if (!region.value) return false;
    const startx::Started started =
        rdma().grant(peer(from).id, {region, 0, into.size()}, content.right);
    if (started.status == RdmaStatus::ok) {
      content.transfer = started.transfer;
      transfer(started.transfer) = {started.transfer, region, cookie};
    } else {
      rdma().deregister(region);
      if (started.status != RdmaStatus::peer_down) return false;
      this->queue_failed_receive(cookie);
    }
  }
  std::memcpy(remote_key.bytes.data(), &content, sizeof content);
  return true;
}

template <link::PacketDevice D>
void StartxChannel<D>::close_receive(int, const RemoteKey& remote_key) {
  const startx::TransferId id = startx_remote_key_of(remote_key).transfer;
  // false: the transfer is complete or was never opened; its completion frees the region.
  if (rdma().revoke(id)) rdma().deregister(transfer(id).region);
}

template <link::PacketDevice D>
bool StartxChannel<D>::start_send(int to, Bytes data, const RemoteKey& remote_key, Cookie cookie) {
  // No introduction is needed: the right tells the receiver what the data is for.
  if (!this->resolve(to)) {
    this->queue_failed_send(cookie);
    return true;
  }
  // The driver registers memory for both directions; this memory is only read.
  const MutableBytes memory(const_cast<std::byte*>(data.data()), data.size());
  const startx::RegionId region = rdma().register_memory(memory);
  if (!region.value) return false;
  const startx::Started started = rdma().write(peer(to).id, startx_remote_key_of(remote_key).right,
                                               {region, 0, data.size()}, now());
  if (started.status == RdmaStatus::ok) {
    transfer(started.transfer) = {started.transfer, region, cookie};
    ++sending_;
    return true;
  }
  rdma().deregister(region);
  // Anything else is for ever: the peer is down, or the data is longer than the right.
  if (started.status == RdmaStatus::no_room) return false;
  this->queue_failed_send(cookie);
  return true;
}

template <link::PacketDevice D>
bool StartxChannel<D>::take_completions() {
  bool any = !unsent_ranks_.empty() && send_unsent();
  for (startx::Completion completion; rdma().next_completion(completion); any = true) {
    const Transfer& t = transfer(completion.transfer);
    rdma().deregister(t.region);
    // Everything is copied from `t` first: the sink may start a transfer that takes the slot.
    const bool ok = completion.status == RdmaStatus::ok;
    const Cookie cookie = t.cookie;
    if (completion.receiving) {
      sink_.on_long_received(cookie, ok);
    } else {
      --sending_;
      sink_.on_long_sent(cookie, ok);
    }
  }
  return any;
}

// For DPDK ports, and for the simulated network of the tests.
template class StartxChannel<port::Port>;
template class StartxChannel<sim::SimPort>;

std::unique_ptr<Channel> open_startx_channel(ChannelSink& sink, Launch& launch,
                                             std::shared_ptr<port::Port> port) {
  NetConfig config = net_config(launch, "VIADUCT_EAGER_STARTX");
  if (!port) port = open_net_port(launch, config);
  return std::make_unique<StartxChannel<port::Port>>(sink, launch, std::move(port), config);
}

}  // namespace viaduct::mpi
