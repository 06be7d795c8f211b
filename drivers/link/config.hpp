// The configuration of a link, and the environment variables from which programs take it. Tests
// fill in a LinkConfig by hand.
#pragma once

#include <optional>

#include "drivers/base/config_var.hpp"
#include "drivers/link/types.hpp"

namespace viaduct::link {

// The most half-open connections: those that other hosts have requested and not yet completed.
// LinkConfig::max_peers counts them, too, but they give way to peers that our side names.
inline constexpr std::size_t kMaxHalfOpen = 256;

struct LinkConfig {
  // Only links with the same job key connect to each other.
  std::uint64_t job_key = 0;
  // Tells this incarnation of the link from earlier ones at the same address; must differ after a
  // restart (0: derived from `seed`).
  std::uint64_t incarnation = 0;
  // Seed of the values that should differ from incarnation to incarnation and need not be secret:
  // first sequence numbers and `incarnation`. Programs pass base::random_word(), tests a
  // constant.
  std::uint64_t seed = 0;

  std::size_t max_peers = 4096;  // slots of the connection table, 1 to 65535
  bool checksum = true;          // CRC32C of each frame; off only if both sides have it off

  // Credit windows of a lane, in frames: what an idle peer may send at any time, and the most that
  // a busy peer is granted (at most kMaxWindow).
  std::uint32_t idle_window = 2;
  std::uint32_t max_window = 256;
  // Frames that may wait in one lane for one peer before try_send says try_again.
  std::uint32_t max_backlog = 64;

  Duration ack_delay = std::chrono::microseconds{10};     // longest delay of an acknowledgement
  Duration min_timeout = std::chrono::microseconds{5};    // floor of the measured timeout
  Duration max_timeout = std::chrono::milliseconds{100};  // ceiling of its backoff
  Duration dead_after = std::chrono::seconds{5};          // silence that ends a connection
  // How long a connection that only the other side has requested may stay half-open; dead_after
  // bounds this, too.
  Duration half_open_for = std::chrono::seconds{3};

  // For comparison only: detect losses by a retransmission timer of this length alone, as stacks
  // without measured round trips and selective acknowledgement do.
  std::optional<Duration> fixed_timeout;
  // First sequence number of every lane; random when absent. Tests start near the wrap-around.
  std::optional<std::uint32_t> first_sequence;
};

// The table of the link's environment variables (base/config_var.hpp).
const base::ConfigTable& config_vars();

// The job key that a text stands for (VIADUCT_JOB): a whole number stands for itself, any other
// text for its hash.
std::uint64_t job_key(std::string_view text);

// The configuration that the environment asks for; seed and incarnation come from
// base::random_word(). Throws SetupError for a variable with a wrong value, and where there are no
// random numbers.
LinkConfig link_config_from_environment();

}  // namespace viaduct::link
