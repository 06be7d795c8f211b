// Writes Ethernet frames to a file that tcpdump and Wireshark read: the classic pcap format with
// time stamps in nanoseconds. The port owns it (VIADUCT_PCAP). Thread rule: the port's; one owner
// thread.
//
// Not DPDK's rte_pcapng, though that records the direction, too: it needs a pool of mbufs to copy
// the frames into, makes a system call for each burst, and was experimental in DPDK 22.11 (its
// functions have changed since); opening, locking and errors of the file would stay ours.
#pragma once

#include <cstdio>
#include <span>
#include <string>

#include "drivers/link/types.hpp"

namespace viaduct::port {

class PcapWriter {
 public:
  // Creates the file or empties it, and locks it. SetupError when that fails or another writer has
  // the lock.
  explicit PcapWriter(const std::string& path);
  ~PcapWriter();
  PcapWriter(const PcapWriter&) = delete;
  PcapWriter& operator=(const PcapWriter&) = delete;

  // Appends one frame with the present time. After an error (a full disk) it writes no more, and
  // the program goes on; failed() tells.
  void write(std::span<const std::byte> frame);
  std::uint64_t frames() const { return frames_; }
  bool failed() const { return failed_; }

 private:
  std::FILE* file_ = nullptr;
  std::uint64_t frames_ = 0;
  bool failed_ = false;
};

}  // namespace viaduct::port
