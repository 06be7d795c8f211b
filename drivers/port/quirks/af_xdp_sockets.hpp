// Works around: DPDK's af_xdp driver (seen with 22.11).
// Safe with another version: what the driver closes itself, until its device is removed, is not
// there any more, and a socket is known by its inode. Costs: nothing while the port is open.
//
// The driver miscounts the users of a port's memory area and never closes the socket that holds it,
// nor its rings: the interface stays busy until the process ends. So a port notes the AF_XDP
// sockets that appear while it is opened, and closes those that are left after the driver has
// closed.
#pragma once

#include <sys/types.h>

#include <vector>

namespace viaduct::port {

class XdpSockets {
 public:
  // Notes those that there are: the ones opened later are ours.
  void begin() { before_ = present(); }
  void end();
  void close_left_over();
  // Of ours; readable when frames have arrived.
  std::vector<int> descriptors() const;

 private:
  struct Socket {
    int fd;
    ino_t inode;  // tells it from a later one of the same number
    bool operator==(const Socket&) const = default;
  };
  static std::vector<Socket> present();
  static void unmap(ino_t inode);

  std::vector<Socket> before_, ours_;
};

}  // namespace viaduct::port
