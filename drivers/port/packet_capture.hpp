// Writes Ethernet frames to a file that tcpdump and Wireshark read: the classic pcap format with
// time stamps in nanoseconds. The port owns it (VIADUCT_PCAP). Thread rule: the port's; one owner
// thread.
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
