// The MBCF channel: control messages as FIFO entries, long transfers as Remote Writes with notify.
// drivers/mbcf/engine.hpp has the requests; net_impl.hpp has connection set-up and loss of peers.
#include "libmpi_lite/channel/mbcf.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

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
// A control message may follow: it belongs to the data.
struct Written {
  ChannelMessage kind = ChannelMessage::written;
  std::uint8_t reserved[7] = {};
  mbcf::Key key;  // of the buffer: names the receive, and proves that the sender was given it
};
struct Piece {
  ChannelMessage kind = ChannelMessage::piece;
  std::uint8_t last;  // 1: the transfer ends with this piece
  std::uint8_t reserved[6] = {};
  mbcf::Key key;         // as in Written
  std::uint64_t offset;  // bytes that were sent in pieces before
};
static_assert(sizeof(Introduction) == 16 && sizeof(Written) == 16 && sizeof(Piece) == 24);

// The content of a RemoteKey: the key of the segment. Key{}: the peer was lost before this receive
// was opened.
mbcf::Key key_of(const RemoteKey& remote_key) {
  mbcf::Key key;
  std::memcpy(&key, remote_key.bytes.data(), sizeof key);
  return key;
}

// Where the engine's table of keys has that key (mbcf::Key).
std::size_t place_of(mbcf::Key key) {
  return key.value & 0xffff;
}

// The entry that tells of data, with the head that belongs to it.
class WrittenEntry {
 public:
  WrittenEntry(mbcf::Key key, Bytes head) : size_(sizeof(Written) + head.size()) {
    const Written written{.key = key};
    std::memcpy(bytes_.data(), &written, sizeof written);
    if (!head.empty()) std::memcpy(bytes_.data() + sizeof written, head.data(), head.size());
  }
  Bytes bytes() const { return Bytes(bytes_).first(size_); }

 private:
  std::array<std::byte, sizeof(Written) + Channel::kMaxWrittenHead> bytes_;
  std::size_t size_;
};
static_assert(sizeof(Written) + Channel::kMaxWrittenHead <= mbcf::kMaxChainedEntry);

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
// Bytes of a message that is written at once: as a rule the link has room for so much.
constexpr std::size_t kMaxWrittenNow = 64u << 10;
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
      receives_(net_transfers(launch.size()) + 1),  // one place for the FIFO's key, not used
      sends_(net_transfers(launch.size()), 0),
      long_entries_(kMaxLongEntries, 0) {
  if (!remote_write_) in_pieces_.reserve(net_transfers(launch.size()));
  this->publish(fifo_->key().value);
}

template <link::PacketDevice D>
std::string MbcfChannel<D>::detail() const {
  return "FIFO of " + std::to_string(fifo_->capacity() >> 10) + " KiB";
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
    case ChannelMessage::written: on_written(from, entry); break;
    case ChannelMessage::piece: on_piece(entry); break;
  }
}

// ---- long transfers --------------------------------------------------------------------------

template <link::PacketDevice D>
bool MbcfChannel<D>::open_receive(int from, MutableBytes into, const RemoteKey*, Cookie cookie,
                                  RemoteKey& remote_key) {
  mbcf::Key key;
  // No connection is needed: the key alone lets the sender in.
  if (lost(from)) {
    this->queue_failed_receive(cookie);
  } else {
    // Without Remote Write the key still names the receive, but gives no right.
    key = driver_.export_segment(into, remote_write_ ? mbcf::Rights::write : mbcf::Rights::none);
    if (!key) return false;
    receives_[place_of(key)] = {key, cookie, from, into, 0};
  }
  std::memcpy(remote_key.bytes.data(), &key, sizeof key);
  return true;
}

template <link::PacketDevice D>
void MbcfChannel<D>::close_receive(int, const RemoteKey& remote_key) {
  // The transfer may be over.
  if (Receive* const receive = find_receive(key_of(remote_key))) end_receive(*receive);
}

template <link::PacketDevice D>
auto MbcfChannel<D>::find_receive(mbcf::Key key) -> Receive* {
  const std::size_t place = place_of(key);
  if (!key || place >= receives_.size() || receives_[place].key != key) return nullptr;
  return &receives_[place];
}

template <link::PacketDevice D>
Cookie MbcfChannel<D>::end_receive(Receive& receive) {
  driver_.withdraw(std::exchange(receive.key, {}));
  return receive.cookie;
}

// The head that came with the data goes first; the sink may do anything then, so the receive is
// looked for once more.
template <link::PacketDevice D>
void MbcfChannel<D>::on_written(link::PeerId from, Bytes entry) {
  Written written;
  if (entry.size() < sizeof written) return;
  std::memcpy(&written, entry.data(), sizeof written);
  const int rank = this->rank_of(from);
  Receive* receive = find_receive(written.key);
  if (receive == nullptr || receive->from != rank) return;
  if (const Bytes head = entry.subspan(sizeof written); !head.empty()) {
    sink_.on_control(rank, head);
    receive = find_receive(written.key);
  }
  if (receive != nullptr) sink_.on_long_received(end_receive(*receive), true);
}

template <link::PacketDevice D>
bool MbcfChannel<D>::write_now(int to, Bytes data, const RemoteKey& remote_key, Bytes head) {
  if (!ready(to)) [[unlikely]]
    return lost(to);
  const MbcfPeer& p = peer(to);
  const mbcf::Key key = key_of(remote_key);
  const WrittenEntry entry(key, head);
  const auto then = mbcf::Then::append(p.writer, entry.bytes());
  // Data of the last request. max_single_frame is that of an appended entry, whose message has a
  // target, too.
  const std::size_t most = p.max_single_frame - sizeof(mbcf::ThenHead) - entry.bytes().size();
  bool refused;
  if (data.size() <= most) [[likely]]
    return accepted(to, driver_.write({p.id, key, 0}, data, then, kSilent, now()), refused);
  return data.size() <= kMaxWrittenNow && write_row(to, key, data, most, then);
}

// More than a frame: a row of writes on the lane of short requests, where they stay in order with
// the last one, which has the entry. There must be room for all: data that went another way could
// overtake what is left of half a row, and end the receive before that arrives.
template <link::PacketDevice D>
bool MbcfChannel<D>::write_row(int to, mbcf::Key key, Bytes data, std::size_t last,
                               const mbcf::Then& then) {
  const MbcfPeer& p = peer(to);
  const std::size_t requests = data.size() / p.max_single_frame + 2;
  if (!driver_.secure(p.writer, requests, then.entry.size(), now())) return false;
  std::size_t sent = 0;
  Status status = Status::ok;
  while (status == Status::ok && data.size() - sent > last) {
    const Bytes piece = data.subspan(sent, std::min(p.max_single_frame, data.size() - sent));
    status = driver_.write({p.id, key, sent}, piece, kSilentBatch, now()).status;
    sent += piece.size();
  }
  if (status == Status::ok)
    status = driver_.write({p.id, key, sent}, data.subspan(sent), then, kSilentBatch, now()).status;
  this->link_.push(now());
  // As in accepted(), the peer is lost then, and the message vanishes.
  if (status != Status::ok && status != Status::peer_down) this->mark_lost(to, mbcf::text(status));
  return true;
}

template <link::PacketDevice D>
bool MbcfChannel<D>::start_send(int to, Bytes data, const RemoteKey& remote_key, Cookie cookie) {
  if (!ready(to)) [[unlikely]] {
    if (lost(to)) this->queue_failed_send(cookie);
    return lost(to);
  }
  const base::Slot slot = sends_.insert();
  if (slot == base::kNoSlot) return false;
  sends_[slot] = {cookie, to, data, remote_key, 0, false};
  if (!remote_write_) {
    in_pieces_.push_back(slot);
    send_pieces(sends_[slot]);
    return true;
  }
  const mbcf::Key key = key_of(remote_key);
  const WrittenEntry entry(key, {});
  // Write with notify: the engine appends the entry when all data is in place.
  const auto then = mbcf::Then::append(peer(to).writer, entry.bytes());
  const mbcf::Remote remote{peer(to).id, key, 0};
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
  const mbcf::Key key = key_of(send.remote_key);
  const std::size_t most = peer(send.to).max_single_frame - sizeof(Piece);
  const std::size_t until = send.sent + kPiecesAtATime;
  while (!send.whole && send.sent < until && !lost(send.to)) {
    const Bytes data = send.data.subspan(send.sent, std::min(most, send.data.size() - send.sent));
    const bool last = send.sent + data.size() == send.data.size();
    const Piece piece{.last = last, .key = key, .offset = send.sent};
    if (!append(send.to, bytes_of(piece), data, kSilentBatch)) break;
    send.sent += data.size();
    send.whole = last;
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
    if (!send.whole) send_pieces(send);
    any |= send.sent != before;
    if (!send.whole || lost(send.to)) {
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
  Receive* const receive = find_receive(piece.key);
  if (receive == nullptr || piece.offset != receive->arrived ||
      data.size() > receive->into.size() - receive->arrived)
    return;
  if (!data.empty()) std::memcpy(receive->into.data() + receive->arrived, data.data(), data.size());
  receive->arrived += data.size();
  if (piece.last != 0) sink_.on_long_received(end_receive(*receive), true);
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
  for (Receive& receive : receives_)
    if (receive.key && receive.from == rank) sink_.on_long_received(end_receive(receive), false);
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
