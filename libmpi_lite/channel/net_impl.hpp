// NetChannel: what is not on the way of a message, that is, connection set-up, the loss of peers,
// and reports. Included by mbcf.cpp and startx.cpp only, which instantiate the template.
#pragma once

#include <algorithm>
#include <cstdio>

#include "libmpi_lite/channel/net.hpp"

namespace viaduct::mpi {

// Bytes of a control message beyond the eager data: room for the protocol header that transfer/
// puts in front (at most Channel::kMaxHead), and for control messages without data.
inline constexpr std::size_t kControlHead = 256;

template <class S, link::PacketDevice D, class Driver, class DC, class Peer>
NetChannel<S, D, Driver, DC, Peer>::NetChannel(ChannelSink& sink, Launch& launch,
                                               std::shared_ptr<D> device, const NetConfig& config,
                                               const DC& driver, ClockOf<D> clock)
    : sink_(sink),
      launch_(launch),
      config_(config),
      // Half of the places for long transfers are for early receives, the other half for announced
      // ones.
      limits_{.control = config.eager + kControlHead,
              .eager = config.eager,
              .early = net_transfers(launch.size()) / 2,
              .remote_key = S::kRemoteKeyBytes,
              .writes_now = S::kWritesNow && config.remote_write},
      clock_(clock),
      peers_(static_cast<std::size_t>(launch.size())),
      bindings_(config.link.max_peers),
      device_(std::move(device)),
      link_(*device_, config.link),
      driver_(link_, driver) {}

template <class S, link::PacketDevice D, class Driver, class DC, class Peer>
void NetChannel<S, D, Driver, DC, Peer>::publish(std::uint64_t key) {
  launch_.put(std::string("viaduct-") + name(),
              EndpointAddress{device_->address(), key, limits_.control}.text());
}

template <class S, link::PacketDevice D, class Driver, class DC, class Peer>
bool NetChannel<S, D, Driver, DC, Peer>::busy() const {
  if (self().transfers() != 0 || !link_.idle()) return true;
  // All that this process has sent is acknowledged. But an acknowledgement that this process has
  // sent may have been lost, and then the peer sends its frame again and again. Such repetitions
  // are counted as duplicates; stay until neither they nor new messages have come for some time.
  const std::uint64_t activity = link_.counters()[link::Counter::messages_delivered] +
                                 link_.counters()[link::Counter::drop_duplicate];
  if (activity != std::exchange(activity_seen_, activity)) idle_since_ = now();
  return now() - idle_since_ < linger();
}

template <class S, link::PacketDevice D, class Driver, class DC, class Peer>
link::Duration NetChannel<S, D, Driver, DC, Peer>::linger() const {
  // The peers' retransmission timeouts are not known here. Those of this process are much alike,
  // since both ends measure the same round trips.
  link::Duration longest{};
  for (const Peer& p : peers_)
    if (link_.connected(p.id)) longest = std::max(longest, link_.view(p.id).timeout);
  return std::min(kLinger * longest, kMaxLinger);
}

template <class S, link::PacketDevice D, class Driver, class DC, class Peer>
std::string NetChannel<S, D, Driver, DC, Peer>::describe(int rank) const {
  const Peer& p = peers_[static_cast<std::size_t>(rank)];
  std::string text = name() + (config_.port.empty() ? "" : " on " + config_.port) + ", " +
                     device_->address().text();
  switch (p.state) {
    case State::unknown: return text + ", not used";
    case State::lost: return text + ", " + p.end_reason;
    default: break;
  }
  text += " -> " + link_.view(p.id).address.text();
  if (!link_.connected(p.id)) text += " (not connected)";
  return text + ", " + self().detail();
}

template <class S, link::PacketDevice D, class Driver, class DC, class Peer>
std::vector<base::NamedCounter> NetChannel<S, D, Driver, DC, Peer>::all_counters() const {
  std::vector<base::NamedCounter> out;
  append(out, "link", link_.counters(), link::kCounterInfo);
  append(out, "driver", driver_.counters(), S::kDriverCounterInfo);
  return out;
}

template <class S, link::PacketDevice D, class Driver, class DC, class Peer>
std::string NetChannel<S, D, Driver, DC, Peer>::counted(int rank) const {
  return text(link_.counters(peers_[static_cast<std::size_t>(rank)].id), link::kCounterInfo);
}

template <class S, link::PacketDevice D, class Driver, class DC, class Peer>
std::string NetChannel<S, D, Driver, DC, Peer>::dump(int rank) const {
  const Peer& p = peers_[static_cast<std::size_t>(rank)];
  if (p.state == State::unknown || p.state == State::lost) return {};
  return link_.dump(p.id, now());
}

template <class S, link::PacketDevice D, class Driver, class DC, class Peer>
std::optional<std::chrono::nanoseconds> NetChannel<S, D, Driver, DC, Peer>::last_seen(
    int rank) const {
  const auto heard = link_.last_heard(peers_[static_cast<std::size_t>(rank)].id);
  return heard ? std::optional(now() - *heard) : std::nullopt;
}

template <class S, link::PacketDevice D, class Driver, class DC, class Peer>
void NetChannel<S, D, Driver, DC, Peer>::bind_rank(int rank, link::PeerId id, std::uint64_t key) {
  Peer& p = peer(rank);
  p.id = id;
  p.state = State::resolved;
  bindings_[id.value & 0xffff] = {id, rank};
  self().store_key(p, key);
}

template <class S, link::PacketDevice D, class Driver, class DC, class Peer>
bool NetChannel<S, D, Driver, DC, Peer>::resolve(int rank) {
  if (peer(rank).state != State::unknown) return !lost(rank);
  try {
    const std::string text = launch_.get(rank, std::string("viaduct-") + name());
    const auto endpoint = EndpointAddress::parse(text);
    if (!endpoint) throw base::SetupError("\"" + text + "\" is not an address");
    // The link makes no peer of its own address.
    if (endpoint->address == device_->address())
      throw base::SetupError("it has our own address, " + endpoint->address.text() +
                             ": give each rank a port of its own in VIADUCT_PORTS");
    // The eager limits must agree: a control message larger than the receiver's FIFO or buffer
    // expects could not be delivered.
    if (endpoint->control != limits_.control)
      throw base::SetupError("its control messages have up to " +
                             std::to_string(endpoint->control) + " bytes and ours up to " +
                             std::to_string(limits_.control) +
                             ": set VIADUCT_EAGER_MBCF and VIADUCT_EAGER_STARTX to the same "
                             "values for all ranks");
    const link::PeerId id = link_.peer(endpoint->address);
    if (!id) throw base::SetupError("the link has no room for another peer");
    bind_rank(rank, id, endpoint->key);
    // Not for peers that introduce themselves: their frames have come, so the network works.
    connecting_.push_back({rank, now()});
    return true;
  } catch (const base::SetupError& error) {
    mark_lost(rank, error.what());
    return false;
  }
}

template <class S, link::PacketDevice D, class Driver, class DC, class Peer>
bool NetChannel<S, D, Driver, DC, Peer>::try_introduce(int rank) {
  if (!resolve(rank) || !self().send_introduction(rank)) return false;
  peer(rank).state = State::ready;
  return true;
}

template <class S, link::PacketDevice D, class Driver, class DC, class Peer>
void NetChannel<S, D, Driver, DC, Peer>::on_introduction(link::PeerId id, std::uint32_t rank,
                                                         std::uint64_t key) {
  if (rank >= peers_.size() || static_cast<int>(rank) == launch_.rank()) return;
  // A rank that is known keeps its link peer: an introduction cannot redirect its messages. A lost
  // rank stays lost.
  if (peers_[rank].state == State::unknown) bind_rank(static_cast<int>(rank), id, key);
}

template <class S, link::PacketDevice D, class Driver, class DC, class Peer>
void NetChannel<S, D, Driver, DC, Peer>::mark_lost(int rank, std::string_view why) {
  if (lost(rank)) return;
  Peer& p = peer(rank);
  p.state = State::lost;
  // take_events() may have said already how it ended.
  if (p.end_reason.empty()) p.end_reason = "lost: " + std::string(why);
  // The driver ends what it still does for this peer, with completions that the next poll takes.
  if (p.id) link_.disconnect(p.id, now());
  pending_failures_.add_peer(rank, why);
}

// Connections have come or gone. Only the ends of connections matter here: they lose the peer.
template <class S, link::PacketDevice D, class Driver, class DC, class Peer>
bool NetChannel<S, D, Driver, DC, Peer>::take_events(link::Event event) {
  // All of them, without kBatch: once the peer is lost, its messages are dropped.
  while (self().receive(~std::size_t{0})) continue;
  do {
    if (event.kind != link::Event::Kind::peer_down) continue;
    // Search by the full id. The peer's slot in the link may have a new owner by now.
    const auto p = std::find_if(peers_.begin(), peers_.end(), [&](const Peer& candidate) {
      return candidate.id == event.peer && candidate.state != State::lost;
    });
    if (p == peers_.end()) continue;
    // Every process says goodbye in MPI_Finalize. A peer that still waits for something from that
    // process learns of it as a loss; to all others it is a normal end.
    const bool left = event.reason == link::DownReason::left;
    if (left) p->end_reason = "ended";
    mark_lost(static_cast<int>(p - peers_.begin()),
              left ? "it ended without MPI_Finalize" : link::text(event.reason));
  } while (driver_.next_event(event));
  self().take_completions();
  return true;
}

template <class S, link::PacketDevice D, class Driver, class DC, class Peer>
bool NetChannel<S, D, Driver, DC, Peer>::report_failures() {
  pending_failures_.report(sink_, [this](int rank) {
    self().end_transfers(rank);
    // The id loses its rank before the sink hears of the loss, so no message of that peer can
    // follow.
    unbind_rank(peer(rank).id);
    return true;
  });
  return true;
}

template <class S, link::PacketDevice D, class Driver, class DC, class Peer>
void NetChannel<S, D, Driver, DC, Peer>::unbind_rank(link::PeerId id) {
  RankBinding& n = bindings_[id.value & 0xffff];
  // The slot may have passed to another peer, which must keep it.
  if (n.id == id) n = {};
}

template <class S, link::PacketDevice D, class Driver, class DC, class Peer>
void NetChannel<S, D, Driver, DC, Peer>::warn_unanswered() {
  // Warns of peers that do not answer. A wrong VIADUCT_PORTS, or a network that does not forward,
  // cannot be told from a peer that computes without calling MPI: only the user can. The link knows
  // more if the peer has answered; then the warning says that instead.
  std::erase_if(connecting_, [this](const ConnectingPeer& a) {
    if (lost(a.rank) || link_.connected(peer(a.rank).id)) return true;
    if (now_ - a.since < kAnswerTimeout) return false;
    const link::PeerView view = link_.view(peer(a.rank).id);
    const char* why =
        "no answer: either that process has not called MPI since MPI_Init, or the ports do not "
        "reach each other";
    if (view.no_room)
      why = "it answers that it has no room for another peer (its counter drop_peers_full)";
    else if (view.answered)
      why = "it answers, but large frames are lost (our counter path_mtu_lowered)";
    std::fprintf(stderr, "viaduct: rank %d has been connecting to rank %d for %d s (%s); %s\n",
                 launch_.rank(), a.rank, static_cast<int>(kAnswerTimeout / std::chrono::seconds{1}),
                 describe(a.rank).c_str(), why);
    return true;
  });
}

}  // namespace viaduct::mpi
