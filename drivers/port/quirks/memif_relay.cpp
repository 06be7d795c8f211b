#include "drivers/port/quirks/memif_relay.hpp"

#include <rte_ethdev.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <utility>

#include "drivers/base/random.hpp"
#include "drivers/port/port_config.hpp"

namespace viaduct::port {
namespace {

using std::chrono::milliseconds;

constexpr std::size_t kMessage = 128;  // every control message, the type in the first two bytes
enum SessionMessage : std::uint16_t { kConnected = 7, kDisconnect = 8 };

constexpr base::Duration kRetryInterval = milliseconds(1);     // after nobody was there
constexpr base::Duration kRefusalBackoff = milliseconds(100);  // after somebody was, and would not
constexpr base::Duration kConnectTimeout = milliseconds(3000);
// The driver's thread has answered, and has a few instructions left to do.
constexpr base::Duration kDriverQuiesce = milliseconds(1);
constexpr base::Duration kMaxDriverQuiesce = milliseconds(1000);

struct SocketName {
  sockaddr_un address{};
  socklen_t length = 0;

  SocketName(const std::string& path, bool abstract) {
    address.sun_family = AF_UNIX;
    const std::size_t first = abstract ? 1 : 0;
    const std::size_t size =
        path.copy(address.sun_path + first, sizeof address.sun_path - 1 - first);
    // The driver's lengths: an abstract name ends with its last character.
    length = abstract ? static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + size)
                      : static_cast<socklen_t>(sizeof address);
  }
  const sockaddr* get() const { return reinterpret_cast<const sockaddr*>(&address); }
};

base::UniqueFd new_socket() {
  return base::UniqueFd(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
}

// A connected socket, or none and errno.
base::UniqueFd connect_to(const std::string& path, bool abstract) {
  base::UniqueFd fd = new_socket();
  const SocketName name(path, abstract);
  if (fd && ::connect(fd.get(), name.get(), name.length) != 0) fd.reset();
  return fd;
}

base::UniqueFd accept_from(const base::UniqueFd& listener) {
  return base::UniqueFd(::accept4(listener.get(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
}

// A listening socket, or none and errno.
base::UniqueFd listen_at(const std::string& path, bool abstract) {
  base::UniqueFd fd = new_socket();
  const SocketName name(path, abstract);
  if (fd && (::bind(fd.get(), name.get(), name.length) != 0 || ::listen(fd.get(), 8) != 0))
    fd.reset();
  return fd;
}

std::string private_path() {
  char text[64];
  std::snprintf(text, sizeof text, "viaduct-memif-%d-%016llx", static_cast<int>(getpid()),
                static_cast<unsigned long long>(base::random_word()));
  return text;
}

bool closed(ssize_t result) {
  return result == 0 || (result < 0 && errno != EAGAIN && errno != EINTR);
}

// -1: none.
int carried_file(msghdr& message) {
  const cmsghdr* const first = CMSG_FIRSTHDR(&message);
  if (first == nullptr || first->cmsg_level != SOL_SOCKET || first->cmsg_type != SCM_RIGHTS ||
      first->cmsg_len < CMSG_LEN(sizeof(int)))
    return -1;
  int file = -1;
  std::memcpy(&file, CMSG_DATA(first), sizeof file);
  return file;
}

bool is_server(const std::string& devargs) {
  const std::string role = devarg(devargs, "role").value_or("client");
  return role.find("server") != std::string::npos || role.find("master") != std::string::npos;
}

}  // namespace

MemifControl::MemifControl(const std::string& requested, const std::string& devargs)
    : server_(is_server(devargs)) {
  abstract_ = devarg(devargs, "socket-abstract").value_or("yes").find("no") == std::string::npos;
  path_ = devarg(devargs, "socket").value_or("/run/memif.sock");
  driver_path_ = private_path();
  driver_devargs_ =
      with_devarg(with_devarg(devargs, "socket", driver_path_), "socket-abstract", "yes");
  if (path_.empty() || path_.size() > sizeof(sockaddr_un::sun_path) - 2)
    throw base::SetupError("cannot open port " + requested +
                           ": its socket's name is empty or too long; give "
                           "socket= 1 to 106 characters");
  if (server_) {
    listen_for_peers(requested);
  } else if (driver_listener_ = listen_at(driver_path_, true); !driver_listener_) {
    throw base::SetupError("cannot open port " + requested +
                           ": no socket: " + std::strerror(errno) + "; raise `ulimit -n`");
  }
}

MemifControl::~MemifControl() {
  if (peer_listener_ && !abstract_) ::unlink(path_.c_str());
}

void MemifControl::listen_for_peers(const std::string& requested) {
  peer_listener_ = listen_at(path_, abstract_);
  if (!peer_listener_ && errno == EADDRINUSE && !abstract_) {
    // A server that was killed leaves its file, at which nobody answers.
    if (!connect_to(path_, false) && errno == ECONNREFUSED) {
      ::unlink(path_.c_str());
      peer_listener_ = listen_at(path_, false);
    } else {
      errno = EADDRINUSE;
    }
  }
  if (peer_listener_) return;
  const int error = errno;
  const char* remedy = "choose another socket=";
  if (error == EADDRINUSE) remedy = "close the memif server that has it or choose another socket=";
  if (error == ENOENT) remedy = "make the directory or choose another socket=";
  if (error == EACCES) remedy = "choose a socket= in a directory that this user may write to";
  throw base::SetupError("cannot open port " + requested + ": cannot listen at socket " + path_ +
                         ": " + std::strerror(error) + "; " + remedy);
}

void MemifControl::progress(base::Time now) {
  switch (state_) {
    case State::disconnected:
      if (now < next_try_) return;
      next_try_ = now + kRetryInterval;
      connect_peer();
      if (!peer_ || !driver_) return;
      state_ = State::connecting;
      since_ = now;
      unanswered_ = server_ ? 1 : 0;  // a server's driver speaks first
      connected_forwarded_ = false;
      [[fallthrough]];
    case State::connecting: relay_handshake(now); return;
    case State::connected: watch_peer(now); return;
    case State::disconnecting: restart_driver(now); return;
  }
}

void MemifControl::connect_peer() {
  if (!peer_) peer_ = server_ ? accept_from(peer_listener_) : connect_to(path_, abstract_);
  if (driver_ || !peer_) return;
  driver_ = server_ ? connect_to(driver_path_, true) : accept_from(driver_listener_);
}

// Passes one message on.
MemifControl::ForwardResult MemifControl::forward(const base::UniqueFd& from,
                                                  const base::UniqueFd& to, std::uint16_t& type) {
  std::array<char, kMessage> message{};
  alignas(cmsghdr) std::array<char, CMSG_SPACE(4 * sizeof(int))> control{};
  iovec part{message.data(), message.size()};
  msghdr header{};
  header.msg_iov = &part;
  header.msg_iovlen = 1;
  header.msg_control = control.data();
  header.msg_controllen = control.size();
  const ssize_t size = ::recvmsg(from.get(), &header, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
  if (size <= 0) return closed(size) ? ForwardResult::end : ForwardResult::nothing;
  std::memcpy(&type, message.data(), sizeof type);
  part.iov_len = static_cast<std::size_t>(size);
  if (&from == (server_ ? &peer_ : &driver_))
    rings_.learn(std::as_bytes(std::span(message)).first(part.iov_len), carried_file(header));
  bool sent = size == kMessage && (header.msg_flags & (MSG_TRUNC | MSG_CTRUNC)) == 0;
  // A farewell is not for the driver, which would act on it in its own thread.
  if (type != kDisconnect || &to != &driver_)
    sent = sent && ::sendmsg(to.get(), &header, MSG_DONTWAIT | MSG_NOSIGNAL) == size;
  for (cmsghdr* c = CMSG_FIRSTHDR(&header); c != nullptr; c = CMSG_NXTHDR(&header, c)) {
    if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS) continue;
    for (std::size_t at = 0; at + sizeof(int) <= c->cmsg_len - CMSG_LEN(0); at += sizeof(int)) {
      int fd = -1;
      std::memcpy(&fd, CMSG_DATA(c) + at, sizeof fd);
      ::close(fd);
    }
  }
  return sent && type != kDisconnect ? ForwardResult::message : ForwardResult::end;
}

void MemifControl::relay_handshake(base::Time now) {
  std::uint16_t type = 0;
  // A handshake has about ten messages; more at a time would let a peer keep us here.
  for (int i = 0; i < 16; ++i) {
    const ForwardResult down = forward(peer_, driver_, type);
    if (down == ForwardResult::end) return disconnect(now);
    if (down == ForwardResult::message) {
      ++unanswered_;
      connected_forwarded_ = type == kConnected;
      since_ = now;
    }
    const ForwardResult up = forward(driver_, peer_, type);
    if (up == ForwardResult::end) {
      unanswered_ = 0;  // the driver has given up: it is at rest
      return disconnect(now);
    }
    if (up == ForwardResult::message) {
      --unanswered_;
      if (type == kConnected && server_) state_ = State::connected;
    }
    if (connected_forwarded_ && driver_is_up()) state_ = State::connected;
    if (state_ == State::connected) return rings_.populate();
    if (down == ForwardResult::nothing && up == ForwardResult::nothing) break;
  }
  if (now - since_ > kConnectTimeout) disconnect(now);
}

// Nothing but a farewell comes from a peer that is connected, and any word ends it.
void MemifControl::watch_peer(base::Time now) {
  char byte;
  const ssize_t size = ::recv(peer_.get(), &byte, 1, MSG_DONTWAIT | MSG_PEEK);
  if (size > 0 || closed(size)) disconnect(now);
}

void MemifControl::disconnect(base::Time now) {
  next_try_ = now + (state_ == State::connected ? kRetryInterval : kRefusalBackoff);
  if (state_ == State::connected) unanswered_ = 0;
  state_ = State::disconnecting;
  since_ = now;
  rings_.forget();
  peer_.reset();
  restart_driver(now);
}

// The driver may be stopped by this thread only when its own has no message left to work on.
void MemifControl::restart_driver(base::Time now) {
  std::array<char, kMessage> message;
  ssize_t size = 0;
  while ((size = ::recv(driver_.get(), message.data(), message.size(), MSG_DONTWAIT)) > 0)
    --unanswered_;
  const bool resting = unanswered_ <= 0 || closed(size) || (connected_forwarded_ && driver_is_up());
  if (now - since_ < (resting ? kDriverQuiesce : kMaxDriverQuiesce)) return;
  rte_eth_dev_stop(port_);
  driver_.reset();
  rte_eth_dev_start(port_);
  state_ = State::disconnected;
}

bool MemifControl::driver_is_up() const {
  rte_eth_link link{};
  return rte_eth_link_get_nowait(port_, &link) == 0 && link.link_status == RTE_ETH_LINK_UP;
}

}  // namespace viaduct::port
