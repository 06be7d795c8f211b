#include "drivers/startx_emul/vdev_args.hpp"

#include <algorithm>
#include <charconv>
#include <limits>

#include "drivers/link/types.hpp"

namespace viaduct::startx {
namespace {

[[noreturn]] void refuse(const std::string& what) {
  throw link::SetupError(what + "; accepted are " + kVdevParameters);
}

template <class Number>
Number number(std::string_view key, std::string_view value) {
  Number n = 0;
  const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), n);
  if (error != std::errc() || end != value.data() + value.size() || n == 0)
    refuse(std::string(key) + "=" + std::string(value) + " is not a whole number from 1 to " +
           std::to_string(std::numeric_limits<Number>::max()));
  return n;
}

void set(VdevArgs& args, std::string_view key, std::string_view value) {
  if (key == "port") {
    args.port = "port:" + std::string(value);
  } else if (key == "queue_depth") {
    args.conf.queue_depth = number<std::uint32_t>(key, value);
  } else if (key == "max_open") {
    args.conf.max_open = number<std::uint32_t>(key, value);
  } else if (key == "max_posted") {
    args.conf.max_posted = number<std::uint32_t>(key, value);
  } else if (key == "max_regions") {
    args.conf.max_regions = number<std::uint32_t>(key, value);
  } else if (key == "job") {
    args.conf.job_key = number<std::uint64_t>(key, value);
  } else {
    refuse("there is no argument " + std::string(key));
  }
}

}  // namespace

VdevArgs parse_vdev_args(std::string_view text) {
  VdevArgs args;
  while (!text.empty()) {
    const std::string_view pair = text.substr(0, text.find(','));
    text.remove_prefix(std::min(pair.size() + 1, text.size()));
    const auto equals = pair.find('=');
    if (equals == std::string_view::npos || equals + 1 == pair.size())
      refuse(std::string(pair) + " is not key=value");
    set(args, pair.substr(0, equals), pair.substr(equals + 1));
  }
  if (args.port.empty()) refuse("no port was named");
  return args;
}

}  // namespace viaduct::startx
