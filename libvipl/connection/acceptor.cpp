#include "libvipl/connection/acceptor.hpp"

#include <sys/epoll.h>
#include <sys/socket.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <stdexcept>

namespace viaduct::vipl {
namespace {

// Where the port belongs to another user, that user's processes hand our requests to us meanwhile.
constexpr auto kListenAgain = std::chrono::seconds(1);
constexpr auto kAcceptAgain = std::chrono::milliseconds(100);
constexpr auto kUnknownPeerPatience = std::chrono::seconds(1);
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

// False: errno.
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
  Descriptor connection = accepted_socket(listener_.get());
  if (!connection) {
    // Without a descriptor the listener would stay ready and keep the thread busy.
    if (errno != EMFILE && errno != ENFILE && errno != ENOBUFS && errno != ENOMEM) return;
    watch_.change(0);
    again_ = Loop::Timer(loop_, kAcceptAgain, [this] { watch_.change(EPOLLIN); });
    return;
  }
  if (unknown_peers_.size() >= kMaxUnknownPeers) unknown_peers_.pop_front();
  const auto s = unknown_peers_.emplace(unknown_peers_.end());
  s->connection = std::move(connection);
  s->timer = Loop::Timer(loop_, kUnknownPeerPatience, [this, s] { unknown_peers_.erase(s); });
  s->watch =
      Loop::Watch(loop_, s->connection.get(), EPOLLIN, [this, s](std::uint32_t) { receive(s); });
  receive(s);  // has mostly come by now
}

// No byte more than the request: what follows is for whoever gets the connection.
void Acceptor::receive(UnknownPeers::iterator s) {
  const ssize_t n =
      ::recv(s->connection.get(), s->bytes.data() + s->size, s->bytes.size() - s->size, 0);
  if (n < 0 && (errno == EAGAIN || errno == EINTR)) return;
  if (n <= 0) {
    unknown_peers_.erase(s);
    return;
  }
  s->size += static_cast<std::size_t>(n);
  if (s->size == s->bytes.size()) understand(s);
}

void Acceptor::understand(UnknownPeers::iterator s) {
  PendingRequest pending;
  pending.bytes = s->bytes;
  const Parsed parsed = parse(pending.bytes, pending.request);
  s->watch.end();
  pending.connection = std::move(s->connection);
  unknown_peers_.erase(s);
  if (parsed == Parsed::other_version)
    closing_.refuse(std::move(pending.connection), Refusal::other_version);
  // The address in the request is where the caller means to be; another one is not ours to serve.
  else if (parsed == Parsed::well && pending.request.callee.nic == self_)
    router_.welcome(std::move(pending));
  else if (parsed == Parsed::well)
    closing_.refuse(std::move(pending.connection), Refusal::no_match);
}

}  // namespace viaduct::vipl
