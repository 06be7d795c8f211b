#include "libvipl/connection/socket.hpp"

#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstring>

namespace viaduct::vipl {
namespace {

// Enough for tens of thousands of connections; some programs close every number up to the limit
// when they fork, which takes minutes where it is a thousand million.
constexpr rlim_t kWantedDescriptors = 65536;

// Programs of VIA's time use select(), which cannot look at descriptors beyond: connections stay
// out of their way.
constexpr int kFirstOwnDescriptor = 1024;

// A host that has vanished is noticed after 10 + 3 * 3 seconds.
constexpr int kKeepIdle = 10, kKeepInterval = 3, kKeepCount = 3;
constexpr int kUserTimeout = 19000;  // ms

void set(int fd, int level, int option, int value) {
  ::setsockopt(fd, level, option, &value, sizeof value);
}

Descriptor out_of_the_way(Descriptor fd) {
  if (!fd) return fd;
  const int error = errno;
  Descriptor higher(::fcntl(fd.get(), F_DUPFD_CLOEXEC, kFirstOwnDescriptor));
  errno = error;
  return higher ? std::move(higher) : std::move(fd);
}

Descriptor tcp_socket() {
  return out_of_the_way(
      Descriptor(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0)));
}

Descriptor unix_socket() {
  return out_of_the_way(
      Descriptor(::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0)));
}

// Empty, without losing errno.
Descriptor failed(Descriptor fd) {
  const int error = errno;
  fd.reset();
  errno = error;
  return {};
}

sockaddr_in socket_address(const NicAddress& nic, std::uint16_t port) {
  sockaddr_in out{};
  out.sin_family = AF_INET;
  out.sin_port = htons(port);
  std::memcpy(&out.sin_addr, nic.ip.data(), nic.ip.size());
  return out;
}

void watch_over(int fd) {
  set(fd, SOL_SOCKET, SO_KEEPALIVE, 1);
  set(fd, IPPROTO_TCP, TCP_KEEPIDLE, kKeepIdle);
  set(fd, IPPROTO_TCP, TCP_KEEPINTVL, kKeepInterval);
  set(fd, IPPROTO_TCP, TCP_KEEPCNT, kKeepCount);
  set(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, kUserTimeout);
  set(fd, IPPROTO_TCP, TCP_NODELAY, 1);
}

struct UnixAddress {
  sockaddr_un address{};
  socklen_t size = 0;
  const sockaddr* get() const { return reinterpret_cast<const sockaddr*>(&address); }
};

// Abstract: the first byte is zero, nothing is in the file system, and the name is gone when the
// last process that has it dies.
UnixAddress unix_address(const std::string& name) {
  UnixAddress out;
  out.address.sun_family = AF_UNIX;
  const std::size_t size = std::min(name.size(), sizeof out.address.sun_path - 1);
  std::memcpy(out.address.sun_path + 1, name.data(), size);
  out.size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + size);
  return out;
}

// Of the descriptors that came along the first; the others are closed.
Descriptor first_descriptor(msghdr& header) {
  Descriptor first;
  for (cmsghdr* c = CMSG_FIRSTHDR(&header); c != nullptr; c = CMSG_NXTHDR(&header, c)) {
    if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS) continue;
    const std::size_t count = (c->cmsg_len - CMSG_LEN(0)) / sizeof(int);
    for (std::size_t i = 0; i < count; ++i) {
      int fd = -1;
      std::memcpy(&fd, CMSG_DATA(c) + i * sizeof fd, sizeof fd);
      Descriptor received(fd);
      if (!first) first = std::move(received);
    }
  }
  return first;
}

}  // namespace

void raise_descriptor_limit() {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
  const rlim_t wanted = std::min(limit.rlim_max, kWantedDescriptors);
  if (limit.rlim_cur >= wanted) return;
  limit.rlim_cur = wanted;
  ::setrlimit(RLIMIT_NOFILE, &limit);
}

Descriptor listening_socket(const NicAddress& at) {
  Descriptor fd = tcp_socket();
  if (!fd) return fd;
  set(fd.get(), SOL_SOCKET, SO_REUSEADDR, 1);
  set(fd.get(), SOL_SOCKET, SO_REUSEPORT, 1);
  const sockaddr_in address = socket_address(at, at.port);
  if (::bind(fd.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0 ||
      ::listen(fd.get(), SOMAXCONN) != 0)
    return failed(std::move(fd));
  return fd;
}

Descriptor accepted_socket(int listener) {
  Descriptor fd = out_of_the_way(
      Descriptor(::accept4(listener, nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK)));
  if (fd) watch_over(fd.get());
  return fd;
}

Descriptor connecting_socket(const NicAddress& from, const NicAddress& to) {
  Descriptor fd = tcp_socket();
  if (!fd) return fd;
  watch_over(fd.get());
  set(fd.get(), IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT, 1);
  const sockaddr_in local = socket_address(from, 0), remote = socket_address(to, to.port);
  if (::bind(fd.get(), reinterpret_cast<const sockaddr*>(&local), sizeof local) != 0)
    return failed(std::move(fd));
  if (::connect(fd.get(), reinterpret_cast<const sockaddr*>(&remote), sizeof remote) != 0 &&
      errno != EINPROGRESS)
    return failed(std::move(fd));
  return fd;
}

int connect_error(int fd) {
  int error = 0;
  socklen_t size = sizeof error;
  return ::getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &size) == 0 ? error : errno;
}

bool is_open_connection(int fd) {
  tcp_info info{};
  socklen_t size = sizeof info;
  return ::getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &size) == 0 &&
         info.tcpi_state == TCP_ESTABLISHED;
}

void abort_connection(Descriptor fd) {
  sockaddr nobody{};
  nobody.sa_family = AF_UNSPEC;
  ::connect(fd.get(), &nobody, sizeof nobody);
}

Descriptor named_socket(const std::string& name) {
  Descriptor fd = unix_socket();
  if (!fd) return fd;
  const UnixAddress address = unix_address(name);
  if (::bind(fd.get(), address.get(), address.size) != 0) return failed(std::move(fd));
  return fd;
}

Descriptor sending_socket() {
  return unix_socket();
}

Handed hand_over(int sender, const std::string& name, const RequestBytes& request, int connection) {
  UnixAddress to = unix_address(name);
  iovec data{const_cast<std::byte*>(request.data()), request.size()};
  alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(int))> control{};
  msghdr header{};
  header.msg_name = &to.address;
  header.msg_namelen = to.size;
  header.msg_iov = &data;
  header.msg_iovlen = 1;
  header.msg_control = control.data();
  header.msg_controllen = control.size();
  cmsghdr* c = CMSG_FIRSTHDR(&header);
  c->cmsg_level = SOL_SOCKET;
  c->cmsg_type = SCM_RIGHTS;
  c->cmsg_len = CMSG_LEN(sizeof(int));
  std::memcpy(CMSG_DATA(c), &connection, sizeof connection);
  if (::sendmsg(sender, &header, MSG_NOSIGNAL | MSG_DONTWAIT) >= 0) return Handed::over;
  switch (errno) {
    case EAGAIN:
    case ENOBUFS:
    case ENOMEM:
    case ETOOMANYREFS:  // of this user's descriptors on their way between processes
    case EINTR: return Handed::busy;
    default: return Handed::nobody;
  }
}

std::optional<Received> receive_handed(int named) {
  Received out{};
  std::array<std::byte, sizeof(RequestBytes) + 1> bytes;  // one more shows what is too long
  iovec data{bytes.data(), bytes.size()};
  alignas(cmsghdr) std::array<char, CMSG_SPACE(4 * sizeof(int))> control{};
  msghdr header{};
  header.msg_iov = &data;
  header.msg_iovlen = 1;
  header.msg_control = control.data();
  header.msg_controllen = control.size();
  const ssize_t size = ::recvmsg(named, &header, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
  if (size < 0) return std::nullopt;
  Descriptor connection = first_descriptor(header);
  if (size != static_cast<ssize_t>(out.request.size()) || !is_open_connection(connection.get()))
    return out;
  std::copy_n(bytes.begin(), out.request.size(), out.request.begin());
  out.connection = out_of_the_way(std::move(connection));
  return out;
}

}  // namespace viaduct::vipl
