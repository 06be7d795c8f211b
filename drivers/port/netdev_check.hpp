// What a port on a network interface of the kernel's (AF_PACKET, AF_XDP) needs of that interface,
// checked before DPDK is asked, so that errors name the remedy. Any thread may call these
// functions.
#pragma once

#include <string>

#include "drivers/base/unique_fd.hpp"
#include "drivers/link/types.hpp"

namespace viaduct::port {

// In all of these `port` is what the user asked for, to be named in the SetupErrors.

// The interface's MTU in bytes. SetupError if there is no such interface in this network namespace.
std::size_t interface_mtu(const std::string& port, const std::string& interface);

// SetupError unless this process may use packet sockets and set flags on the interface, and it is
// up.
void check_packet_sockets(const std::string& port, const std::string& interface);

// Bytes that this process may lock into memory, as a cautious estimate (RLIMIT_MEMLOCK).
std::size_t lockable_memory();

// The claim of one port on an interface of its network namespace. Two ports on one interface would
// share an Ethernet address and get the same frames. The claim is a name in the abstract socket
// namespace, which the kernel frees when the process ends, also after a crash. The destructor gives
// it up.
class InterfaceClaim {
 public:
  InterfaceClaim() = default;
  // SetupError when another process or port has the interface.
  InterfaceClaim(const std::string& port, const std::string& interface);

 private:
  base::UniqueFd socket_;  // has the name
};

}  // namespace viaduct::port
