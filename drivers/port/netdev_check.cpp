// Asks the kernel about interfaces and permissions by trying what DPDK's drivers will do, and says
// in a sentence what a failure means. port_config.cpp calls it before a port is opened.
#include "drivers/port/netdev_check.hpp"

#include <linux/capability.h>
#include <net/if.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <cerrno>
#include <cstring>
#include <fstream>

namespace viaduct::port {
namespace {

[[noreturn]] void throw_cannot_open(const std::string& port, const std::string& why) {
  throw base::SetupError("cannot open port " + port + ": " + why);
}

ifreq request_for(const std::string& interface) {
  ifreq request{};
  interface.copy(request.ifr_name, IFNAMSIZ - 1);
  return request;
}

// The bits of capabilities(7); 0 if they are unknown.
std::uint64_t effective_capabilities() {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);)
    if (line.starts_with("CapEff:")) return std::strtoull(line.c_str() + 7, nullptr, 16);
  return 0;
}

constexpr const char* kPermissionRemedy =
    "; run as root, or `setcap cap_net_raw,cap_net_admin,cap_ipc_lock+ep PROGRAM`, or inside a "
    "network namespace of your own (`unshare -Urn`)";

}  // namespace

std::size_t interface_mtu(const std::string& port, const std::string& interface) {
  const base::UniqueFd socket(::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  if (!socket)
    throw_cannot_open(port, std::string("no socket can be made (") + std::strerror(errno) +
                                "); raise the limit on open files (ulimit -n)");
  ifreq request = request_for(interface);
  if (interface.size() >= IFNAMSIZ || ioctl(socket.get(), SIOCGIFMTU, &request) != 0)
    throw_cannot_open(port, "this network namespace has no interface " + interface +
                                "; `ip link` lists those it has");
  return static_cast<std::size_t>(request.ifr_mtu);
}

void check_packet_sockets(const std::string& port, const std::string& interface) {
  const base::UniqueFd packet(::socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC, 0));
  if (!packet)
    throw_cannot_open(port, std::string("packet sockets are not permitted (") +
                                std::strerror(errno) + ")" + kPermissionRemedy);
  // DPDK's drivers set the interface's flags when they start. Setting the flags that it has already
  // changes nothing, but shows whether that is permitted.
  ifreq request = request_for(interface);
  if (ioctl(packet.get(), SIOCGIFFLAGS, &request) != 0 ||
      ioctl(packet.get(), SIOCSIFFLAGS, &request) != 0)
    throw_cannot_open(port, "setting flags of interface " + interface + " is not permitted (" +
                                std::strerror(errno) + ")" + kPermissionRemedy);
  if ((request.ifr_flags & IFF_UP) == 0)
    throw_cannot_open(port, "interface " + interface + " is down; run `ip link set " + interface +
                                " up` as root, at both ends");
}

std::size_t lockable_memory() {
  constexpr std::size_t plenty = std::size_t{1} << 30;  // more than any ring needs
  rlimit limit{};
  if ((effective_capabilities() >> CAP_IPC_LOCK & 1) != 0) return plenty;
  if (getrlimit(RLIMIT_MEMLOCK, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) return plenty;
  // A part may be in use already, and nothing tells how much: count on three quarters.
  return limit.rlim_cur / 4 * 3;
}

InterfaceClaim::InterfaceClaim(const std::string& port, const std::string& interface)
    : socket_(::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0)) {
  sockaddr_un name{};
  name.sun_family = AF_UNIX;
  const std::string text = "viaduct-port:" + interface;
  // A name in the abstract namespace begins with a zero byte, and its length says where it ends.
  // bind() is atomic, so of two ports one gets the name.
  const std::size_t length = text.copy(name.sun_path + 1, sizeof name.sun_path - 1);
  if (socket_ && bind(socket_.get(), reinterpret_cast<const sockaddr*>(&name),
                      static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + length)) == 0)
    return;
  const int error = errno;
  if (error == EADDRINUSE)
    throw_cannot_open(port,
                      "interface " + interface +
                          " is busy with another port of this host; close that one or use another "
                          "interface (`ss -xap | grep viaduct-port` names the process)");
  throw_cannot_open(port,
                    std::string("no socket: ") + std::strerror(error) + "; raise `ulimit -n`");
}

}  // namespace viaduct::port
