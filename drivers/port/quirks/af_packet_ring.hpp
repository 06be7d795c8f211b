// Works around: Linux (seen with 6.18) and DPDK's af_packet driver (seen with 22.11).
// Safe with another version: it knows nothing, and is not used, unless the kernel says that the
// socket has rings of TPACKET_V2 and their mapping has exactly the size that the driver was told.
// Costs: errno is set and read around each burst, which is a system call.
//
// The transmit ring of a packet socket, where one frame that the kernel cannot pass on stops all
// that come behind it. A veth pair whose far end has a smaller MTU refuses a long frame as if it
// were busy; the kernel leaves the frame where it is and tries it again, first, whenever it is
// asked to send (tpacket_snd). The driver never looks at a frame again once it has put it into the
// ring, and does not give out its socket, so this class finds both among the files of the process.
#pragma once

#include <linux/if_packet.h>

#include <cstddef>
#include <string>

#include "drivers/link/types.hpp"

namespace viaduct::port {

class PacketRing {
 public:
  PacketRing() = default;
  // That of this process's packet socket on the interface, with so many slots of that many bytes.
  // Knows nothing (false) if there is no such ring.
  PacketRing(const std::string& interface, std::size_t slot_bytes, std::size_t slots);
  explicit operator bool() const { return slots_ != nullptr; }

  // Readable when frames have arrived; -1: it was not found.
  int socket() const { return socket_; }

  // The kernel has refused to send. A frame that stands first for longer than a NIC is busy is cut
  // to its Ethernet header, which any interface takes, so that it is lost and the others leave.
  void on_send_refused(base::Time now);

 private:
  // For comparison: a 10 Gb/s NIC sends its whole ring of 4096 full frames in 5 ms.
  static constexpr base::Duration kBusy = std::chrono::milliseconds{6};
  static constexpr std::size_t kNone = SIZE_MAX;

  tpacket2_hdr* slot(std::size_t index) const {
    return reinterpret_cast<tpacket2_hdr*>(slots_ + index * slot_bytes_);
  }
  bool waits(std::size_t index) const;
  std::size_t first_waiting() const;

  int socket_ = -1;
  std::byte* slots_ = nullptr;
  std::size_t slot_bytes_ = 0, count_ = 0;
  std::size_t suspect_ = kNone;
  base::Time suspected_since_{};
};

}  // namespace viaduct::port
