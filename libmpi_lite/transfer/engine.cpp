// The parts of the engine that all protocols share: peers, the backlog of what found no room in a
// channel, the table of requests with ids, dispatch of control messages to their handlers, and
// progress. The handlers are in the files of their protocols (see engine.hpp).
#include "libmpi_lite/transfer/engine.hpp"

#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>

#include "libmpi_lite/core/error.hpp"
#include "libmpi_lite/core/threads/library_lock.hpp"

namespace viaduct::mpi {
namespace {

// Splits the message into a head of type T and the rest; false: the message is too short.
template <class T>
bool take_head(Bytes message, T& head, Bytes& rest) {
  if (message.size() < sizeof head) return false;
  std::memcpy(&head, message.data(), sizeof head);
  rest = message.subspan(sizeof head);
  return true;
}

}  // namespace

Transfer::Transfer(const OpenChannels& open, ChooseChannel choose, int rank, int size,
                   const TransferConfig& config)
    : rank_(rank),
      config_(config),
      channels_(open(*this)),
      choose_(std::move(choose)),
      counters_(channels_.size()),
      peers_(static_cast<std::size_t>(size)),
      open_rtrs_(channels_.size()) {
  self_ = this;
}

Transfer::~Transfer() {
  self_ = nullptr;
}

// ---- peers -------------------------------------------------------------------------------------

Transfer::Peer& Transfer::open_peer(int process) {
  auto p = std::make_unique<Peer>();
  p->rank = process;
  p->channel = choose_(process);
  p->through = channels_[p->channel].get();
  const Channel::Limits limits = p->through->limits();
  // SyncHead is the longest head in front of eager data.
  p->eager_limit = std::min(limits.eager, limits.control - sizeof(SyncHead));
  p->write_protocol = limits.early != 0 && config_.write_protocol != WriteProtocol::nsr;
  p->writes_now = limits.writes_now;
  p->early = limits.early;
  p->rtr_bytes = rtr_bytes(limits);
  // Where a write costs a long transfer and a message, short messages are not worth it.
  const bool all = config_.write_protocol == WriteProtocol::sr && limits.writes_now;
  p->least_written = all ? 0 : p->eager_limit + 1;
  p->most_rtrs = all ? std::min(limits.control, kRtrsTogether) : p->rtr_bytes;
  p->through->watch(process);
  return *(peers_[static_cast<std::size_t>(process)] = std::move(p));
}

// Control messages to one peer must stay in order, as matching depends on it: while older ones
// wait, a new one joins them even if the channel had room.
void Transfer::send_control(Peer& peer, Bytes head, Bytes body, Ref<SendRequest> completes,
                            bool copy_body) {
  if (peer.outgoing.empty() && peer.through->send_control(peer.rank, head, body)) [[likely]] {
    if (completes) finish(*completes);
    return;
  }
  Outgoing& out = peer.outgoing.emplace_back();
  std::memcpy(out.head.data(), head.data(), head.size());
  out.head_bytes = head.size();
  out.body = body;
  if (copy_body && !body.empty()) {
    out.copy.reset(new std::byte[body.size()]);
    std::memcpy(out.copy.get(), body.data(), body.size());
    out.body = {out.copy.get(), body.size()};
  }
  out.completes = std::move(completes);
  add_to_backlog_list(peer);
}

bool Transfer::try_send_rma(int process, Bytes head, Bytes body) {
  Peer& p = peer(process);
  return p.lost || (p.outgoing.empty() && p.through->send_control(process, head, body));
}

void Transfer::send_rma(int process, Bytes head, Bytes body) {
  Peer& p = peer(process);
  if (!p.lost) send_control(p, head, body, nullptr, true);
}

void Transfer::add_to_backlog_list(Peer& peer) {
  if (peer.in_backlog_list) return;
  peer.in_backlog_list = true;
  backlogged_.push_back(&peer);
}

bool Transfer::send_pending() {
  bool any = false;
  for (std::size_t i = 0; i < backlogged_.size();) {
    Peer& p = *backlogged_[i];
    any |= send_pending(p);
    if (backlogged(p)) {
      ++i;
    } else {
      p.in_backlog_list = false;
      backlogged_[i] = backlogged_.back();
      backlogged_.pop_back();
    }
  }
  return any;
}

// Control messages come first, as send_cts() sends one. All three queues are first in, first out.
bool Transfer::send_pending(Peer& p) {
  bool any = false;
  while (!p.outgoing.empty()) {
    Outgoing& out = p.outgoing.front();
    if (!p.through->send_control(p.rank, {out.head.data(), out.head_bytes}, out.body)) return any;
    const Ref<SendRequest> completes = std::move(out.completes);
    p.outgoing.pop_front();
    if (completes) finish(*completes);
    any = true;
  }
  while (!p.ready.empty()) {
    const Ready& r = p.ready.front();
    if (!p.through->start_send(p.rank, r.data, r.remote_key, r.send->id)) return any;
    p.ready.pop_front();
    any = true;
  }
  while (!p.cts_due.empty() && send_cts(*p.cts_due.front())) {
    p.cts_due.pop_front();
    any = true;
  }
  return any;
}

// ---- operations --------------------------------------------------------------------------------

void Transfer::register_request(Operation& operation) {
  if (operation.id != 0) return;
  operation.id = pending_.add(Ref<Request>(&operation));
  if (operation.id == 0) throw Error(MPI_ERR_NO_MEM, "there are too many operations under way");
}

// Ids come from other processes, so the kind is checked: an id of another kind of request is
// malformed and not a reason to crash.
template <class T>
T* Transfer::pending(std::uint64_t id) const {
  Request* const request = pending_.find(id);
  return request && request->kind == T::kKind ? static_cast<T*>(request) : nullptr;
}

template <class T>
Ref<T> Transfer::find(std::uint64_t id, const Peer& from) {
  T* const operation = pending<T>(id);
  return operation && operation->peer == from.rank ? Ref<T>(operation) : nullptr;
}
template Ref<SendRequest> Transfer::find(std::uint64_t, const Peer&);
template Ref<ReceiveRequest> Transfer::find(std::uint64_t, const Peer&);

void Transfer::fail(Operation& operation, int error) {
  if (operation.kind == Request::Kind::receive)
    release_rtr(static_cast<ReceiveRequest&>(operation));
  operation.error = error;
  operation.status.MPI_ERROR = error;
  finish(operation);
}

bool Transfer::malformed(Peer& peer) {
  ++counters_[peer.channel].malformed;
  return false;
}

// ---- events of the channels --------------------------------------------------------------------

void Transfer::on_control(int from, Bytes message) {
  Peer& p = peer(from);
  if (message.empty()) return void(malformed(p));
  Bytes rest;
  // Most messages are short eager ones; the test spares them the jump table.
  if (message[0] == std::byte{static_cast<std::uint8_t>(Kind::eager_short)}) [[likely]] {
    ShortHead head;
    return take_head(message, head, rest) ? on_eager(p, head.head(), rest, 0) : void(malformed(p));
  }
  // Calls the handler for a message that starts with a T.
  const auto as = [&]<class T>(T head, auto handle) {
    take_head(message, head, rest) ? void(handle(head)) : void(malformed(p));
  };
  switch (static_cast<Kind>(message[0])) {
    case Kind::eager: return as(Head{}, [&](const Head& h) { on_eager(p, h, rest, 0); });
    case Kind::eager_sync:
      return as(SyncHead{}, [&](const SyncHead& h) { on_eager(p, h.head, rest, h.send); });
    case Kind::request_to_send: return as(RtsHead{}, [&](const RtsHead& h) { on_rts(p, h); });
    case Kind::matched: return as(IdHead{}, [&](const IdHead& h) { on_matched(p, h); });
    case Kind::clear_to_send: return as(CtsHead{}, [&](const CtsHead& h) { on_cts(p, h); });
    case Kind::ready_to_receive: return on_rtrs(p, message);
    case Kind::written: return as(WrittenHead{}, [&](const WrittenHead& h) { on_written(p, h); });
    case Kind::cancel_send: return as(IdHead{}, [&](const IdHead& h) { on_cancel_send(p, h); });
    case Kind::cancel_want: return as(IdHead{}, [&](const IdHead& h) { on_cancel_want(p, h); });
    case Kind::cancelled:
      return as(CancelledHead{}, [&](const CancelledHead& h) { on_cancelled(p, h); });
    case Kind::consumed:
      return as(ConsumedHead{}, [&](const ConsumedHead& h) { on_consumed(p, h); });
    case Kind::loss: return as(LossHead{}, [&](const LossHead& h) { on_loss(p, h); });
    case Kind::refusal: return as(RefusalHead{}, [&](const RefusalHead& h) { on_refusal(p, h); });
    case Kind::question:
      return as(StatusQueryHead{}, [&](const StatusQueryHead& h) { on_status_query(p, h); });
    case Kind::ended:
      return as(StatusQueryHead{}, [&](const StatusQueryHead& h) { on_status_ended(p, h); });
    case Kind::rma:
      if (config_.rma->on_message(from, message)) return;
      break;
    case Kind::eager_short: break;  // above
  }
  malformed(p);
}

// The cookie is the request's id. A request that has ended meanwhile (its peer was lost) has no id
// any more, and the event is ignored.
void Transfer::on_long_sent(Cookie cookie, bool ok) {
  const Ref<SendRequest> send(pending<SendRequest>(cookie));
  if (!send) return;
  ok ? sent_part(*send) : fail(*send, MPI_ERR_PROC_ABORTED);
}

void Transfer::on_long_received(Cookie cookie, bool ok) {
  const Ref<ReceiveRequest> receive(pending<ReceiveRequest>(cookie));
  if (!receive) return;
  if (ok) return received_part(*receive);
  matches_[receive->context].unpost(*receive);  // with the write protocol it is still posted
  fail(*receive, MPI_ERR_PROC_ABORTED);
}

// ---- progress ----------------------------------------------------------------------------------

// The order matters for latency: messages that arrive free room and make replies due, the backlog
// uses the room, and collectives continue with what has completed. Collectives continue here and
// not inside the polls, as their next step sends and receives.
bool Transfer::progress() {
  bool any = poll_channels();
  any |= config_.collectives->progress();
  any |= config_.rma->progress();
  return any;
}

bool Transfer::poll_channels() {
  bool any = has_due_rtrs();
  if (any) [[unlikely]]
    send_due_rtrs();
  for (const std::unique_ptr<Channel>& channel : channels_) any |= channel->poll();
  if (!backlogged_.empty()) any |= send_pending();
  return any;
}

void Transfer::set_oversubscribed() {
  config_.oversubscribed = true;
  for (const std::unique_ptr<Channel>& channel : channels_) channel->oversubscribed();
}

void Transfer::connect_all() {
  for (const std::unique_ptr<Channel>& channel : channels_) channel->connect_all();
}

void Transfer::finished() {
  for (const std::unique_ptr<Channel>& channel : channels_) channel->finished();
}

void Transfer::ends_early() {
  for (const std::unique_ptr<Channel>& channel : channels_) channel->ends_early();
}

// A process can sleep on one channel only: the last one, which is the network if there is one. The
// other channels are armed to wake it through `bell`. A channel that cannot be armed, since it has
// work or no such means, keeps the process awake; those armed before it are disarmed in any case.
bool Transfer::sleep(std::chrono::microseconds most) {
  // Room to send wakes no process, so one with a backlog must go on polling.
  if (has_backlog() || has_due_rtrs()) return false;
  const auto last = std::prev(channels_.end());
  int bell = -1;
  const auto armed = std::find_if_not(channels_.begin(), last,
                                      [&](const auto& channel) { return channel->arm_bell(bell); });
  // Other threads can end a sleep: by a bell that there is anyway, or by this one.
  const bool own_bell = bell < 0 && LibraryLock::shared() && (*last)->between_nodes();
  if (own_bell) {
    if (!own_bell_) own_bell_ = base::UniqueFd(::eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC));
    bell = own_bell_.get();
  }
  const bool slept = armed == last && (*last)->sleep(most, bell);
  std::for_each(channels_.begin(), armed, [](const auto& channel) { channel->disarm_bell(); });
  if (own_bell) {
    std::uint64_t rings;
    [[maybe_unused]] const ssize_t rung = ::read(bell, &rings, sizeof rings);
  }
  return slept;
}

void Transfer::end_sleep() {
  for (const std::unique_ptr<Channel>& channel : channels_) channel->end_sleep();
  constexpr std::uint64_t kRing = 1;
  if (own_bell_) [[maybe_unused]]
    const ssize_t rung = ::write(own_bell_.get(), &kRing, sizeof kRing);
}

bool Transfer::sleeps_lightly() const {
  return std::all_of(channels_.begin(), channels_.end(),
                     [](const auto& channel) { return channel->sleeps_lightly(); });
}

bool Transfer::shares_cpu() const {
  return std::any_of(channels_.begin(), channels_.end(),
                     [](const auto& channel) { return channel->shares_cpu(); });
}

// What waits for a lost process will never be sent, and does not count.
bool Transfer::has_backlog() const {
  if (config_.rma->has_backlog()) return true;
  return std::any_of(backlogged_.begin(), backlogged_.end(),
                     [](const Peer* p) { return !p->lost; });
}

bool Transfer::busy() const {
  if (has_backlog()) return true;
  for (const std::unique_ptr<Channel>& channel : channels_)
    if (channel->busy()) return true;
  return false;
}

}  // namespace viaduct::mpi
