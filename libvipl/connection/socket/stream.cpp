// Sending and receiving of one TCP connection of the connection protocol. wire.cpp knows what the
// bytes mean; the stream's owner (session.cpp, received_request.cpp, closing_connections.cpp) knows
// what the messages mean.
#include "libvipl/connection/socket/stream.hpp"

#include <sys/epoll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>

#include "libvipl/connection/socket/socket.hpp"

namespace viaduct::vipl {
namespace {

// Bytes that may wait for the kernel. All aliases of a NIC together are less. So a peer that lets
// more accumulate does not read, and the connection is given up.
constexpr std::size_t kMaxWaiting = std::size_t{1} << 20;

bool must_wait(int error) {
  return error == EAGAIN || error == EWOULDBLOCK || error == EINTR;
}

// These errors mean that the other host does not answer. All others mean that the other process is
// gone.
CloseReason reason_of(int error) {
  switch (error) {
    case ETIMEDOUT:
    case EHOSTUNREACH:
    case ENETUNREACH: return CloseReason::host_silent;
    default: return CloseReason::disconnected;
  }
}

}  // namespace

std::shared_ptr<Stream> Stream::make(Loop& loop, UniqueFd fd, Kind kind, StreamOwner& owner) {
  // The handler holds a weak reference: otherwise the stream would keep itself alive through the
  // loop.
  std::shared_ptr<Stream> stream(new Stream(std::move(fd), kind, owner));
  const std::uint32_t events = kind == Kind::connecting ? EPOLLOUT : EPOLLIN;
  stream->watch_ = Loop::Watch(loop, stream->fd_.get(), events,
                               [weak = std::weak_ptr(stream)](std::uint32_t ready) {
                                 // A strong reference for the whole call, because the owner may
                                 // drop the stream in a callback.
                                 if (const auto self = weak.lock()) self->on_ready(ready);
                               });
  return stream;
}

void Stream::on_ready(std::uint32_t events) {
  if (connecting_) {
    connecting_ = false;
    watch_.change(EPOLLIN);
    const int error = connect_error(fd_.get());
    return owner_->on_connected(*this, error);
  }
  if ((events & EPOLLOUT) != 0) flush();
  // EPOLLERR and EPOLLHUP too: recv() then returns the error.
  if ((events & ~std::uint32_t{EPOLLOUT}) != 0 && open()) receive();
}

// One read. If more is there, the descriptor stays readable, and this stream's next turn comes
// after all others have had theirs.
void Stream::receive() {
  const ssize_t n = ::recv(fd_.get(), in_.data() + in_size_, in_.size() - in_size_, MSG_DONTWAIT);
  if (n < 0 && must_wait(errno)) return;
  if (n <= 0) return end(n == 0 ? CloseReason::disconnected : reason_of(errno));
  in_size_ += static_cast<std::size_t>(n);
  if (!take_messages()) end(CloseReason::disconnected);
}

// False: the bytes are no message. `in_` is longer than any message, so the remainder of an
// incomplete message always leaves room to read on.
bool Stream::take_messages() {
  std::size_t at = 0;
  while (open()) {
    Message message;
    std::size_t used = 0;
    if (!parse(std::span(in_).first(in_size_).subspan(at), message, used)) return false;
    if (used == 0) break;
    at += used;
    owner_->on_message(*this, message);
  }
  std::copy(in_.begin() + static_cast<std::ptrdiff_t>(at),
            in_.begin() + static_cast<std::ptrdiff_t>(in_size_), in_.begin());
  in_size_ -= at;
  return true;
}

void Stream::send(std::span<const std::byte> bytes) {
  if (!open()) return;
  out_.insert(out_.end(), bytes.begin(), bytes.end());
  flush();
}

// An error is not reported here, because the callers of send() do not expect on_end() to be called.
// shutdown() makes the descriptor readable, and receive() finds the end of the connection.
void Stream::flush() {
  while (!out_.empty()) {
    const ssize_t n = ::send(fd_.get(), out_.data(), out_.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    if (n < 0 && must_wait(errno) && out_.size() <= kMaxWaiting)
      return watch_.change(EPOLLIN | EPOLLOUT);
    if (n < 0) {
      out_.clear();
      ::shutdown(fd_.get(), SHUT_RDWR);
      break;
    }
    out_.erase(out_.begin(), out_.begin() + n);
  }
  watch_.change(EPOLLIN);
  if (finishing_) ::shutdown(fd_.get(), SHUT_WR);
}

void Stream::finish() {
  if (!open()) return;
  finishing_ = true;
  flush();
}

void Stream::abort() {
  if (!open()) return;
  watch_.end();
  abort_connection(std::move(fd_));
}

void Stream::end(CloseReason reason) {
  if (!open()) return;
  abort();
  owner_->on_end(*this, reason);
}

}  // namespace viaduct::vipl
