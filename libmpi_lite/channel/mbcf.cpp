// The MBCF channel: control messages as FIFO entries, long transfers as Remote Writes with notify.
// drivers/mbcf/engine.hpp has the requests; net_impl.hpp has connection set-up and loss of peers.
#include "libmpi_lite/channel/mbcf.hpp"

#include <algorithm>
#include <cstring>

#include "libmpi_lite/channel/net_impl.hpp"
#include "libmpi_lite/core/config_vars.hpp"

namespace viaduct::mpi {

namespace {

using mbcf::bytes_of;
using mbcf::Status;

// The entries that channels send each other, told from control messages by their first byte. They
// are on the wire: little endian, no padding.
enum class ChannelMessage : std::uint8_t {
  introduction = 0xf0,  // Introduction: always a process's first entry
  written = 0xf1,       // Written: a long transfer is complete
  piece = 0xf2,         // Piece, data: a part of a long transfer
};
constexpr std::byte kFirstChannelMessage{0xf0};

struct Introduction {
  ChannelMessage kind = ChannelMessage::introduction;
  std::uint8_t reserved[3] = {};
  std::uint32_t rank;  // of the sender, in MPI_COMM_WORLD
  std::uint64_t fifo;  // key of the sender's FIFO, for messages in the other direction
};
struct Written {
  ChannelMessage kind = ChannelMessage::written;
  std::uint8_t reserved[3] = {};
  std::uint32_t receive;  // id in the receiver's receives_, from its remote key
  std::uint64_t key;      // of the buffer: proves that the sender was given this receive
};
struct Piece {
  ChannelMessage kind = ChannelMessage::piece;
  std::uint8_t last;  // 1: the transfer ends with this piece
  std::uint8_t reserved[2] = {};
  std::uint32_t receive;  // as in Written
  std::uint64_t key;      // as in Written
  std::uint64_t offset;   // bytes that were sent in pieces before
};
static_assert(sizeof(Introduction) == 16 && sizeof(Written) == 16 && sizeof(Piece) == 24);

// The content of a RemoteKey.
struct MbcfRemoteKey {
  std::uint64_t key;      // of the segment; 0: the peer was lost before this receive was opened
  std::uint32_t receive;  // id in the receiver's receives_
};
static_assert(sizeof(MbcfRemoteKey) <= RemoteKey::kMax);

MbcfRemoteKey mbcf_remote_key_of(const RemoteKey& remote_key) {
  MbcfRemoteKey content;
  std::memcpy(&content, remote_key.bytes.data(), sizeof content);
  return content;
}

// false: the entry has another length. What comes from the network is not trusted.
template <class T>
bool read_exactly(Bytes bytes, T& message) {
  if (bytes.size() != sizeof message) return false;
  std::memcpy(&message, bytes.data(), sizeof message);
  return true;
}

// The context of a request tells what waits for its completion: the kind in the upper half, the
// slot number in the lower. Silent requests have the context 0: they complete only if refused.
constexpr std::uint64_t kSend = std::uint64_t{1} << 32, kLongEntry = std::uint64_t{2} << 32;
constexpr std::uint64_t kContextKind = ~std::uint64_t{0} << 32;

constexpr mbcf::Options kSilent{.urgency = link::Urgency::now, .silent = true, .context = 0};
// Pieces fill their frames, which go to the device in bursts (Link::push).
constexpr mbcf::Options kSilentBatch{.urgency = link::Urgency::batch, .silent = true, .context = 0};
constexpr mbcf::Options with_context(std::uint64_t context) {
  return {.urgency = link::Urgency::now, .silent = false, .context = context};
}

// Control messages larger than a frame that may be under way at once, to all peers together. Each
// may need a copy of the largest control message.
constexpr std::size_t kMaxLongEntries = 64;
// Bytes of a transfer in pieces that are sent in one go, so that others get their turn.
constexpr std::size_t kPiecesAtATime = 64u << 10;
// The eager limit where all that is not written goes eagerly, as in MPI/MBCF, unless the user has
// set one. What is longer still takes a rendezvous: a FIFO entry needs its room at once.
constexpr std::size_t kEagerOfPaper = 256u << 10;
// A FIFO holds at least that many control messages of the largest size.
constexpr std::size_t kMinEntries = 4;

mbcf::EngineConfig engine_config(const Launch& launch) {
  const auto size = static_cast<std::size_t>(launch.size());
  const std::size_t transfers = net_transfers(launch.size());
  return {.max_keys = transfers + 1,  // one for each receive, and one for the FIFO
          .max_requests = transfers + kMaxLongEntries,
          .max_writers = std::min(size, mbcf::kMaxWriters)};
}

}  // namespace

template <link::PacketDevice D>
MbcfChannel<D>::MbcfChannel(ChannelSink& sink, Launch& launch, std::shared_ptr<D> device,
                            const NetConfig& config, std::size_t fifo, ClockOf<D> clock)
    : Net(sink, launch, std::move(device), config, engine_config(launch), clock),
      remote_write_(config.remote_write),
      // A message must fit the FIFO of its receiver, whatever the user has configured.
      fifo_(driver_.create_fifo(std::max(fifo, kMinEntries * this->limits().control))),
      receives_(net_transfers(launch.size()), 0),
      sends_(net_transfers(launch.size()), 0),
      long_entries_(kMaxLongEntries, 0) {
  if (!remote_write_) in_pieces_.reserve(net_transfers(launch.size()));
  this->publish(fifo_->key().value);
}

template <link::PacketDevice D>
std::string MbcfChannel<D>::detail() const {
  return "FIFO of " + std::to_string(fifo_->capacity() >> 10) + " KiB";
}

template <link::PacketDevice D>
std::string MbcfChannel<D>::driver_counted() const {
  return text(driver_.counters(), mbcf::kCounterInfo);
}

// ---- control messages ------------------------------------------------------------------------

template <link::PacketDevice D>
inline bool MbcfChannel<D>::accepted(int to, const mbcf::Issued& issued, bool& refused) {
  refused = issued.status != Status::ok;
  if (!refused) [[likely]]
    return true;
  // The FIFO, the link or the table of requests is full just now.
  if (issued.status == Status::no_room) return false;
  // If the peer is down, the link's event tells why, and the peer is marked lost. Any other status
  // means that the two ends do not understand each other, which does not mend itself.
  if (issued.status != Status::peer_down) this->mark_lost(to, mbcf::text(issued.status));
  return true;
}

template <link::PacketDevice D>
inline bool MbcfChannel<D>::append(int to, Bytes head, Bytes body, const mbcf::Options& options) {
  bool refused;
  return accepted(to, driver_.append(peer(to).writer, head, body, options, now()), refused);
}

template <link::PacketDevice D>
bool MbcfChannel<D>::send_control(int to, Bytes head, Bytes body) {
  // With a lost peer the message is accepted and vanishes.
  if (!ready(to)) [[unlikely]]
    return lost(to);
  if (head.size() + body.size() <= peer(to).max_single_frame) [[likely]]
    return append(to, head, body, kSilent);
  return append_long(to, head, body);
}

// The head of a long entry is kept by the engine, which has room for so many bytes.
static_assert(Channel::kMaxHead <= mbcf::kMaxChainedEntry);

template <link::PacketDevice D>
bool MbcfChannel<D>::append_long(int to, Bytes head, Bytes body) {
  // As a rule the link has room for all pieces of the entry at once, and they are copied into
  // frames then. Otherwise the body has to stay until the entry is complete, but the caller may
  // reuse its memory when send_control() returns: so the rest is read from a copy.
  const base::Slot slot = long_entries_.insert();
  if (slot == base::kNoSlot) return false;
  // Allocate before anything is sent: there may be no memory, and a message that is half sent
  // cannot be taken back.
  std::unique_ptr<std::byte[]>& copy = long_entries_[slot].copy;
  if (copy == nullptr) copy.reset(new (std::nothrow) std::byte[this->limits().control]);
  if (copy == nullptr) {
    long_entries_.erase(slot);
    return false;
  }
  bool refused;
  const mbcf::Options options = with_context(kLongEntry | slot);
  const mbcf::Issued issued = driver_.append(peer(to).writer, head, body, options, now());
  const bool done = accepted(to, issued, refused);
  if (refused) {
    long_entries_.erase(slot);
  } else if (!issued.copied) {
    const Bytes rest = driver_.unsent_part(issued.id);
    std::copy(rest.begin(), rest.end(), copy.get() + (body.size() - rest.size()));
    driver_.relocate(issued.id, {copy.get(), body.size()});
  }
  return done;
}

template <link::PacketDevice D>
bool MbcfChannel<D>::send_introduction(int rank) {
  MbcfPeer& p = peer(rank);
  // The writer asks the peer's FIFO for credit, which connects the link.
  if (!p.writer) p.writer = driver_.open_writer(p.id, p.fifo, now());
  if (!p.writer) return false;
  const auto own_rank = static_cast<std::uint32_t>(this->launch_.rank());
  const Introduction introduction{.rank = own_rank, .fifo = fifo_->key().value};
  // Lost: append() has marked the peer lost, and the introduction has vanished.
  if (!append(rank, bytes_of(introduction), {}, kSilent) || lost(rank)) return false;
  // The entry was accepted, so there is credit. So the peer has answered: the connection is up, and
  // its MTU is known.
  p.max_single_frame = this->link_.max_message(p.id) - sizeof(mbcf::TargetHead);
  return true;
}

template <link::PacketDevice D>
bool MbcfChannel<D>::receive(std::size_t most) {
  std::size_t taken = 0;
  for (; taken < most; ++taken) {
    const auto entry = fifo_->front();
    if (!entry) break;
    if (!entry->bytes.empty() && entry->bytes[0] < kFirstChannelMessage) [[likely]] {
      // A peer without a rank is lost, or has not introduced itself: drop its messages.
      if (const int from = this->rank_of(entry->from); from >= 0) [[likely]]
        sink_.on_control(from, entry->bytes);
    } else {
      on_channel_message(entry->from, entry->bytes);
    }
    // Only now: the sink reads the entry in place. The pop gives credit back to the writer.
    fifo_->pop();
  }
  return taken != 0;
}

template <link::PacketDevice D>
void MbcfChannel<D>::on_channel_message(link::PeerId from, Bytes entry) {
  if (entry.empty()) return;
  Introduction introduction;
  switch (static_cast<ChannelMessage>(entry[0])) {
    case ChannelMessage::introduction:
      if (read_exactly(entry, introduction))
        this->on_introduction(from, introduction.rank, introduction.fifo);
      break;
    case ChannelMessage::written: on_written(entry); break;
    case ChannelMessage::piece: on_piece(entry); break;
  }
}

// ---- long transfers --------------------------------------------------------------------------

template <link::PacketDevice D>
bool MbcfChannel<D>::open_receive(int from, MutableBytes into, const RemoteKey*, Cookie cookie,
                                  RemoteKey& remote_key) {
  MbcfRemoteKey content{};
  // No connection is needed: the key alone lets the sender in.
  if (lost(from)) {
    this->queue_failed_receive(cookie);
  } else {
    const base::Slot slot = receives_.insert();
    if (slot == base::kNoSlot) return false;
    // Without Remote Write the key still names the receive, but gives no right.
    const mbcf::Key key =
        driver_.export_segment(into, remote_write_ ? mbcf::Rights::write : mbcf::Rights::none);
    if (!key) {
      receives_.erase(slot);
      return false;
    }
    receives_[slot] = {key, cookie, from, into, 0};
    content = {key.value, receives_.id(slot).value};
  }
  std::memcpy(remote_key.bytes.data(), &content, sizeof content);
  return true;
}

template <link::PacketDevice D>
void MbcfChannel<D>::close_receive(int, const RemoteKey& remote_key) {
  const MbcfRemoteKey content = mbcf_remote_key_of(remote_key);
  // The transfer may be over.
  const base::Slot slot = find_receive(content.receive, content.key);
  if (slot != base::kNoSlot) end_receive(slot);
}

template <link::PacketDevice D>
base::Slot MbcfChannel<D>::find_receive(std::uint32_t id, std::uint64_t key) const {
  const base::Slot slot = receives_.find({id});
  return slot != base::kNoSlot && receives_[slot].key.value == key ? slot : base::kNoSlot;
}

template <link::PacketDevice D>
Cookie MbcfChannel<D>::end_receive(base::Slot slot) {
  driver_.withdraw(receives_[slot].key);
  receives_.erase(slot);
  return receives_[slot].cookie;
}

template <link::PacketDevice D>
void MbcfChannel<D>::on_written(Bytes entry) {
  Written written;
  if (!read_exactly(entry, written)) return;
  const base::Slot slot = find_receive(written.receive, written.key);
  if (slot != base::kNoSlot) sink_.on_long_received(end_receive(slot), true);
}

template <link::PacketDevice D>
bool MbcfChannel<D>::start_send(int to, Bytes data, const RemoteKey& remote_key, Cookie cookie) {
  if (!ready(to)) [[unlikely]] {
    if (lost(to)) this->queue_failed_send(cookie);
    return lost(to);
  }
  const base::Slot slot = sends_.insert();
  if (slot == base::kNoSlot) return false;
  sends_[slot] = {cookie, to, data, remote_key, 0};
  if (!remote_write_) {
    in_pieces_.push_back(slot);
    send_pieces(sends_[slot]);
    return true;
  }
  const MbcfRemoteKey content = mbcf_remote_key_of(remote_key);
  const Written written{.receive = content.receive, .key = content.key};
  // Write with notify: the engine appends the entry when all data is in place.
  const auto then = mbcf::Then::append(peer(to).writer, bytes_of(written));
  const mbcf::Remote remote{peer(to).id, {content.key}, 0};
  bool refused;
  const bool done =
      accepted(to, driver_.write(remote, data, then, with_context(kSend | slot), now()), refused);
  if (refused) {
    sends_.erase(slot);
    // Accepted although refused: the peer is lost, and there will be no completion.
    if (done) this->queue_failed_send(cookie);
  }
  return done;
}

// ---- long transfers without Remote Write -------------------------------------------------------

// A piece that finds no room is sent by a later poll. Pieces to a peer that is lost vanish;
// end_transfers() then ends the transfer.
template <link::PacketDevice D>
void MbcfChannel<D>::send_pieces(Send& send) {
  const MbcfRemoteKey key = mbcf_remote_key_of(send.remote_key);
  const std::size_t most = peer(send.to).max_single_frame - sizeof(Piece);
  const std::size_t until = send.sent + kPiecesAtATime;
  while (send.sent != send.data.size() && send.sent < until && !lost(send.to)) {
    const Bytes data = send.data.subspan(send.sent, std::min(most, send.data.size() - send.sent));
    const bool last = send.sent + data.size() == send.data.size();
    const Piece piece{.last = last, .receive = key.receive, .key = key.key, .offset = send.sent};
    if (!append(send.to, bytes_of(piece), data, kSilentBatch)) break;
    send.sent += data.size();
  }
  this->link_.push(now());
}

template <link::PacketDevice D>
bool MbcfChannel<D>::send_pieces() {
  bool any = false;
  for (std::size_t i = 0; i < in_pieces_.size();) {
    const base::Slot slot = in_pieces_[i];
    Send& send = sends_[slot];
    const std::size_t before = send.sent;
    if (send.sent != send.data.size()) send_pieces(send);
    any |= send.sent != before;
    if (send.sent != send.data.size() || lost(send.to)) {
      ++i;
      continue;
    }
    in_pieces_.erase(in_pieces_.begin() + static_cast<std::ptrdiff_t>(i));
    sends_.erase(slot);
    any = true;
    sink_.on_long_sent(send.cookie, true);
  }
  return any;
}

// Pieces come in order, and end the receive with the last one. Nothing in them is trusted.
template <link::PacketDevice D>
void MbcfChannel<D>::on_piece(Bytes entry) {
  Piece piece;
  if (entry.size() < sizeof piece) return;
  std::memcpy(&piece, entry.data(), sizeof piece);
  const Bytes data = entry.subspan(sizeof piece);
  const base::Slot slot = find_receive(piece.receive, piece.key);
  if (slot == base::kNoSlot) return;
  Receive& receive = receives_[slot];
  if (piece.offset != receive.arrived || data.size() > receive.into.size() - receive.arrived)
    return;
  std::copy(data.begin(), data.end(),
            receive.into.begin() + static_cast<std::ptrdiff_t>(receive.arrived));
  receive.arrived += data.size();
  if (piece.last != 0) sink_.on_long_received(end_receive(slot), true);
}

// ---- ends --------------------------------------------------------------------------------------

template <link::PacketDevice D>
bool MbcfChannel<D>::take_completions() {
  bool any = !in_pieces_.empty() && send_pieces();
  for (mbcf::Completion completion; driver_.next_completion(completion); any = true)
    complete(completion);
  return any;
}

template <link::PacketDevice D>
void MbcfChannel<D>::complete(const mbcf::Completion& completion) {
  const auto slot = static_cast<base::Slot>(completion.context);
  const bool ok = completion.status == Status::ok;
  switch (completion.context & kContextKind) {
    case kSend: {
      const Cookie cookie = sends_[slot].cookie;
      sends_.erase(slot);
      return sink_.on_long_sent(cookie, ok);
    }
    case kLongEntry: long_entries_.erase(slot); break;
    default: break;
  }
  // A control message was refused after it had left: the peer's FIFO is gone, or the peer does not
  // accept the entry. That does not mend itself.
  const int rank = this->rank_of(completion.peer);
  if (!ok && completion.status != Status::peer_down && rank >= 0)
    this->mark_lost(rank, mbcf::text(completion.status));
}

template <link::PacketDevice D>
void MbcfChannel<D>::end_transfers(int rank) {
  // The engine does not know whom a segment was exported for, so receives are ended here, as are
  // sends in pieces. Others end by their completions.
  for (std::size_t i = 0; i < in_pieces_.size();) {
    const base::Slot slot = in_pieces_[i];
    if (sends_[slot].to != rank) {
      ++i;
      continue;
    }
    in_pieces_.erase(in_pieces_.begin() + static_cast<std::ptrdiff_t>(i));
    const Cookie cookie = sends_[slot].cookie;
    sends_.erase(slot);
    sink_.on_long_sent(cookie, false);
  }
  receives_.for_each([&](base::Slot slot, const Receive& receive) {
    if (receive.from == rank) sink_.on_long_received(end_receive(slot), false);
  });
}

// For DPDK ports, and for the simulated network of the tests.
template class MbcfChannel<port::Port>;
template class MbcfChannel<sim::SimPort>;

std::unique_ptr<Channel> open_mbcf_channel(ChannelSink& sink, Launch& launch,
                                           std::shared_ptr<port::Port> port) {
  NetConfig config = net_config(launch, "VIADUCT_EAGER_MBCF");
  const std::string protocol = config_vars().text("VIADUCT_WRITE_PROTOCOL");
  config.remote_write = protocol != "nsr";
  if (protocol != "auto" && !config_vars().is_set("VIADUCT_EAGER_MBCF"))
    config.eager = kEagerOfPaper;
  const std::size_t fifo = config_vars().number("VIADUCT_MBCF_FIFO");
  if (!port) port = open_net_port(launch, config);
  return std::make_unique<MbcfChannel<port::Port>>(sink, launch, std::move(port), config, fifo);
}

}  // namespace viaduct::mpi
