// Two emulated hosts, made by viaduct-testbed and taken down again whatever happens.
#pragma once

#include <string>

namespace viaduct::pingpong {

class Testbed {
 public:
  // Throws Failure with viaduct-testbed's own reason.
  Testbed(std::size_t mtu, bool offload);
  ~Testbed();
  Testbed(const Testbed&) = delete;
  Testbed& operator=(const Testbed&) = delete;

  // Moves the calling process to host 0 or 1.
  void enter(int host) const;
  static std::string ip(int host);

  // In a process that entered a host: becomes the program that takes the bed down. For the case
  // that the process which made the bed was killed.
  [[noreturn]] void take_down_instead() const;

 private:
  std::string program_, name_;
};

}  // namespace viaduct::pingpong
