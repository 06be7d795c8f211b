// The command line.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace viaduct::pingpong {

inline constexpr std::size_t kMinBytes = 4;  // the smallest atomic word
inline constexpr std::size_t kMaxBytes = 64u << 20;

// What a layer stands on: an ethdev port, the kernel's network stack, or an RDMA device.
enum class Over : std::uint8_t { port, kernel, rdma };

// What the command line needs to know of a layer.
struct LayerInfo {
  std::string_view name;
  std::string_view summary;  // one line for --help
  Over over = Over::port;
  bool alone = false;  // there can be only one side in a process
};

struct Options {
  enum class Mode : std::uint8_t { help, netns, memif, ring, verbs, listen, connect };
  Mode mode = Mode::help;
  std::vector<std::string> layers;
  std::vector<std::size_t> sizes;
  unsigned rounds = 5;
  std::chrono::milliseconds time_per_point{50};
  std::uint64_t messages = 0;  // 0: as many as the time allows
  bool latency = true, bandwidth = true;
  bool checksum = true;
  std::size_t mtu = 0;  // 0: the port's (bed: 1500)
  std::string pmd = "af_packet";
  bool offload = true;     // netns: TCP segmentation offload
  std::string connect_to;  // MAC or IPv4 address
  std::string port, ip;    // one side on a real host
  std::string json, plot;
};

// "8:1M" (doubling), "8,64,1K" or a mixture. K, M: 1024, 1024^2. Throws UsageError.
std::vector<std::size_t> parse_sizes(std::string_view text);

// Throws UsageError.
Options parse_options(std::span<const char* const> arguments, std::span<const LayerInfo> layers);

std::string help_text(std::span<const LayerInfo> layers);

// The value of `bed` in the JSON file.
std::string_view bed_name(Options::Mode mode);

}  // namespace viaduct::pingpong
