// The kernel's network interfaces, as far as ports stand on them.
#pragma once

#include <string>
#include <utility>

#include "drivers/link/types.hpp"

namespace viaduct::port {

// `port` is what the user asked for; it is named in the SetupErrors.
std::size_t interface_mtu(const std::string& port, const std::string& interface);

// SetupError unless this process may use packet sockets and set flags on the interface, and it is
// up.
void check_packet_sockets(const std::string& port, const std::string& interface);

// Bytes this process may lock into memory.
std::size_t lockable_memory();

// One port per interface (queue) in a network namespace: two would get the same frames and share an
// address. Held by a name in the abstract socket namespace, so it goes when the process goes,
// however that happens.
class InterfaceClaim {
 public:
  InterfaceClaim() = default;
  // SetupError when another process or port has it.
  InterfaceClaim(const std::string& port, const std::string& interface);
  ~InterfaceClaim();
  InterfaceClaim(InterfaceClaim&& other) noexcept : fd_(other.fd_) { other.fd_ = -1; }
  InterfaceClaim& operator=(InterfaceClaim&& other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
  }

 private:
  int fd_ = -1;
};

}  // namespace viaduct::port
