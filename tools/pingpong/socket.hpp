// Kernel sockets: the few calls that the layers udp, tcp, packet and verbs and the control channel
// share.
#pragma once

#include <netinet/in.h>

#include <string>

#include "drivers/base/unique_fd.hpp"

namespace viaduct::pingpong {

// TCP and UDP ports of the server: control channel, layer udp, layer tcp, exchange of addresses of
// layer verbs.
inline constexpr std::uint16_t kControlPort = 17751, kUdpPort = 17752, kTcpPort = 17753,
                               kVerbsPort = 17754;

using base::UniqueFd;

// All of these throw Failure. socket_address(): `ip` is an IPv4 address in dots; `port` in host
// order. Port 0 of bound_socket(): the kernel chooses one. own_ip() and peer_ip(): the two ends of
// a connected socket.
sockaddr_in socket_address(const std::string& ip, std::uint16_t port);
UniqueFd bound_socket(int type, const std::string& ip, std::uint16_t port);  // non-blocking
UniqueFd listening_socket(const std::string& ip, std::uint16_t port);        // non-blocking
void set_option(int fd, int level, int option, int value, const char* name);
std::string own_ip(int fd);
std::string peer_ip(int fd);

}  // namespace viaduct::pingpong
