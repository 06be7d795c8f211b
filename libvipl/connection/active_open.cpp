// Active open: this side's connection request, from connect() to `accepted`, with retries. Clients
// and peers use it; session.cpp takes over when the other side has accepted.

#include <algorithm>
#include <cerrno>
#include <new>

#include "drivers/base/random.hpp"
#include "libvipl/connection/connection_table.hpp"
#include "libvipl/connection/session.hpp"

namespace viaduct::vipl {
namespace {

// How long to wait for `held`. The accepting process passes the request on within microseconds, and
// its listener answers at once. A stopped process does neither; another TCP connection is most
// likely accepted by another process (SO_REUSEPORT spreads them).
constexpr auto kHeldTimeout = std::chrono::seconds(3);
// The pause before the next request after the process that had this one closed the connection. It
// doubles each time.
constexpr auto kShortestDelay = std::chrono::milliseconds(1),
               kLongestDelay = std::chrono::milliseconds(100);
// The pause after nobody listened for a peer's request. It is long because the second peer's
// request finds the first peer: another one is needed only if a process dies.
constexpr auto kPeerRetry = std::chrono::seconds(1);

// No route, a firewall, or an address to which nothing connects: VIP_NOT_REACHABLE.
bool is_unreachable(int error) {
  return error == ENETUNREACH || error == EHOSTUNREACH || error == ENETDOWN || error == EACCES ||
         error == EPERM || error == EINVAL;
}

// This host lacks descriptors, memory or local ports: VIP_ERROR_RESOURCE.
bool is_shortage(int error) {
  return error == EMFILE || error == ENFILE || error == ENOBUFS || error == ENOMEM ||
         error == EADDRNOTAVAIL || error == EAGAIN;
}

}  // namespace

void Session::open_active(const Discriminator& local, const Endpoint& remote, Deadline deadline) {
  open(local, remote, deadline);
  begin();
}

void Session::open_later(const Discriminator& local, const Endpoint& remote, Deadline deadline) {
  later_ = true;
  open(local, remote, deadline);
  move_to(table_.put_off);
  table_.loop.wake();
}

void Session::begin_put_off() {
  move_to(node_);
  try {
    if (!user_.make_ready()) return finish(VIP_ERROR_RESOURCE);
    card_ = user_.card();
    begin();
  } catch (const std::bad_alloc&) {
    finish(VIP_ERROR_RESOURCE);
  }
}

void Session::open(const Discriminator& local, const Endpoint& remote, Deadline deadline) {
  local_ = {table_.self, local};
  remote_ = remote;
  nonce_ = base::random_word();  // two hosts must not have the same sequence
  delay_ = kShortestDelay;
  if (deadline) deadline_ = Loop::Timer(table_.loop, *deadline, [this] { finish(at_deadline_); });
}

void Session::begin() {
  // Before the request is sent: the other peer may answer with a request of its own at once.
  if (open_rendezvous()) try_now();
}

void Session::try_now() {
  // A peer that has asked already is answered; no request of this side is needed. In another
  // attempt than the first, too: the other peer may have been started anew meanwhile.
  if (role_ == Role::peer)
    if (const auto other = table_.peer_listeners.answer(local_.discriminator, remote_))
      return open_passive(other);
  UniqueFd fd = connecting_socket(table_.self, remote_.nic);
  if (!fd) return on_connect_error(errno);
  // To an address of this host connect() succeeds at once. Then the event thread need not wake up
  // to see that.
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
    // On its own network the kernel reports EHOSTUNREACH when no host answers to the address (ARP),
    // after three seconds. That host is as dead as one behind a router, for which the kernel
    // reports ETIMEDOUT: not unreachable, but without an answer.
    return on_connect_error(error == EHOSTUNREACH ? ETIMEDOUT : error);
  }
  at_deadline_ = VIP_TIMEOUT;
  send_request();
}

// Sends the request and this side's aliases, which the callee may need as soon as it accepts.
void Session::send_request() {
  const Request request{.model = role_ == Role::peer ? Model::peer_to_peer : Model::client_server,
                        .silent = unanswered_requests_,
                        .nonce = nonce_,
                        .callee = remote_,
                        .caller = local_,
                        .card = card_};
  stream_->send(encode(request));
  request_sent_ = true;
  send_aliases();
  response_timer_ = Loop::Timer(table_.loop, kHeldTimeout, [this] {
    ++unanswered_requests_;  // an odd number makes the router try the places backwards
    drop_stream();
    on_no_answer();
  });
}

// Peers go on trying whatever the error is, because the other host may be about to start. Programs
// that drive their NICs know better what it means that nobody listens there.
void Session::on_connect_error(int error) {
  if (role_ == Role::peer) {
    at_deadline_ = is_unreachable(error)             ? VIP_NOT_REACHABLE
                   : later_ && error == ECONNREFUSED ? VIP_NO_MATCH
                                                     : VIP_TIMEOUT;
    return no_request_out(kPeerRetry);
  }
  if (error == ECONNREFUSED) return finish(VIP_NO_MATCH);  // no process there has the NIC open
  if (is_unreachable(error)) return finish(VIP_NOT_REACHABLE);
  if (is_shortage(error)) return finish(VIP_ERROR_RESOURCE);
  on_no_answer();
}

void Session::on_refused(Refusal refusal) {
  drop_stream();
  if (role_ == Role::peer && refusal == Refusal::no_match) return no_request_out(kPeerRetry);
  finish(result_of(refusal));
}

// The process that had the request has died or does nothing.
void Session::on_no_answer() {
  no_request_out(delay_);
  delay_ = std::min<Clock::duration>(2 * delay_, kLongestDelay);
}

// No request of this side is under way any more. If the other peer's request has come meanwhile, it
// is answered now; otherwise this side asks again after `retry`.
void Session::no_request_out(Clock::duration retry) {
  if (crossing_ == nullptr) return try_later(retry);
  const std::shared_ptr<ReceivedRequest> other = std::move(crossing_);
  open_passive(other);
}

// `ready` is sent after establish(): the other side sends its first message when it gets it.
void Session::on_accepted(const EndpointInfo& card) {
  if (const auto refusal = mismatch(card_, card)) return finish(result_of(*refusal));
  remote_card_ = card;
  if (!user_.establish(remote_card_)) return finish(VIP_ERROR_RESOURCE);
  state_ = State::connected;
  establish_aliases();
  stream_->send({.type = MessageType::ready});
  connected();
}

}  // namespace viaduct::vipl
