// The testbed `netns`: two emulated hosts, network namespaces that a veth pair joins, made by the
// script viaduct-testbed and taken down again whatever happens.
#pragma once

#include <string>

namespace viaduct::pingpong {

// Owns the two namespaces. Made in the parent process before it forks; its destructor takes the
// hosts down in the parent only, because the children end by _exit().
class Testbed {
 public:
  // Throws Failure with viaduct-testbed's own reason; needs root. `offload`: TCP segmentation
  // offload of the ports.
  Testbed(std::size_t mtu, bool offload);
  ~Testbed();
  Testbed(const Testbed&) = delete;
  Testbed& operator=(const Testbed&) = delete;

  // Moves the calling process to host 0 or 1: its network namespace, and a /sys of its own. For
  // good.
  void enter(int host) const;
  // The IPv4 address of host 0 or 1, as viaduct-testbed assigns it.
  static std::string ip(int host);

  // In a process that has entered a host: becomes the program that takes the testbed down. For the
  // case that the process which made the testbed was killed and could not.
  [[noreturn]] void take_down_instead() const;

 private:
  std::string program_, name_;
};

}  // namespace viaduct::pingpong
