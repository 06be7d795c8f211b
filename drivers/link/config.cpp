// The table of the environment variables of the link, and the LinkConfig that they add up to. The
// constructor of Link checks the values of a LinkConfig that does not come from here.

#include "drivers/link/config.hpp"

#include <algorithm>
#include <array>

#include "drivers/base/random.hpp"
#include "drivers/link/wire_format.hpp"

namespace viaduct::link {
namespace {

using namespace base;

constexpr std::array kTable{
    ConfigVar{
        "VIADUCT_JOB", "0", "",
        "job key, a number or any text; only ports of one job talk (MPI jobs draw another one, "
        "too)"},
    ConfigVar{"VIADUCT_CHECKSUM", "on", "", "CRC32C of every frame; off must be off on both sides",
              kOnOff},
    ConfigVar{"VIADUCT_ACK_DELAY_US", "10", "us", "longest wait of an acknowledgement for company",
              whole_number(0, 1'000'000)},
    ConfigVar{"VIADUCT_MIN_TIMEOUT_US", "5", "us", "floor of the measured retransmission timeout",
              whole_number(1, 1'000'000)},
    ConfigVar{"VIADUCT_DEAD_AFTER_MS", "5000", "ms", "silence that ends a peer",
              whole_number(1, 3'600'000)},
    ConfigVar{
        "VIADUCT_MAX_WINDOW", "256", "frames",
        "most in flight in one lane to one peer, and at most half of what the receiver has for it",
        whole_number(LinkConfig().idle_window, kMaxWindow)},
};

// Never 0, because incarnation 0 means "derive one from the seed".
std::uint64_t random_number() {
  std::uint64_t value = 0;
  while (value == 0) value = base::random_word();
  return value;
}

}  // namespace

const ConfigTable& config_vars() {
  static constexpr ConfigTable table(kTable);
  return table;
}

// FNV-1a rather than std::hash: every process must get the same key from the same text, whatever
// its standard library.
std::uint64_t job_key(std::string_view text) {
  if (const auto number = parse_whole_number(text)) return *number;
  std::uint64_t hash = 0xcbf29ce484222325u;
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3u;
  return hash;
}

LinkConfig link_config_from_environment() {
  using std::chrono::microseconds;
  using std::chrono::milliseconds;
  const ConfigTable& set = config_vars();
  LinkConfig config;
  config.job_key = job_key(set.text("VIADUCT_JOB"));
  config.incarnation = random_number();
  config.seed = random_number();
  config.checksum = set.on("VIADUCT_CHECKSUM");
  config.max_window = static_cast<std::uint32_t>(set.number("VIADUCT_MAX_WINDOW"));
  config.ack_delay = microseconds(set.number("VIADUCT_ACK_DELAY_US"));
  config.min_timeout = microseconds(set.number("VIADUCT_MIN_TIMEOUT_US"));
  // A user's floor may be above the default ceiling; the ceiling then follows the floor.
  config.max_timeout = std::max(config.max_timeout, config.min_timeout);
  config.dead_after = milliseconds(set.number("VIADUCT_DEAD_AFTER_MS"));
  return config;
}

}  // namespace viaduct::link
