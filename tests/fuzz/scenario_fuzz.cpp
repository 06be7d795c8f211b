// Stateful: the input picks a scenario (faults, windows, restarts...) and every property of
// tests/link/scenario.hpp must hold in it.
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "tests/link/scenario.hpp"

using namespace viaduct;
using namespace viaduct::link::test;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  std::uint8_t in[16] = {};
  std::memcpy(in, data, std::min(size, sizeof(in)));
  std::uint64_t seed;
  std::memcpy(&seed, in, sizeof(seed));
  ScenarioConfig config = draw_scenario(seed);
  config.messages = 20 + in[8] % 64u;
  config.nodes = 2 + in[9] % 2u;
  config.net.faults.loss = in[10] / 1000.0;
  config.net.faults.reorder = in[11] / 500.0;
  config.link.max_window = 1u + in[12] * 2u;
  config.link.idle_window = std::min<std::uint32_t>(in[13] % 4u, config.link.max_window);
  config.restarts = in[14] % 3u;
  config.partitions = in[15] % 2u;
  // A restarted node that has nothing to say to a peer is found dead by that peer's dead_after
  // alone.
  if (config.restarts != 0) config.link.dead_after = viaduct::link::LinkConfig{}.dead_after;
  const ScenarioResult result = run_scenario(config);
  if (!result.failure.empty()) {
    std::fprintf(stderr, "%s\n", result.failure.c_str());
    std::abort();
  }
  return 0;
}
