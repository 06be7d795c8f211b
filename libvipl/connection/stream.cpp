#include "libvipl/connection/stream.hpp"

#include <sys/epoll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>

#include "libvipl/connection/socket.hpp"

namespace viaduct::vipl {
namespace {

// More than all aliases of a NIC together. Who lets so much wait is not reading.
constexpr std::size_t kMaxWaiting = std::size_t{1} << 20;

bool must_wait(int error) {
  return error == EAGAIN || error == EWOULDBLOCK || error == EINTR;
}

// Errors of a host that does not answer; the others mean that the process is gone.
Loss loss_of(int error) {
  switch (error) {
    case ETIMEDOUT:
    case EHOSTUNREACH:
    case ENETUNREACH: return Loss::host_silent;
    default: return Loss::disconnected;
  }
}

}  // namespace

std::shared_ptr<Stream> Stream::make(Loop& loop, Descriptor fd, Kind kind, StreamOwner& owner) {
  const std::shared_ptr<Stream> stream(new Stream(std::move(fd), kind, owner));
  const std::uint32_t events = kind == Kind::connecting ? EPOLLOUT : EPOLLIN;
  stream->watch_ = Loop::Watch(loop, stream->fd_.get(), events,
                               [weak = std::weak_ptr(stream)](std::uint32_t ready) {
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
  if ((events & ~std::uint32_t{EPOLLOUT}) != 0 && open()) receive();
}

// One read; what is left makes the descriptor ready again, after everybody else's turn.
void Stream::receive() {
  const ssize_t n = ::recv(fd_.get(), in_.data() + in_size_, in_.size() - in_size_, MSG_DONTWAIT);
  if (n < 0 && must_wait(errno)) return;
  if (n <= 0) return end(n == 0 ? Loss::disconnected : loss_of(errno));
  in_size_ += static_cast<std::size_t>(n);
  if (!take_messages()) end(Loss::disconnected);
}

// False: rubbish. The buffer has room for many messages, so there is always room after this.
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

// An error is left for receive() to find: nobody expects on_end() while sending.
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

void Stream::end(Loss loss) {
  if (!open()) return;
  abort();
  owner_->on_end(*this, loss);
}

}  // namespace viaduct::vipl
