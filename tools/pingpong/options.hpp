// The command line of viaduct-pingpong. Knows of each layer only its LayerInfo.
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
  std::string_view name;     // unique; what --layer takes
  std::string_view summary;  // one line for --help
  Over over = Over::port;
  bool one_side_per_process = false;  // as for mpi; so not on the testbed ring
};

// What the program is to do. Filled by parse_options(), which also checks that the options fit each
// other.
struct Options {
  enum class Mode : std::uint8_t { help, netns, memif, ring, verbs, listen, connect };
  Mode mode = Mode::help;  // where the two sides are
  std::vector<std::string> layers;
  std::vector<std::size_t> sizes;  // bytes, ascending, none twice
  unsigned rounds = 5;
  std::chrono::milliseconds time_per_point{50};
  std::uint64_t messages = 0;  // 0: as many as the time allows
  bool latency = true, bandwidth = true;
  bool checksum = true;
  std::size_t mtu = 0;            // 0: the port's (testbed: 1500)
  std::string pmd = "af_packet";  // netns: DPDK's driver of the ports
  bool offload = true;            // netns: TCP segmentation offload
  std::string connect_to;         // MAC or IPv4 address
  std::string port, ip;           // --listen, --connect: devargs; --listen: IPv4 address
  std::string json, plot;         // output files; empty: none
};

// "8:1M" (doubling), "8,64,1K" or a mixture. K and M are 1024 and 1024^2. The result is ascending
// and has no size twice. Throws UsageError.
std::vector<std::size_t> parse_sizes(std::string_view text);

// `arguments` without the program's name. Throws UsageError. --help gives Options with mode `help`.
Options parse_options(std::span<const char* const> arguments, std::span<const LayerInfo> layers);

// The text of --help, with a line for each layer.
std::string help_text(std::span<const LayerInfo> layers);

// The value of `bed` in the JSON file.
std::string_view testbed_name(Options::Mode mode);

}  // namespace viaduct::pingpong
