// The other peer's request, which may cross ours.
#include "libvipl/connection/connection_table.hpp"
#include "libvipl/connection/session.hpp"

namespace viaduct::vipl {
namespace {

constexpr auto kStartOver = std::chrono::milliseconds(1);

}  // namespace

void Session::open_rendezvous() {
  rendezvous_ = std::make_unique<RendezvousSocket>(
      table_.loop, rendezvous_name(Model::peer_to_peer, local_, remote_),
      [this](PendingRequest pending) {
        const auto self = shared_from_this();
        on_pending_request(std::move(pending));
      });
}

// Two requests match when each names the other, and are not one and the same.
bool Session::is_for_us(const Request& request) const {
  if (request.model != Model::peer_to_peer || request.nonce == nonce_) return false;
  if (request.callee != local_ || request.caller != remote_) return false;
  // Another process may have the same addresses and come first; then only its request can come
  // again.
  if (state_ == State::accepting) return request.nonce == other_nonce_;
  return crossing_ == nullptr || crossing_->request().nonce == request.nonce;
}

bool Session::stays_active(const Request& other) const {
  return std::pair(local_.nic, nonce_) > std::pair(other.caller.nic, other.nonce);
}

void Session::on_pending_request(PendingRequest pending) {
  if (!is_for_us(pending.request))
    return table_.router.take_on_or_refuse(std::move(pending), rendezvous_->place() + 1);
  const auto incoming = std::make_shared<Incoming>(table_, std::move(pending));
  // The peer asks again, so it knows nothing of our answer.
  if (state_ == State::accepting) {
    drop_stream();
    renew();
  }
  const bool requesting = stream_ != nullptr;
  if (!requesting || !stays_active(incoming->request())) return answer(incoming);
  incoming->set_gone([this] { crossing_ = nullptr; });
  crossing_ = incoming;
}

// As if nobody had come.
void Session::start_over() {
  renew();
  try_later(kStartOver);
}

void Session::renew() {
  user_.abandoned(true);
  table_.forget_failures(user_);
  card_ = user_.card();
  state_ = State::requesting;
}

}  // namespace viaduct::vipl
