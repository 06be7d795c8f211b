// The other peer's request, which may cross ours.
#include "libvipl/connection/desk.hpp"
#include "libvipl/connection/session.hpp"

namespace viaduct::vipl {
namespace {

constexpr auto kStartOver = std::chrono::milliseconds(1);

}  // namespace

void Session::open_door() {
  door_ = std::make_unique<Door>(desk_.loop, door_name(Model::peer_to_peer, local_, remote_),
                                 [this](Visitor visitor) {
                                   const auto self = shared_from_this();
                                   on_visitor(std::move(visitor));
                                 });
}

// Two requests match when each names the other, and are not one and the same.
bool Session::is_for_us(const Request& request) const {
  if (request.model != Model::peer_to_peer || request.nonce == nonce_) return false;
  if (request.callee != local_ || request.caller != remote_) return false;
  // Somebody else may have the same addresses and come first; then only he can come again.
  if (state_ == State::accepting) return request.nonce == other_nonce_;
  return crossing_ == nullptr || crossing_->request().nonce == request.nonce;
}

bool Session::stays_active(const Request& other) const {
  return std::pair(local_.nic, nonce_) > std::pair(other.caller.nic, other.nonce);
}

void Session::on_visitor(Visitor visitor) {
  if (!is_for_us(visitor.request))
    return desk_.usher.take_on_or_refuse(std::move(visitor), door_->place() + 1);
  const auto incoming = std::make_shared<Incoming>(desk_, std::move(visitor));
  // He asks again, so he knows nothing of our answer.
  if (state_ == State::accepting) {
    drop_stream();
    renew();
  }
  const bool asking = stream_ != nullptr;
  if (!asking || !stays_active(incoming->request())) return answer(incoming);
  incoming->set_gone([this] { crossing_ = nullptr; });
  crossing_ = incoming;
}

// As if nobody had come.
void Session::start_over() {
  renew();
  try_later(kStartOver);
}

void Session::renew() {
  party_.abandoned(true);
  desk_.forget_failures(party_);
  card_ = party_.card();
  state_ = State::asking;
}

}  // namespace viaduct::vipl
