// Parses the command line (options.hpp). Options are taken one by one; whether they fit each other
// is checked at the end, so that their order does not matter. Parsed by hand rather than with
// CLI11: that made the parser and its help 31 of 560 lines shorter, but took 20 s more to compile
// and 0.3 MB of the program, and its sentences about wrong values said less.
#include "tools/pingpong/options.hpp"

#include <arpa/inet.h>

#include <algorithm>
#include <charconv>
#include <optional>

#include "drivers/link/types.hpp"
#include "tools/pingpong/error.hpp"

namespace viaduct::pingpong {

namespace {

std::string in_quotes(std::string_view text) {
  return "'" + std::string(text) + "'";
}

// The value of an option as a number from `least` to `most`; throws UsageError.
std::uint64_t number(std::string_view option, std::string_view text, std::uint64_t least,
                     std::uint64_t most) {
  std::uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size() || value < least || value > most)
    throw UsageError(std::string(option) + " takes a number from " + std::to_string(least) +
                     " to " + std::to_string(most) + ", not " + in_quotes(text));
  return value;
}

// One size, such as 64 or 8K. The limit is checked before the shift, which would overflow, and
// after it.
std::size_t size(std::string_view text) {
  const auto bad = [&] {
    return UsageError("--sizes takes sizes from 4 to 64M such as 8:1M or 8,64,1K, not " +
                      in_quotes(text));
  };
  std::size_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  const std::string_view unit = text.substr(static_cast<std::size_t>(end - text.data()));
  if (error != std::errc{} || value > kMaxBytes) throw bad();
  if (unit == "K" || unit == "k")
    value <<= 10;
  else if (unit == "M" || unit == "m")
    value <<= 20;
  else if (!unit.empty())
    throw bad();
  if (value < kMinBytes || value > kMaxBytes) throw bad();
  return value;
}

// Calls `take` with each part of a list separated by commas, empty ones included.
template <class Take>
void each_part(std::string_view list, Take take) {
  for (;;) {
    const std::size_t comma = list.find(',');
    take(list.substr(0, comma));
    if (comma == std::string_view::npos) return;
    list.remove_prefix(comma + 1);
  }
}

// Adds the layers of a list, each once, in the order in which they are named.
void add_layers(std::vector<std::string>& to, std::string_view list,
                std::span<const LayerInfo> known) {
  each_part(list, [&](std::string_view name) {
    const auto named = [&](const LayerInfo& l) { return l.name == name; };
    if (std::none_of(known.begin(), known.end(), named)) {
      std::string names;
      for (const LayerInfo& l : known) names += (names.empty() ? "" : ", ") + std::string(l.name);
      throw UsageError("there is no layer " + in_quotes(name) + "; the layers are " + names);
    }
    if (std::find(to.begin(), to.end(), name) == to.end()) to.emplace_back(name);
  });
}

// The layer's info; `layer` is known to exist.
const LayerInfo& info_of(std::string_view layer, std::span<const LayerInfo> known) {
  return *std::find_if(known.begin(), known.end(),
                       [&](const LayerInfo& l) { return l.name == layer; });
}

// One pass over the arguments. take_*() return false if the option is not theirs.
class Parser {
 public:
  Parser(std::span<const char* const> arguments, std::span<const LayerInfo> known)
      : arguments_(arguments), known_(known) {}

  Options parse() {
    while (next_ < arguments_.size()) {
      const std::string_view argument = arguments_[next_++];
      // --help wins over all that follows.
      if (argument == "--help" || argument == "-h") return Options{};
      if (!take(argument)) throw UsageError("unknown argument " + in_quotes(argument));
    }
    check();
    return std::move(out_);
  }

 private:
  // Takes one option in the form "--option value" or "--option=value".
  bool take(std::string_view argument) {
    option_ = argument;
    inline_value_.reset();
    if (const std::size_t equals = argument.find('=');
        argument.starts_with("--") && equals != std::string_view::npos) {
      option_ = argument.substr(0, equals);
      inline_value_ = argument.substr(equals + 1);
    }
    return take_mode() || take_measure() || take_place() || take_output();
  }

  // Where the two sides are.
  bool take_mode() {
    if (option_ == "--bed") {
      const std::string_view testbed = value();
      if (testbed == "netns")
        mode(Options::Mode::netns);
      else if (testbed == "memif")
        mode(Options::Mode::memif);
      else if (testbed == "ring")
        mode(Options::Mode::ring);
      else if (testbed == "verbs")
        mode(Options::Mode::verbs);
      else
        throw UsageError("--bed takes netns, memif, ring or verbs, not " + in_quotes(testbed));
    } else if (option_ == "--listen") {
      if (inline_value_) throw UsageError("--listen takes no value");
      mode(Options::Mode::listen);
    } else if (option_ == "--connect") {
      out_.connect_to = value();
      mode(Options::Mode::connect);
    } else {
      return false;
    }
    return true;
  }

  // What is measured. The side that listens may have none of these options, because the other side
  // tells it.
  bool take_measure() {
    if (option_ == "--layer")
      add_layers(out_.layers, value(), known_);
    else if (option_ == "--sizes")
      out_.sizes = parse_sizes(value());
    else if (option_ == "--rounds")
      out_.rounds = static_cast<unsigned>(number(option_, value(), 1, 1000));
    else if (option_ == "--time-per-point")
      out_.time_per_point = std::chrono::milliseconds{number(option_, value(), 1, 60'000)};
    else if (option_ == "--messages")
      out_.messages = number(option_, value(), 100, 1'000'000'000);
    else if (option_ == "--measure")
      take_which(value());
    else if (option_ == "--checksum")
      out_.checksum = on_or_off(value());
    else
      return false;
    measure_option_ = option_;
    return true;
  }

  // Which port, address and driver.
  bool take_place() {
    if (option_ == "--port")
      out_.port = value();
    else if (option_ == "--ip")
      out_.ip = value();
    else if (option_ == "--mtu")
      out_.mtu = number(option_, value(), 576, 65'535);
    else if (option_ == "--pmd")
      take_pmd(value());
    else if (option_ == "--offload")
      take_offload(value());
    else
      return false;
    return true;
  }

  bool take_output() {
    if (option_ == "--json") {
      out_.json = value();
    } else if (option_ == "--plot") {
      out_.plot = value();
      if (!out_.plot.ends_with(".svg") && !out_.plot.ends_with(".png"))
        throw UsageError("--plot takes a file name that ends in .svg or .png, not " +
                         in_quotes(out_.plot));
    } else {
      return false;
    }
    measure_option_ = option_;
    return true;
  }

  // The value of the current option: behind '=', or the next argument.
  std::string_view value() {
    if (inline_value_ && !inline_value_->empty()) return *inline_value_;
    if (inline_value_ || next_ == arguments_.size())
      throw UsageError(std::string(option_) + " needs a value");
    return arguments_[next_++];
  }

  void mode(Options::Mode mode) {
    if (out_.mode != Options::Mode::help)
      throw UsageError("only one of --bed, --listen and --connect can be given");
    out_.mode = mode;
  }

  void take_which(std::string_view which) {
    if (which != "latency" && which != "bandwidth" && which != "both")
      throw UsageError("--measure takes latency, bandwidth or both, not " + in_quotes(which));
    out_.latency = which != "bandwidth";
    out_.bandwidth = which != "latency";
  }

  void take_pmd(std::string_view pmd) {
    if (pmd != "af_packet" && pmd != "af_xdp")
      throw UsageError("--pmd takes af_packet or af_xdp, not " + in_quotes(pmd));
    out_.pmd = pmd;
    pmd_given_ = true;
  }

  void take_offload(std::string_view text) {
    out_.offload = on_or_off(text);
    offload_given_ = true;
  }

  bool on_or_off(std::string_view text) const {
    if (text != "on" && text != "off")
      throw UsageError(std::string(option_) + " takes on or off, not " + in_quotes(text));
    return text == "on";
  }

  // Whether the options fit each other; fills in the defaults that depend on others.
  void check() {
    using Mode = Options::Mode;
    if (out_.mode == Mode::help)
      throw UsageError(
          "say where the two sides are: --bed netns|memif|ring|verbs, --listen or --connect "
          "ADDRESS");
    const bool host = out_.mode == Mode::listen || out_.mode == Mode::connect;
    if (!host && !out_.port.empty())
      throw UsageError("--port belongs to --listen and --connect; a bed makes its own ports");
    if (!out_.ip.empty() && out_.mode != Mode::listen)
      throw UsageError("--ip belongs to --listen; the other side says --connect IP");
    if (out_.mode == Mode::listen && out_.port.empty() && out_.ip.empty())
      throw UsageError("--listen needs --port DEVARGS, --ip ADDRESS or both");
    if (out_.mode == Mode::connect) check_address();
    if (pmd_given_ && out_.mode != Mode::netns) throw UsageError("--pmd belongs to --bed netns");
    if (offload_given_ && out_.mode != Mode::netns)
      throw UsageError("--offload belongs to --bed netns");
    if (out_.mode == Mode::listen && !measure_option_.empty())
      throw UsageError(std::string(measure_option_) +
                       " belongs to the side that connects; the one that listens follows it");
    if (out_.sizes.empty()) out_.sizes = parse_sizes("8:1M");
    if (out_.mode != Mode::listen) check_layers();
  }

  void check_address() const {
    in_addr ip;
    if (inet_pton(AF_INET, out_.connect_to.c_str(), &ip) == 1) return;
    if (!link::Address::parse(out_.connect_to))
      throw UsageError(
          "--connect takes the other side's MAC address (02:00:00:00:00:01) or IPv4 "
          "address, not " +
          in_quotes(out_.connect_to));
    if (out_.port.empty()) throw UsageError("--connect with a MAC address needs --port DEVARGS");
  }

  bool connects_to_ip() const {
    return out_.mode == Options::Mode::connect && !link::Address::parse(out_.connect_to);
  }
  // Whether this run has what a layer stands on.
  bool has(Over what) const {
    using Mode = Options::Mode;
    switch (what) {
      case Over::kernel: return out_.mode == Mode::netns || connects_to_ip();
      case Over::rdma: return out_.mode == Mode::verbs || connects_to_ip();
      case Over::port: break;
    }
    return out_.mode == Mode::connect ? !out_.port.empty() : out_.mode != Mode::verbs;
  }

  // Without --layer: the usual layers among those that can run here. With it: all of them must be
  // able to.
  void check_layers() {
    if (out_.layers.empty()) {
      const bool rdma = out_.mode == Options::Mode::verbs;
      const auto usual = rdma ? std::vector<std::string_view>{"verbs", "vipl-send"}
                              : std::vector<std::string_view>{"raw", "startx-pio", "udp", "tcp"};
      for (const std::string_view name : usual)
        if (has(info_of(name, known_).over)) add_layers(out_.layers, name, known_);
      return;
    }
    for (const std::string& layer : out_.layers) {
      const LayerInfo& info = info_of(layer, known_);
      if (!has(info.over)) throw UsageError("layer " + layer + " " + needs(info.over));
      if (info.one_side_per_process && out_.mode == Options::Mode::ring)
        throw UsageError("layer " + layer +
                         " can have one side only in a process; use --bed memif or netns");
    }
  }

  static std::string needs(Over what) {
    const std::string by_ip =
        ", or --listen --ip ADDRESS on one host and --connect ADDRESS on the other";
    switch (what) {
      case Over::kernel: return "is the kernel's network stack and needs --bed netns" + by_ip;
      case Over::rdma: return "is over an RDMA device and needs --bed verbs" + by_ip;
      case Over::port: break;
    }
    return "needs a port: --port DEVARGS, or a bed other than verbs";
  }

  std::span<const char* const> arguments_;
  std::span<const LayerInfo> known_;
  // The argument that is taken next.
  std::size_t next_ = 0;
  std::string_view option_;                       // the current option, without its value
  std::optional<std::string_view> inline_value_;  // ... and what is behind '='
  std::string_view measure_option_;               // the last one that only the client may have
  bool pmd_given_ = false, offload_given_ = false;
  Options out_;
};

}  // namespace

std::vector<std::size_t> parse_sizes(std::string_view text) {
  std::vector<std::size_t> out;
  each_part(text, [&](std::string_view part) {
    const std::size_t colon = part.find(':');
    const std::size_t least = size(part.substr(0, colon));
    const std::size_t most = colon == std::string_view::npos ? least : size(part.substr(colon + 1));
    if (most < least)
      throw UsageError("--sizes takes the smaller size first, not " + in_quotes(part));
    // `most` is in the list only if doubling reaches it.
    for (std::size_t s = least; s <= most; s *= 2) out.push_back(s);
  });
  std::sort(out.begin(), out.end());
  out.erase(std::unique(out.begin(), out.end()), out.end());
  return out;
}

Options parse_options(std::span<const char* const> arguments, std::span<const LayerInfo> layers) {
  return Parser(arguments, layers).parse();
}

std::string_view testbed_name(Options::Mode mode) {
  switch (mode) {
    case Options::Mode::netns: return "netns";
    case Options::Mode::memif: return "memif";
    case Options::Mode::ring: return "ring";
    case Options::Mode::verbs: return "verbs";
    default: return "hosts";
  }
}

}  // namespace viaduct::pingpong
