// Socket options, and the system calls behind Acceptor, Stream, RendezvousSocket and RequestRouter.
#include "libvipl/connection/socket/socket.hpp"

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

// Enough for tens of thousands of connections. Not more, because some programs close every number
// up to the limit when they fork, which takes minutes with a limit of 2^30.
constexpr rlim_t kWantedDescriptors = 65536;

// FD_SETSIZE: select(), which programs of VIA's time use, cannot watch descriptors from 1024 on. So
// the library's own descriptors are put there, out of their way.
constexpr int kFirstOwnDescriptor = 1024;

// TCP keepalive: a host that has vanished is noticed 10 + 3 * 3 seconds after its last packet.
// TCP_USER_TIMEOUT is the same limit for data that is not acknowledged.
constexpr int kKeepIdle = 10, kKeepInterval = 3, kKeepCount = 3;
constexpr int kUserTimeout = 19000;  // ms

void set(int fd, int level, int option, int value) {
  ::setsockopt(fd, level, option, &value, sizeof value);
}

// Moves the descriptor to a number from kFirstOwnDescriptor on. If none is free there it stays.
UniqueFd move_above_fd_setsize(UniqueFd fd) {
  if (!fd) return fd;
  const int error = errno;
  UniqueFd higher(::fcntl(fd.get(), F_DUPFD_CLOEXEC, kFirstOwnDescriptor));
  errno = error;
  return higher ? std::move(higher) : std::move(fd);
}

UniqueFd tcp_socket() {
  return move_above_fd_setsize(
      UniqueFd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0)));
}

UniqueFd unix_socket() {
  return move_above_fd_setsize(
      UniqueFd(::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0)));
}

// Closes the descriptor and keeps errno for the caller.
UniqueFd failed(UniqueFd fd) {
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

// Keepalive, and no Nagle delay: messages are small and each is waited for.
void set_tcp_options(int fd) {
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

// An abstract name: the first byte of the path is 0. It is not in the file system, and the kernel
// removes it with the last process that has the socket.
UnixAddress unix_address(const std::string& name) {
  UnixAddress out;
  out.address.sun_family = AF_UNIX;
  const std::size_t size = std::min(name.size(), sizeof out.address.sun_path - 1);
  std::memcpy(out.address.sun_path + 1, name.data(), size);
  out.size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + size);
  return out;
}

// The first file descriptor that came with a datagram. Any others are closed: an unfriendly sender
// may not fill this process's table.
UniqueFd first_descriptor(msghdr& header) {
  UniqueFd first;
  for (cmsghdr* c = CMSG_FIRSTHDR(&header); c != nullptr; c = CMSG_NXTHDR(&header, c)) {
    if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS) continue;
    const std::size_t count = (c->cmsg_len - CMSG_LEN(0)) / sizeof(int);
    for (std::size_t i = 0; i < count; ++i) {
      int fd = -1;
      std::memcpy(&fd, CMSG_DATA(c) + i * sizeof fd, sizeof fd);
      UniqueFd received(fd);
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

UniqueFd listening_socket(const NicAddress& at) {
  UniqueFd fd = tcp_socket();
  if (!fd) return fd;
  set(fd.get(), SOL_SOCKET, SO_REUSEADDR, 1);
  set(fd.get(), SOL_SOCKET, SO_REUSEPORT, 1);
  const sockaddr_in address = socket_address(at, at.port);
  if (::bind(fd.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0 ||
      ::listen(fd.get(), SOMAXCONN) != 0)
    return failed(std::move(fd));
  return fd;
}

// The system gives out no port that is in use, even if both would say SO_REUSEPORT.
UniqueFd port_holder(NicAddress& at) {
  UniqueFd fd = tcp_socket();
  if (!fd) return fd;
  set(fd.get(), SOL_SOCKET, SO_REUSEPORT, 1);
  sockaddr_in address = socket_address(at, 0);
  socklen_t size = sizeof address;
  if (::bind(fd.get(), reinterpret_cast<const sockaddr*>(&address), size) != 0 ||
      ::getsockname(fd.get(), reinterpret_cast<sockaddr*>(&address), &size) != 0)
    return failed(std::move(fd));
  at.port = ntohs(address.sin_port);
  return fd;
}

UniqueFd accepted_socket(int listener) {
  UniqueFd fd = move_above_fd_setsize(
      UniqueFd(::accept4(listener, nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK)));
  if (fd) set_tcp_options(fd.get());
  return fd;
}

UniqueFd connecting_socket(const NicAddress& from, const NicAddress& to) {
  UniqueFd fd = tcp_socket();
  if (!fd) return fd;
  set_tcp_options(fd.get());
  // The local port is chosen by connect(), which may use one port for several destinations.
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

void abort_connection(UniqueFd fd) {
  // connect() to AF_UNSPEC dissolves the connection and sends a reset. SO_LINGER with close() does
  // that only with the last descriptor of the socket; it is what is left where a kernel refuses.
  sockaddr nobody{};
  nobody.sa_family = AF_UNSPEC;
  if (::connect(fd.get(), &nobody, sizeof nobody) == 0) return;
  const linger reset{.l_onoff = 1, .l_linger = 0};
  ::setsockopt(fd.get(), SOL_SOCKET, SO_LINGER, &reset, sizeof reset);
}

UniqueFd named_socket(const std::string& name) {
  UniqueFd fd = unix_socket();
  if (!fd) return fd;
  const UnixAddress address = unix_address(name);
  if (::bind(fd.get(), address.get(), address.size) != 0) return failed(std::move(fd));
  return fd;
}

UniqueFd sending_socket() {
  return unix_socket();
}

HandOverResult hand_over(int sender, const std::string& name, const RequestBytes& request,
                         int connection) {
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
  if (::sendmsg(sender, &header, MSG_NOSIGNAL | MSG_DONTWAIT) >= 0)
    return HandOverResult::handed_over;
  switch (errno) {
    case EAGAIN:
    case ENOBUFS:
    case ENOMEM:
    case ETOOMANYREFS:  // too many descriptors of this user are under way between processes
    case EINTR: return HandOverResult::busy;
    default: return HandOverResult::no_receiver;
  }
}

std::optional<Datagram> receive_handed(int named) {
  Datagram out{};
  // One byte more shows a datagram that is too long.
  std::array<std::byte, sizeof(RequestBytes) + 1> bytes;
  iovec data{bytes.data(), bytes.size()};
  // Room for more descriptors than expected, so that they are seen and closed.
  alignas(cmsghdr) std::array<char, CMSG_SPACE(4 * sizeof(int))> control{};
  msghdr header{};
  header.msg_iov = &data;
  header.msg_iovlen = 1;
  header.msg_control = control.data();
  header.msg_controllen = control.size();
  const ssize_t size = ::recvmsg(named, &header, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
  if (size < 0) return std::nullopt;
  UniqueFd connection = first_descriptor(header);
  if (size != static_cast<ssize_t>(out.request.size()) || !is_open_connection(connection.get()))
    return out;
  std::copy_n(bytes.begin(), out.request.size(), out.request.begin());
  out.connection = move_above_fd_setsize(std::move(connection));
  return out;
}

}  // namespace viaduct::vipl
