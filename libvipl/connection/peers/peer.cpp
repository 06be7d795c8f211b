// The passive half of a peer session: the other peer's request, which may cross this side's own
// (VipConnectPeerRequest on both sides). active_open.cpp sends this side's request.
#include "libvipl/connection/connection_table.hpp"
#include "libvipl/connection/session.hpp"

namespace viaduct::vipl {
namespace {

// The pause before a new request after the other peer died half way.
constexpr auto kStartOver = std::chrono::milliseconds(1);

}  // namespace

// Where the other's request arrives. No effect if it is there already, or a listener has the
// discriminator. False: no file descriptors are left, and the attempt is over.
bool Session::open_rendezvous() {
  if (role_ != Role::peer || rendezvous_ != nullptr) return true;
  if (table_.peer_listeners.has(local_.discriminator)) return true;
  rendezvous_ = std::make_unique<RendezvousSocket>(
      table_.loop, rendezvous_name(Model::peer_to_peer, local_, remote_),
      [this](PendingRequest pending) { take_request(std::move(pending)); });
  if (rendezvous_->open()) return true;
  finish(VIP_ERROR_RESOURCE);
  return false;
}

void Session::on_listener_closed() {
  if (!outcome_ && has_begun()) open_rendezvous();
}

bool Session::wants(const Request& request) const {
  return role_ == Role::peer && !outcome_ && is_for_us(request);
}

bool Session::has_begun() const {
  return where_ != &table_.put_off;
}

void Session::take_request(PendingRequest pending) {
  const auto self = shared_from_this();
  on_pending_request(std::move(pending));
}

// Whether the request is from the peer that this side asked for. With the same nonce it is this
// session's own request, which came back.
bool Session::is_for_us(const Request& request) const {
  if (request.model != Model::peer_to_peer || request.nonce == nonce_) return false;
  if (request.callee != local_ || request.caller != remote_) return false;
  // Another process may have the same addresses and have come first. Then only that one, which this
  // nonce names, may ask again.
  if (state_ == State::accepting) return request.nonce == other_nonce_;
  return crossing_ == nullptr || crossing_->request().nonce == request.nonce;
}

// The tie-break of crossing requests. Both sides compare the same two pairs, so exactly one of them
// stays active.
bool Session::wins_tie_break(const Request& other) const {
  return std::pair(local_.nic, nonce_) > std::pair(other.caller.nic, other.nonce);
}

void Session::on_pending_request(PendingRequest pending) {
  if (!is_for_us(pending.request))
    // Perhaps meant for another process that waits for the same pair of addresses.
    return table_.router.route_or_refuse(std::move(pending),
                                         rendezvous_ != nullptr ? rendezvous_->place() + 1 : 0);
  const auto incoming = std::make_shared<ReceivedRequest>(table_, std::move(pending));
  // The same peer asks again: it has lost the connection on which this side had answered.
  if (state_ == State::accepting) {
    drop_stream();
    renew();
  }
  // Whether a request of this side is under way.
  const bool requesting = stream_ != nullptr;
  if (!requesting || !wins_tie_break(incoming->request())) return open_passive(incoming);
  // If the other peer gives up, there is nothing to answer later.
  incoming->on_caller_closed([this] { crossing_ = nullptr; });
  crossing_ = incoming;
}

// Back to requesting, with a new card, and as if the other peer's request had not come.
void Session::start_over() {
  renew();
  try_later(kStartOver);
}

void Session::renew() {
  user_.on_attempt_failed(true);
  // Failures of the queue pair that is given up must not end the new attempt.
  table_.forget_failures(user_);
  card_ = user_.card();
  state_ = State::requesting;
}

}  // namespace viaduct::vipl
