// Accepting TCP connections and reading the connection request from each. rendezvous_socket.cpp
// routes the request on; socket.cpp has the system calls.
#include "libvipl/connection/acceptor.hpp"

#include <sys/epoll.h>
#include <sys/socket.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <stdexcept>

namespace viaduct::vipl {
namespace {

// How often a taken port is tried again. While it belongs to another user's VIPL programs, those
// hand this process its requests, so nothing is lost meanwhile.
constexpr auto kListenAgain = std::chrono::seconds(1);
// The pause after the process or the system had no file descriptor left.
constexpr auto kAcceptAgain = std::chrono::milliseconds(100);
// The time a peer has to send its whole request, and the number of peers at a time: enough for
// honest callers, and a bound for all others.
constexpr auto kUnknownPeerTimeout = std::chrono::seconds(1);
constexpr std::size_t kMaxUnknownPeers = 512;

}  // namespace

Acceptor::Acceptor(Loop& loop, const NicAddress& self, RequestRouter& router,
                   ClosingConnections& closing)
    : loop_(loop), self_(self), router_(router), closing_(closing) {
  if (listen()) return;
  const int error = errno;
  if (error != EADDRINUSE)
    throw std::runtime_error("cannot listen at " + self_.text() + " (" + std::strerror(error) +
                             "): give the interface that address, or choose another port with "
                             "VIADUCT_VIPL_PORT");
  std::fprintf(stderr,
               "vipl: %s is in use: if not by another user's VIPL programs, nobody reaches this "
               "one; choose another port with VIADUCT_VIPL_PORT on all hosts\n",
               self_.text().c_str());
  listen_later();
}

void Acceptor::close() {
  again_.end();
  watch_.end();
  listener_.reset();
  unknown_peers_.clear();
}

// False: errno says why.
bool Acceptor::listen() {
  listener_ = listening_socket(self_);
  if (!listener_) return false;
  watch_ = Loop::Watch(loop_, listener_.get(), EPOLLIN, [this](std::uint32_t) { accept(); });
  return true;
}

void Acceptor::listen_later() {
  again_ = Loop::Timer(loop_, kListenAgain, [this] {
    if (!listen()) listen_later();
  });
}

void Acceptor::accept() {
  UniqueFd connection = accepted_socket(listener_.get());
  if (!connection) {
    // Without a file descriptor for the connection the listener would stay readable, and the event
    // thread would spin. So it is not watched for a moment.
    if (errno != EMFILE && errno != ENFILE && errno != ENOBUFS && errno != ENOMEM) return;
    watch_.change(0);
    again_ = Loop::Timer(loop_, kAcceptAgain, [this] { watch_.change(EPOLLIN); });
    return;
  }
  // The oldest goes: an honest caller's request arrives at once.
  if (unknown_peers_.size() >= kMaxUnknownPeers) unknown_peers_.pop_front();
  const auto s = unknown_peers_.emplace(unknown_peers_.end());
  s->connection = std::move(connection);
  s->timer = Loop::Timer(loop_, kUnknownPeerTimeout, [this, s] { unknown_peers_.erase(s); });
  s->watch =
      Loop::Watch(loop_, s->connection.get(), EPOLLIN, [this, s](std::uint32_t) { receive(s); });
  receive(s);  // the request has mostly arrived by now, so the event thread need not wake up again
}

// Reads no byte beyond the request: what follows belongs to the process that gets the connection.
void Acceptor::receive(UnknownPeers::iterator s) {
  const ssize_t n =
      ::recv(s->connection.get(), s->bytes.data() + s->size, s->bytes.size() - s->size, 0);
  if (n < 0 && (errno == EAGAIN || errno == EINTR)) return;
  if (n <= 0) {
    unknown_peers_.erase(s);
    return;
  }
  s->size += static_cast<std::size_t>(n);
  if (s->size == s->bytes.size()) handle_request(s);
}

void Acceptor::handle_request(UnknownPeers::iterator s) {
  PendingRequest pending;
  pending.bytes = s->bytes;
  const Parsed parsed = parse(pending.bytes, pending.request);
  s->watch.end();
  pending.connection = std::move(s->connection);
  unknown_peers_.erase(s);
  if (parsed == Parsed::other_version)
    closing_.refuse(std::move(pending.connection), Refusal::other_version);
  // The address in the request is the one that the caller meant to reach. Under another address
  // this process must not serve it.
  else if (parsed == Parsed::valid && pending.request.callee.nic == self_)
    router_.route_new(std::move(pending));
  else if (parsed == Parsed::valid)
    closing_.refuse(std::move(pending.connection), Refusal::no_match);
}

}  // namespace viaduct::vipl
