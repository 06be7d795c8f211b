// Peer requests that find no VI: kept until the program answers or refuses them. peer.cpp has the
// requests that find one; rendezvous_socket.cpp routes both.
#include "libvipl/connection/peers/peer_listeners.hpp"

#include <algorithm>
#include <array>

#include "libvipl/connection/connection_table.hpp"

namespace viaduct::vipl {
namespace {

// Requests that wait at a time, each with a TCP connection. Others are told to ask again.
constexpr std::size_t kMaxWaitingRequests = 1024;

}  // namespace

VIP_RETURN PeerListeners::open(const Discriminator& prefix, std::span<const std::uint8_t> key) {
  std::array<std::uint8_t, Discriminator::kMax> bytes{};
  const auto begin = prefix.bytes();
  if (key.size() > bytes.size() - begin.size()) return VIP_INVALID_PARAMETER;
  const std::size_t size = begin.size() + key.size();
  std::copy(key.begin(), key.end(), std::copy(begin.begin(), begin.end(), bytes.begin()));
  if (listeners_.contains(prefix)) return VIP_ERROR_RESOURCE;
  auto rendezvous = std::make_unique<RendezvousSocket>(
      table_.loop, listener_name(table_.self, prefix), [this](PendingRequest pending) {
        // Names of abstract sockets are not protected: what is not for a listener here is dropped.
        take(pending);
      });
  // One process for each prefix: two would both make a VI for the same peer.
  if (!rendezvous->open() || rendezvous->place() != 0) return VIP_ERROR_RESOURCE;
  Listener& listener = listeners_[prefix];
  listener.rendezvous = std::move(rendezvous);
  listener.needed = *Discriminator::from(std::span(bytes).first(size));
  table_.router.expect_listeners(begin.size());
  return VIP_SUCCESS;
}

bool PeerListeners::close(const Discriminator& prefix) {
  const auto closed = listeners_.find(prefix);
  if (closed == listeners_.end()) return false;
  for (auto it = waiting_.begin(); it != waiting_.end();) {
    const auto& [pair, waiting] = *it++;  // refuse() removes it
    const auto& [local, remote] = pair;
    if (find(local) == &closed->second && session_for(waiting.request->request()) == nullptr)
      refuse(local, remote);
  }
  listeners_.erase(closed);
  for (const auto& [user, session] : table_.sessions) session->on_listener_closed();
  return true;
}

PeerListeners::Listener* PeerListeners::find(const Discriminator& local) {
  const auto bytes = local.bytes();
  for (std::size_t size = bytes.size() + 1; !listeners_.empty() && size-- > 0;) {
    const auto found = listeners_.find(*Discriminator::from(bytes.first(size)));
    if (found != listeners_.end()) return &found->second;
  }
  return nullptr;
}

bool PeerListeners::has(const Discriminator& local) {
  const Listener* const listener = find(local);
  return listener != nullptr && local.begins_with(listener->needed);
}

bool PeerListeners::take(PendingRequest& pending) {
  const Request& r = pending.request;
  if (r.model != Model::peer_to_peer || r.callee.nic != table_.self) return false;
  Listener* const listener = find(r.callee.discriminator);
  if (listener == nullptr) return false;
  const auto session = session_for(r);
  if (session != nullptr && session->has_begun()) {
    session->take_request(std::move(pending));
  } else if (session != nullptr || r.callee.discriminator.begins_with(listener->needed)) {
    let_wait(std::move(pending));
  } else {
    ++listener->unauthorized;
    table_.closing.refuse(std::move(pending.connection), Refusal::rejected);
  }
  return true;
}

std::shared_ptr<Session> PeerListeners::session_for(const Request& request) const {
  for (const auto& [user, session] : table_.sessions)
    if (session->wants(request)) return session;
  return nullptr;
}

// Of two requests with the same endpoints only one waits. With the same nonce the later one counts:
// the peer has lost the connection on which it sent the other.
void PeerListeners::let_wait(PendingRequest pending) {
  const EndpointPair pair{pending.request.callee.discriminator, pending.request.caller};
  const auto other = waiting_.find(pair);
  if (other != waiting_.end() && other->second.request->request().nonce == pending.request.nonce)
    forget(pair);
  if (waiting_.contains(pair) || waiting_.size() >= kMaxWaitingRequests)
    return table_.closing.refuse(std::move(pending.connection), Refusal::no_match);
  const auto request = std::make_shared<ReceivedRequest>(table_, std::move(pending));
  Loop::Timer timer(table_.loop, longest_wait_, [this, pair] {
    const auto it = waiting_.at(pair).request;
    if (it->waiting()) table_.closing.refuse(it->take_stream(), Refusal::no_match);
    forget(pair);
  });
  request->on_caller_closed([this, pair] { forget(pair); });
  Unreported unreported{pair};
  waiting_.emplace(pair, Waiting{request, std::move(timer), unreported.begin()});
  unreported_.splice(unreported_.end(), unreported);
}

void PeerListeners::forget(const EndpointPair& pair) {
  const EndpointPair copy = pair;  // `pair` may be in what is destroyed here
  const auto it = waiting_.find(copy);
  if (it == waiting_.end()) return;
  if (!it->second.is_reported) unreported_.erase(it->second.unreported);
  waiting_.erase(it);
}

std::shared_ptr<ReceivedRequest> PeerListeners::answer(const Discriminator& local,
                                                       const Endpoint& remote) {
  const auto found = waiting_.find({local, remote});
  if (found == waiting_.end()) return nullptr;
  std::shared_ptr<ReceivedRequest> request = found->second.request;
  request->on_caller_closed({});
  forget(found->first);
  return request->waiting() ? request : nullptr;
}

bool PeerListeners::refuse(const Discriminator& local, const Endpoint& remote) {
  const auto request = answer(local, remote);
  if (request == nullptr) return false;
  table_.closing.refuse(request->take_stream(), Refusal::rejected);
  return true;
}

std::shared_ptr<ReceivedRequest> PeerListeners::next() {
  if (unreported_.empty()) return nullptr;
  Waiting& first = waiting_.at(unreported_.front());
  unreported_.pop_front();
  first.is_reported = true;
  return first.request;
}

std::optional<PeerCounts> PeerListeners::counts(const Discriminator& prefix) {
  const auto found = listeners_.find(prefix);
  if (found == listeners_.end()) return std::nullopt;
  // A longer prefix within this one may be another listener's.
  const auto waiting = std::ranges::count_if(
      waiting_, [&](const auto& entry) { return find(entry.first.first) == &found->second; });
  return PeerCounts{static_cast<std::uint64_t>(waiting), found->second.unauthorized};
}

void PeerListeners::clear() {
  waiting_.clear();
  unreported_.clear();
  listeners_.clear();
}

}  // namespace viaduct::vipl
