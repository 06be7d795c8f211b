// Active open: the caller's half of a session, its connection request on the way.
#include <sys/random.h>

#include <algorithm>
#include <cerrno>

#include "libvipl/connection/connection_table.hpp"
#include "libvipl/connection/session.hpp"

namespace viaduct::vipl {
namespace {

// Whoever accepts a connection says within microseconds that somebody has the request. A process
// that is stopped does not: another connection most likely finds another one.
constexpr auto kSilence = std::chrono::seconds(3);
// After a process died that had our request.
constexpr auto kShortestDelay = std::chrono::milliseconds(1),
               kLongestDelay = std::chrono::milliseconds(100);
// The second peer's request finds the first's, so another one is needed only after accidents.
constexpr auto kPeerRetry = std::chrono::seconds(1);

bool is_unreachable(int error) {
  return error == ENETUNREACH || error == EHOSTUNREACH || error == ENETDOWN || error == EACCES ||
         error == EPERM || error == EINVAL;
}

bool is_shortage(int error) {
  return error == EMFILE || error == ENFILE || error == ENOBUFS || error == ENOMEM ||
         error == EADDRNOTAVAIL || error == EAGAIN;
}

std::uint64_t random_bits() {
  std::uint64_t bits = 0;
  while (::getrandom(&bits, sizeof bits, 0) != sizeof bits && errno == EINTR) {
  }
  return bits;
}

}  // namespace

void Session::ask(const Discriminator& local, const Endpoint& remote, Deadline deadline) {
  local_ = {table_.self, local};
  remote_ = remote;
  nonce_ = random_bits();
  delay_ = kShortestDelay;
  if (deadline)
    deadline_ = Loop::Timer(table_.loop, *deadline,
                            [this] { finish(unreachable_ ? VIP_NOT_REACHABLE : VIP_TIMEOUT); });
  if (role_ == Role::peer) {
    open_rendezvous();
    if (!rendezvous_->open()) return finish(VIP_ERROR_RESOURCE);
  }
  try_now();
}

void Session::try_now() {
  Descriptor fd = connecting_socket(table_.self, remote_.nic);
  if (!fd) return on_connect_error(errno);
  // Within a host it is: then the event thread need not wake up to see that.
  const bool connected = is_open_connection(fd.get());
  stream_ = Stream::make(table_.loop, std::move(fd),
                         connected ? Stream::Kind::connected : Stream::Kind::connecting, *this);
  if (connected) on_connected(*stream_, 0);
}

void Session::try_later(Clock::duration delay) {
  retry_ = Loop::Timer(table_.loop, delay, [this] { try_now(); });
}

void Session::on_connected(Stream&, int error) {
  const auto self = shared_from_this();
  if (error != 0) {
    drop_stream();
    // Of a host on its own network the kernel says that when nobody answers to the address, after
    // three seconds: it is as dead as one further away, of which the kernel knows nothing.
    return on_connect_error(error == EHOSTUNREACH ? ETIMEDOUT : error);
  }
  unreachable_ = false;
  send_request();
}

void Session::send_request() {
  const Request request{.model = role_ == Role::peer ? Model::peer_to_peer : Model::client_server,
                        .silent = silent_,
                        .nonce = nonce_,
                        .callee = remote_,
                        .caller = local_,
                        .card = card_};
  stream_->send(encode(request));
  request_sent_ = true;
  send_aliases();
  silence_ = Loop::Timer(table_.loop, kSilence, [this] {
    ++silent_;
    drop_stream();
    on_no_answer();
  });
}

void Session::on_connect_error(int error) {
  if (role_ == Role::peer) {
    unreachable_ = is_unreachable(error);
    return no_request_out(kPeerRetry);
  }
  if (error == ECONNREFUSED) return finish(VIP_NO_MATCH);  // no process there has a NIC open
  if (is_unreachable(error)) return finish(VIP_NOT_REACHABLE);
  if (is_shortage(error)) return finish(VIP_ERROR_RESOURCE);
  on_no_answer();
}

void Session::on_refused(Refusal refusal) {
  drop_stream();
  if (role_ == Role::peer && refusal == Refusal::no_match) return no_request_out(kPeerRetry);
  finish(result_of(refusal));
}

// Whoever had our request is dead, or does nothing.
void Session::on_no_answer() {
  no_request_out(delay_);
  delay_ = std::min<Clock::duration>(2 * delay_, kLongestDelay);
}

// Nothing of ours is on its way: now the other's request may be answered.
void Session::no_request_out(Clock::duration retry) {
  if (crossing_ == nullptr) return try_later(retry);
  const std::shared_ptr<Incoming> other = std::move(crossing_);
  answer(other);
}

void Session::on_accepted(const Card& card) {
  if (const auto refusal = mismatch(card_, card)) return finish(result_of(*refusal));
  remote_card_ = card;
  if (!user_.establish(remote_card_)) return finish(VIP_ERROR_RESOURCE);
  state_ = State::connected;
  establish_aliases();
  stream_->send({.type = MessageType::ready});
  connected();
}

}  // namespace viaduct::vipl
