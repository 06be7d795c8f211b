// What can be set about a link, and the configuration variables that programs set it with. Tests
// set it by hand.
#pragma once

#include <optional>

#include "drivers/base/config_var.hpp"
#include "drivers/link/types.hpp"

namespace viaduct::link {

// Connections that others have asked for and not yet completed. LinkConfig::max_peers counts them,
// too, but they give way to peers that our side names.
inline constexpr std::size_t kMaxHalfOpen = 256;

struct LinkConfig {
  // Only ports with the same job key talk to each other.
  std::uint64_t job_key = 0;
  // Tells this life of the port from earlier ones; must differ after a restart (0: chosen from the
  // seed).
  std::uint64_t incarnation = 0;
  // Of what should differ from life to life and need not be secret: incarnation, first sequence
  // numbers. Port owners pass getrandom's.
  std::uint64_t seed = 0;

  std::size_t max_peers = 4096;
  bool checksum = true;  // CRC32C of each frame; off only if both sides have it off

  // Credit windows of a lane in frames: what an idle peer may always send, and the most a busy one
  // gets (at most kMaxWindow).
  std::uint32_t idle_window = 2;
  std::uint32_t max_window = 256;
  // Frames that may wait in one lane for one peer before try_send says try_again.
  std::uint32_t max_backlog = 64;

  Duration ack_delay = std::chrono::microseconds{10};     // longest wait for company of an ack
  Duration min_timeout = std::chrono::microseconds{5};    // floor of the measured timeout
  Duration max_timeout = std::chrono::milliseconds{100};  // ceiling of its backoff
  Duration dead_after = std::chrono::seconds{5};          // silence that ends a peer
  // How long a connection that only the other side has asked for may stay half-open; no longer than
  // dead_after.
  Duration half_open_for = std::chrono::seconds{3};

  // For comparison only: find losses by this timer alone, as stacks without measured round trips
  // and selective acknowledgement do.
  std::optional<Duration> fixed_timeout;
  // First sequence number of every lane; random when absent. Tests start near the wrap-around.
  std::optional<std::uint32_t> first_sequence;
};

const base::ConfigTable& config_vars();

// The job key that a text stands for (VIADUCT_JOB): a number is itself.
std::uint64_t job_key(std::string_view text);

// From the environment; seed and incarnation from getrandom(2). Throws SetupError.
LinkConfig link_config_from_environment();

}  // namespace viaduct::link
