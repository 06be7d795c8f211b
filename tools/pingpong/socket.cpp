// The few socket calls that several files share (socket.hpp), each with a sentence for its failure.
#include "tools/pingpong/socket.hpp"

#include <arpa/inet.h>
#include <sys/socket.h>

#include "tools/pingpong/error.hpp"

namespace viaduct::pingpong {

sockaddr_in socket_address(const std::string& ip, std::uint16_t port) {
  sockaddr_in out{};
  out.sin_family = AF_INET;
  out.sin_port = htons(port);
  if (inet_pton(AF_INET, ip.c_str(), &out.sin_addr) != 1)
    throw Failure("'" + ip + "' is not an IPv4 address such as 192.168.1.2");
  return out;
}

UniqueFd bound_socket(int type, const std::string& ip, std::uint16_t port) {
  UniqueFd out(::socket(AF_INET, type | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (!out) throw system_failure("cannot open a socket");
  // The port of the last turn's connection may still be in TIME_WAIT.
  set_option(out.get(), SOL_SOCKET, SO_REUSEADDR, 1, "SO_REUSEADDR");
  const sockaddr_in address = socket_address(ip, port);
  if (::bind(out.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)) != 0)
    throw system_failure(
        "cannot use " + ip + " port " + std::to_string(port),
        "give an address that `ip addr` shows on this host, and see with `ss -tulpn` "
        "that nobody uses the port");
  return out;
}

// A backlog of 1: there is one client.
UniqueFd listening_socket(const std::string& ip, std::uint16_t port) {
  UniqueFd out = bound_socket(SOCK_STREAM, ip, port);
  if (::listen(out.get(), 1) != 0) throw system_failure("cannot listen at " + ip);
  return out;
}

void set_option(int fd, int level, int option, int value, const char* name) {
  if (::setsockopt(fd, level, option, &value, sizeof(value)) != 0)
    throw system_failure(std::string("cannot set the socket option ") + name);
}

namespace {

// getsockname() and getpeername() differ in nothing but their name.
std::string ip_of(int fd, int (*name)(int, sockaddr*, socklen_t*)) {
  sockaddr_in address{};
  socklen_t length = sizeof(address);
  char text[INET_ADDRSTRLEN] = "";
  if (name(fd, reinterpret_cast<sockaddr*>(&address), &length) != 0)
    throw system_failure("cannot learn the address of a connection");
  inet_ntop(AF_INET, &address.sin_addr, text, sizeof(text));
  return text;
}

}  // namespace

std::string own_ip(int fd) {
  return ip_of(fd, [](int f, sockaddr* a, socklen_t* l) { return ::getsockname(f, a, l); });
}
std::string peer_ip(int fd) {
  return ip_of(fd, [](int f, sockaddr* a, socklen_t* l) { return ::getpeername(f, a, l); });
}

}  // namespace viaduct::pingpong
