// The channel between processes of one node: a ring in the receiver's memory for each sender, long
// transfers by copies from address space to address space.

#include <fcntl.h>
#include <linux/futex.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <memory>
#include <utility>

#include "drivers/base/unique_fd.hpp"
#include "libmpi_lite/channel/process_watch.hpp"
#include "libmpi_lite/channel/shm.hpp"
#include "libmpi_lite/channel/shm_copy.hpp"
#include "libmpi_lite/channel/shm_ring.hpp"
#include "libmpi_lite/core/config_vars.hpp"
#include "libmpi_lite/core/threads/library_lock.hpp"

namespace viaduct::mpi {
namespace {

// A control message of the channel's own: a piece of a long transfer where memory cannot be copied
// from process to process.
struct PieceHead {
  static constexpr std::byte kKind{0xf0};
  std::byte kind;
  std::byte reserved[3];
  std::uint32_t slot;
  std::uint64_t offset;
};
constexpr std::size_t kPieceBytes = 8 << 10;
static_assert(kMaxEagerShm + 128 <= kMaxInRing, "with its head");

std::string ended_text(int pid, std::string_view how) {
  return "its process on this node (pid " + std::to_string(pid) + ") " + std::string(how);
}
// Of a process that has ended and not finished.
std::string_view how_ended(Presence presence) {
  return presence == Presence::ended_early ? "has called exit() without MPI_Finalize"
                                           : "was ended by a signal or _exit()";
}

class ShmChannel final : public Channel {
 public:
  ShmChannel(ChannelSink& sink, Nodes& nodes, int size, SegmentMap segment);

  const char* name() const override { return "shm"; }
  Limits limits() const override { return {.control = kMaxInRing, .eager = eager_}; }

  bool send_control(int to, Bytes head, Bytes body) override {
    Peer* p = peer(to);
    if (!p) return true;
    if (!p->writer.write(head, body)) return false;
    if (oversubscribed_) [[unlikely]]
      std::atomic_thread_fence(std::memory_order_seq_cst);
    if (p->segment->asleep.load(std::memory_order_relaxed) != Segment::awake) [[unlikely]]
      wake(*p);
    return true;
  }
  void watch(int rank) override { peer(rank); }

  void offer(int, Bytes data, RemoteKey& offered) override {
    put(offered, CopyOffer{reinterpret_cast<std::uint64_t>(data.data())});
  }
  bool open_receive(int from, MutableBytes into, const RemoteKey* offered, Cookie cookie,
                    RemoteKey& remote_key) override;
  // Nothing is opened early, so there is nothing to take back.
  void close_receive(int, const RemoteKey&) override {}
  bool start_send(int to, Bytes data, const RemoteKey& remote_key, Cookie cookie) override;

  bool poll() override;
  void oversubscribed() override { oversubscribed_ = true; }
  void finished() override {
    segment_->presence.store(Presence::finished, std::memory_order_release);
  }
  void ends_early() override {
    segment_->presence.store(Presence::ended_early, std::memory_order_release);
  }
  bool sleep(std::chrono::microseconds most, int bell) override;
  void end_sleep() override;
  bool arm_bell(int& bell) override;
  void disarm_bell() override;
  bool sleeps_lightly() const override { return true; }
  bool shares_cpu() override;
  bool busy() const override { return !copies_.empty() || !streams_.empty(); }
  std::string describe(int to) const override;
  std::optional<std::chrono::nanoseconds> last_seen(int rank) const override;
  std::string dump(int rank) const override;

 private:
  struct Peer {
    Peer(SegmentMap map, Ring& ring, CopyPeer copy)
        : segment(std::move(map)), writer(ring), copy(copy), process(copy.pid) {}
    SegmentMap segment;
    RingWriter writer;
    CopyPeer copy;
    ProcessWatch process;
  };
  struct PeerFailure {
    int rank;
    std::string why;
  };
  struct IncomingRing {
    int from;
    bool had_message;  // there was a message at the last poll
    RingReader reader;
  };
  struct Stream {  // sender's side of a transfer in control messages
    Copy copy;
    std::uint32_t slot;
    std::uint64_t sent = 0;
  };

  template <class T>
  static void put(RemoteKey& remote_key, const T& t) {
    static_assert(sizeof t <= RemoteKey::kMax);
    std::memcpy(remote_key.bytes.data(), &t, sizeof t);
  }
  template <class T>
  static T get(const RemoteKey& remote_key) {
    T t;
    std::memcpy(&t, remote_key.bytes.data(), sizeof t);
    return t;
  }

  // nullptr: it is lost.
  Peer* peer(int rank) {
    Peer* p = peers_[static_cast<std::size_t>(rank)].get();
    return p ? p : connect(rank);
  }
  Peer* connect(int rank);
  void divide_ring_memory();
  std::unique_ptr<Peer> attach(int rank);
  SegmentMap open_segment(const NodeInfo& card) const;
  void find_rings();
  bool read(IncomingRing& in);
  void on_piece(Bytes message);
  [[gnu::noinline]] bool
  progress_transfers();  // not in poll(), which is what a waiting process does
  bool progress_copies();
  bool progress_streams();
  void end_copy(const Copy& copy, bool ok);
  void check_liveness();
  int publish_cpu();
  void on_peer_failure(int rank, const std::string& why);
  bool fall_asleep(Segment::Asleep how);
  [[gnu::noinline]] static void wake(const Peer& peer);

  // The clock is not read more often than that. Every poll counts: this process may be busy with
  // others for ever. Not many, as a program may poll only now and then.
  static constexpr unsigned kPollsBetweenChecks = 128;
  static constexpr std::size_t kRingMemoryBudget = 512 << 10;  // of all rings that it writes

  ChannelSink& sink_;
  Nodes& nodes_;
  const int rank_;
  const std::size_t eager_;
  const bool cma_;
  SegmentMap segment_;
  CopySlots slots_;
  std::vector<std::unique_ptr<Peer>> peers_;   // by rank; those that are connected
  std::vector<bool> lost_;                     // by rank
  std::vector<PeerFailure> pending_failures_;  // of which the sink is to hear at the next poll
  std::vector<IncomingRing> incoming_rings_;
  std::vector<Copy> copies_;  // both directions
  std::vector<Stream> streams_;
  bool oversubscribed_ = false;
  base::UniqueFd bell_, bell_write_end_;  // a pipe to sleep on, made when it is first needed
  unsigned polls_ = 0;                    // since the last check
  std::chrono::steady_clock::time_point last_check_;
};

ShmChannel::ShmChannel(ChannelSink& sink, Nodes& nodes, int size, SegmentMap segment)
    : sink_(sink),
      nodes_(nodes),
      rank_(nodes.rank()),
      eager_(config_vars().number("VIADUCT_EAGER_SHM")),
      cma_(config_vars().on("VIADUCT_CMA")),
      segment_(std::move(segment)),
      slots_(*segment_),
      peers_(static_cast<std::size_t>(size)),
      lost_(static_cast<std::size_t>(size)) {
  incoming_rings_.reserve(segment_->rings);
  publish_cpu();
  // What has file capabilities (as setcap gives them for ports) starts closed to all others:
  // neither its descriptors nor its memory can be had. Open as any program, to the same user with
  // the same capabilities; which allows core dumps and debuggers, too.
  ::prctl(PR_SET_DUMPABLE, 1, 0, 0, 0);
  // Others may copy from and into this process; where only descendants may (Yama), this allows it.
  if (cma_) ::prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY, 0, 0, 0);
}

// Called from anywhere, so a failure must wait for the next poll.
ShmChannel::Peer* ShmChannel::connect(int rank) {
  const auto at = static_cast<std::size_t>(rank);
  if (lost_[at]) return nullptr;
  try {
    peers_[at] = attach(rank);
    divide_ring_memory();
  } catch (const base::SetupError& error) {
    lost_[at] = true;
    pending_failures_.push_back({rank, error.what()});
    polls_ = kPollsBetweenChecks;
  }
  return peers_[at].get();
}

// What a process fills in others' rings while they keep pace is bounded by the budget; by two pages
// for each where it writes to more than 64.
void ShmChannel::divide_ring_memory() {
  const auto peers = std::count_if(peers_.begin(), peers_.end(), [](const auto& p) { return !!p; });
  for (const auto& peer : peers_)
    if (peer) peer->writer.set_memory_budget(kRingMemoryBudget / static_cast<std::size_t>(peers));
}

// A process that is just ending has no descriptors any more, a moment before it has ended.
SegmentMap ShmChannel::open_segment(const NodeInfo& card) const {
  const ProcessWatch process(card.pid);
  const auto gone = [&] {
    return base::SetupError(ended_text(card.pid, "has ended without MPI_Finalize"));
  };
  if (process.ended()) throw gone();
  try {
    return SegmentMap::open(card.pid, card.segment, static_cast<std::uint32_t>(peers_.size()));
  } catch (const base::SetupError&) {
    if (process.ended(std::chrono::milliseconds(100))) throw gone();
    throw;
  }
}

std::unique_ptr<ShmChannel::Peer> ShmChannel::attach(int rank) {
  const NodeInfo& card = nodes_.card(rank);
  SegmentMap segment = open_segment(card);
  // There is one for each process of the job, and each takes one.
  Ring* const ring = segment->claim(rank_);
  if (ring == nullptr)
    throw base::SetupError("the shared memory of process " + std::to_string(card.pid) +
                           " has no ring left for this one");
  const CopyPeer copy{card.pid, cma_ && reaches_memory(card.pid, card.address)};
  return std::make_unique<Peer>(std::move(segment), *ring, copy);
}

void ShmChannel::find_rings() {
  // Others can write to the segment: its own word about its size is not believed.
  const std::size_t claimed =
      std::min<std::size_t>(segment_->claimed.load(std::memory_order_acquire), peers_.size());
  while (incoming_rings_.size() < claimed) {
    Ring& ring = segment_->ring(static_cast<std::uint32_t>(incoming_rings_.size()));
    const std::uint32_t writer = ring.writer.load(std::memory_order_acquire);
    if (writer == 0 || writer > peers_.size()) return;  // nobody of ours has written that
    const int from = static_cast<int>(writer) - 1;
    incoming_rings_.push_back({from, false, RingReader(ring)});
    watch(from);
  }
}

// ---- control messages --------------------------------------------------------------------------

bool ShmChannel::read(IncomingRing& in) {
  Bytes message = in.reader.front();
  if (message.empty()) [[likely]]
    return in.had_message = false;
  // A look at the word behind the last message is a miss: the writer has just made it 0. Who waits
  // for one message should not wait for that, too.
  constexpr int kMaxAtOnce = 64;  // so that the other rings get their turn
  int left = in.had_message ? kMaxAtOnce : 1;
  in.had_message = true;
  do {
    if (message[0] == PieceHead::kKind)
      on_piece(message);
    else
      sink_.on_control(in.from, message);
    in.reader.pop();
  } while (--left != 0 && !(message = in.reader.front()).empty());
  return true;
}

bool ShmChannel::poll() {
  bool any = false;
  if (segment_->claimed.load(std::memory_order_relaxed) != incoming_rings_.size()) [[unlikely]]
    find_rings();
  for (IncomingRing& in : incoming_rings_) any |= read(in);
  if (busy()) any |= progress_transfers();
  if (++polls_ >= kPollsBetweenChecks) [[unlikely]] {
    polls_ = 0;
    publish_cpu();
    check_liveness();
  }
  return any;
}

// ---- sleeping ----------------------------------------------------------------------------------

void ring_bell(int pid, int bell) {
  char path[48];
  std::snprintf(path, sizeof path, "/proc/%d/fd/%d", pid, bell);
  const base::UniqueFd fd(::open(path, O_WRONLY | O_NONBLOCK | O_CLOEXEC));
  if (!fd) return;  // it wakes by itself, soon
  [[maybe_unused]] const ssize_t written = ::write(fd.get(), "", 1);
}

void ShmChannel::wake(const Peer& peer) {
  Segment& segment = *peer.segment;
  switch (segment.asleep.exchange(Segment::awake, std::memory_order_relaxed)) {
    case Segment::on_futex:
      ::syscall(SYS_futex, &segment.asleep, FUTEX_WAKE, 1, nullptr, nullptr, 0);
      break;
    case Segment::on_bell: ring_bell(peer.copy.pid, segment.bell.load()); break;
    default: break;  // somebody else has woken it
  }
}

// The receiver says that it sleeps and then looks into its rings once more; the sender writes its
// message and then looks whether the receiver sleeps: whoever comes second sees what the other has
// done. For that, the sender of a job that shares CPUs has a fence between the two. Elsewhere
// processes sleep only after a long wait, and the sleeper waits for a system call's time instead,
// longer than a store is on its way to the other CPU: messages need no fence. Should that ever be
// too short, the sleeper wakes by itself, soon. Where the two are on one CPU, nothing is on its
// way, and a call that let the other one run would put off the sleep from which that one's message
// wakes this process on another CPU.
bool ShmChannel::fall_asleep(Segment::Asleep how) {
  segment_->asleep.store(how, std::memory_order_relaxed);
  std::atomic_thread_fence(std::memory_order_seq_cst);
  if (!oversubscribed_ && !shares_cpu()) ::sched_yield();
  return !poll();
}

bool ShmChannel::sleep(std::chrono::microseconds most, int) {
  if (busy()) return false;
  if (fall_asleep(Segment::on_futex)) {
    const auto seconds = std::chrono::floor<std::chrono::seconds>(most);
    const timespec limit{seconds.count(), std::chrono::nanoseconds(most - seconds).count()};
    bool in_vain;
    {
      const LibraryLock::Unlocked others_turn;
      const long woken = ::syscall(SYS_futex, &segment_->asleep, FUTEX_WAIT, Segment::on_futex,
                                   &limit, nullptr, 0);
      in_vain = woken != 0 && errno == ETIMEDOUT;
    }
    if (in_vain) check_liveness();
  }
  segment_->asleep.store(Segment::awake, std::memory_order_relaxed);
  return true;
}

void ShmChannel::end_sleep() {
  switch (segment_->asleep.exchange(Segment::awake, std::memory_order_relaxed)) {
    case Segment::on_futex:
      ::syscall(SYS_futex, &segment_->asleep, FUTEX_WAKE, 1, nullptr, nullptr, 0);
      break;
    case Segment::on_bell: {
      [[maybe_unused]] const ssize_t rung = ::write(bell_write_end_.get(), "", 1);
      break;
    }
    default: break;  // an arrival has
  }
}

bool ShmChannel::arm_bell(int& bell) {
  if (busy()) return false;
  if (!bell_) {
    int ends[2];
    if (::pipe2(ends, O_NONBLOCK | O_CLOEXEC) != 0) return false;
    bell_ = base::UniqueFd(ends[0]);
    bell_write_end_ = base::UniqueFd(ends[1]);
    segment_->bell.store(ends[1]);
  }
  bell = bell_.get();
  if (fall_asleep(Segment::on_bell)) return true;
  disarm_bell();
  return false;
}

void ShmChannel::disarm_bell() {
  segment_->asleep.store(Segment::awake, std::memory_order_relaxed);
  char rings[16];
  [[maybe_unused]] const ssize_t rung = ::read(bell_.get(), rings, sizeof rings);
  check_liveness();
}

// ---- sharing a CPU -----------------------------------------------------------------------------

int ShmChannel::publish_cpu() {
  const int cpu = ::sched_getcpu();
  // Others read it: the line is taken from them only where there is something new.
  if (segment_->cpu.load(std::memory_order_relaxed) != cpu)
    segment_->cpu.store(cpu, std::memory_order_relaxed);
  return cpu;
}

bool ShmChannel::shares_cpu() {
  const int cpu = publish_cpu();
  return cpu >= 0 && std::any_of(peers_.begin(), peers_.end(), [cpu](const auto& peer) {
           return peer && peer->segment->cpu.load(std::memory_order_relaxed) == cpu &&
                  peer->segment->asleep.load(std::memory_order_relaxed) == Segment::awake;
         });
}

// ---- long transfers ----------------------------------------------------------------------------

bool ShmChannel::open_receive(int from, MutableBytes into, const RemoteKey* offered, Cookie cookie,
                              RemoteKey& remote_key) {
  Peer* p = peer(from);
  if (!p) return false;
  std::uint32_t name;
  CopySlot* slot = slots_.take(name);
  if (!slot) return false;
  const bool fetches = offered && p->copy.reachable;
  put(remote_key,
      CopyKey{name, fetches, reinterpret_cast<std::uint64_t>(into.data()), into.size()});
  copies_.push_back({.slot = slot,
                     .local = into.data(),
                     .remote = offered ? get<CopyOffer>(*offered).address : 0,
                     .length = into.size(),
                     .cookie = cookie,
                     .peer = from,
                     .pid = p->copy.pid,
                     .participates = fetches,
                     .sending = false});
  return true;
}

bool ShmChannel::start_send(int to, Bytes data, const RemoteKey& remote_key, Cookie cookie) {
  Peer* p = peer(to);
  const auto t = get<CopyKey>(remote_key);
  if (!p || t.slot >= kCopySlots) return false;
  Copy copy{.slot = &p->segment->copies[t.slot],
            .local = const_cast<std::byte*>(data.data()),
            .remote = t.address,
            .length = std::min<std::uint64_t>(t.length, data.size()),
            .cookie = cookie,
            .peer = to,
            .pid = p->copy.pid,
            .participates = p->copy.reachable,
            .sending = true};
  if (p->copy.reachable || t.fetches)
    copies_.push_back(copy);
  else
    streams_.push_back({copy, t.slot});
  return true;
}

bool ShmChannel::progress_transfers() {
  const bool any = progress_copies();
  return progress_streams() || any;
}

bool ShmChannel::progress_copies() {
  bool any = false;
  for (std::size_t i = 0; i < copies_.size();) {
    bool moved;
    const CopyState state = copy_next_piece(copies_[i], copies_.size() == 1, moved);
    any |= moved;
    if (state == CopyState::working) {
      ++i;
      continue;
    }
    const Copy ended = copies_[i];
    copies_[i] = copies_.back();
    copies_.pop_back();
    end_copy(ended, state == CopyState::done);
    any = true;
  }
  return any;
}

void ShmChannel::end_copy(const Copy& copy, bool ok) {
  if (copy.sending) {
    copy.slot->sender_done.store(1, std::memory_order_release);
    sink_.on_long_sent(copy.cookie, ok);
  } else {
    slots_.release(static_cast<std::uint32_t>(copy.slot - segment_->copies));
    sink_.on_long_received(copy.cookie, ok);
  }
}

bool ShmChannel::progress_streams() {
  bool any = false;
  for (std::size_t i = 0; i < streams_.size();) {
    Stream& s = streams_[i];
    while (s.sent < s.copy.length) {
      const PieceHead head{PieceHead::kKind, {}, s.slot, s.sent};
      const std::size_t bytes = std::min<std::uint64_t>(kPieceBytes, s.copy.length - s.sent);
      const Bytes head_bytes{reinterpret_cast<const std::byte*>(&head), sizeof head};
      if (!send_control(s.copy.peer, head_bytes, {s.copy.local + s.sent, bytes})) break;
      s.sent += bytes;
      any = true;
    }
    if (s.sent < s.copy.length) {
      ++i;
      continue;
    }
    const Copy sent = s.copy;
    streams_[i] = streams_.back();
    streams_.pop_back();
    end_copy(sent, true);
  }
  return any;
}

void ShmChannel::on_piece(Bytes message) {
  PieceHead head;
  if (message.size() < sizeof head) return;
  std::memcpy(&head, message.data(), sizeof head);
  const Bytes data = message.subspan(sizeof head);
  if (head.slot >= kCopySlots) return;
  CopySlot* slot = &segment_->copies[head.slot];
  for (const Copy& c : copies_) {
    if (c.slot != slot || c.sending) continue;
    if (head.offset > c.length || data.size() > c.length - head.offset) return;
    std::memcpy(c.local + head.offset, data.data(), data.size());
    slot->done.fetch_add(data.size(), std::memory_order_acq_rel);
    return;
  }
}

// ---- the end of others -------------------------------------------------------------------------

void ShmChannel::check_liveness() {
  for (const PeerFailure& failure : std::exchange(pending_failures_, {}))
    on_peer_failure(failure.rank, failure.why);
  const auto now = std::chrono::steady_clock::now();
  if (now - last_check_ < std::chrono::milliseconds(20)) return;
  last_check_ = now;
  segment_->seen.store(now.time_since_epoch().count(), std::memory_order_relaxed);
  for (std::size_t rank = 0; rank < peers_.size(); ++rank) {
    const Peer* p = peers_[rank].get();
    if (!p || !p->process.ended()) continue;
    const Presence presence = p->segment->presence.load(std::memory_order_acquire);
    if (presence != Presence::finished)
      on_peer_failure(static_cast<int>(rank), ended_text(p->copy.pid, how_ended(presence)));
  }
}

// Whatever it has said and moved before comes first.
void ShmChannel::on_peer_failure(int rank, const std::string& why) {
  lost_[static_cast<std::size_t>(rank)] = true;
  const std::unique_ptr<Peer> peer = std::move(peers_[static_cast<std::size_t>(rank)]);
  find_rings();
  for (std::size_t i = 0; i < incoming_rings_.size(); ++i)
    while (incoming_rings_[i].from == rank && read(incoming_rings_[i])) continue;
  progress_copies();
  for (std::size_t i = copies_.size(); i-- > 0;)
    if (copies_[i].peer == rank) {
      const Copy copy = copies_[i];
      copies_.erase(copies_.begin() + static_cast<std::ptrdiff_t>(i));
      end_copy(copy, false);
    }
  std::erase_if(streams_, [&](const Stream& s) { return s.copy.peer == rank; });
  sink_.on_peer_lost(rank, why);
}

std::optional<std::chrono::nanoseconds> ShmChannel::last_seen(int rank) const {
  const Peer* p = peers_[static_cast<std::size_t>(rank)].get();
  const std::int64_t seen = p ? p->segment->seen.load(std::memory_order_relaxed) : 0;
  if (seen == 0) return {};
  const auto now = std::chrono::steady_clock::now().time_since_epoch();
  return std::max(now - std::chrono::nanoseconds(seen), std::chrono::nanoseconds(0));
}

std::string ShmChannel::dump(int rank) const {
  const Peer* p = peers_[static_cast<std::size_t>(rank)].get();
  if (!p) return {};
  std::string text = "pid " + std::to_string(p->copy.pid) + ", " +
                     std::to_string(p->writer.unread()) + " bytes in the ring not known to be read";
  if (p->segment->asleep.load(std::memory_order_relaxed) != 0) text += ", it sleeps";
  for (const Copy& c : copies_)
    if (c.peer == rank)
      text += std::string(c.sending ? "; sends " : "; receives ") + std::to_string(c.length) +
              " bytes, " + std::to_string(c.slot->done.load(std::memory_order_relaxed)) + " done";
  for (const Stream& s : streams_)
    if (s.copy.peer == rank)
      text += "; sends " + std::to_string(s.copy.length) + " bytes in pieces, " +
              std::to_string(s.sent) + " done";
  return text + '\n';
}

std::string ShmChannel::describe(int to) const {
  const Peer* p = peers_[static_cast<std::size_t>(to)].get();
  if (lost_[static_cast<std::size_t>(to)]) return "shm, ended";
  std::string text = "shm, ring of " + std::to_string(sizeof(Ring) >> 10) + " KiB, long messages ";
  return text + (!p || p->copy.reachable ? "copied by both ends"
                 : cma_ ? "in pieces, as this process may not reach the other's memory"
                        : "in pieces, as VIADUCT_CMA=off says");
}

}  // namespace

std::unique_ptr<Channel> open_shm_channel(ChannelSink& sink, Nodes& nodes, int size) {
  // Of which there are as many as processes on this node, the launcher need not know.
  SegmentMap segment = SegmentMap::create(static_cast<std::uint32_t>(size));
  NodeInfo card = Nodes::own();
  card.segment = segment.fd();
  card.address = reinterpret_cast<std::uint64_t>(&*segment);
  nodes.publish(card);
  return std::make_unique<ShmChannel>(sink, nodes, size, std::move(segment));
}

}  // namespace viaduct::mpi
