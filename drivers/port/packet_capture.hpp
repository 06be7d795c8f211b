// Writes Ethernet frames to a file that tcpdump and Wireshark read (classic pcap, nanoseconds).
#pragma once

#include <cstdio>
#include <span>
#include <string>

#include "drivers/link/types.hpp"

namespace viaduct::port {

class PcapWriter {
 public:
  // Creates the file or empties it. SetupError when that fails or another writer has it.
  explicit PcapWriter(const std::string& path);
  ~PcapWriter();
  PcapWriter(const PcapWriter&) = delete;
  PcapWriter& operator=(const PcapWriter&) = delete;

  // A disk that is full ends the recording, not the program.
  void write(std::span<const std::byte> frame);
  std::uint64_t frames() const { return frames_; }
  bool failed() const { return failed_; }

 private:
  std::FILE* file_ = nullptr;
  std::uint64_t frames_ = 0;
  bool failed_ = false;
};

}  // namespace viaduct::port
