// What the targets share in which a rogue sends messages to a victim on the simulated network.
#pragma once

#include <algorithm>
#include <utility>
#include <vector>

#include "tests/fuzz/require.hpp"
#include "tests/link/sim_world.hpp"

namespace viaduct::link::test {

// The rogue's name for the victim, and the victim's for the rogue.
inline std::pair<PeerId, PeerId> connect(World& world, Node& rogue, Node& victim) {
  const PeerId to_victim = rogue.link->peer(victim.address());
  rogue.link->connect(to_victim, world.net.now());
  require(world.run_until(
      [&] { return rogue.link->connected(to_victim) && !victim.link->peers().empty(); },
      seconds{1}));
  world.run(milliseconds{1});
  return {to_victim, victim.link->peers()[0]};
}

// Takes a message of so many bytes, behind a head of three, from the front of the input.
inline std::vector<std::byte> take_body(const std::uint8_t*& data, std::size_t& size,
                                        std::size_t length) {
  length = std::min(length, size - 3);
  const auto* const body = reinterpret_cast<const std::byte*>(data) + 3;
  data += 3 + length;
  size -= 3 + length;
  return {body, body + length};
}

}  // namespace viaduct::link::test
