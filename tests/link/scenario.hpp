// A seeded scenario: a few nodes send numbered messages to each other over a faulty network, and
// every delivery is held against what was sent. Used by the property tests and by the stateful
// fuzzer.
#pragma once

#include <map>
#include <random>
#include <set>
#include <string>

#include "tests/link/sim_world.hpp"

namespace viaduct::link::test {

struct ScenarioConfig {
  std::uint64_t seed = 1;
  std::size_t nodes = 2;
  std::uint32_t messages = 300;  // that each node tries to send to each other one
  sim::SimConfig net;
  sim::SimPortConfig port;
  LinkConfig link;
  double busy = 0;             // probability of RxResult::backpressure
  std::size_t restarts = 0;    // kills, each followed by a restart, at random moments
  std::size_t partitions = 0;  // short ones, healed before anybody is given up
  PauseConfig pauses;          // when nodes lose their CPU
};

// Drawn from the seed: everything the property test varies.
ScenarioConfig draw_scenario(std::uint64_t seed);

struct ScenarioResult {
  std::string failure;  // empty: all properties held
  base::FaultCounts faults;
  std::uint64_t partitioned = 0, sent = 0, delivered = 0, retransmits = 0, probes = 0;
  std::uint64_t fast_retransmits = 0, duplicates = 0, bad_checksums = 0, stale = 0, wraps = 0;
  std::uint64_t incarnations_ended = 0, credit_waits = 0, overruns = 0, pauses = 0;
};

ScenarioResult run_scenario(const ScenarioConfig& config);

}  // namespace viaduct::link::test
