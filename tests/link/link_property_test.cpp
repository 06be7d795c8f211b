// Thousands of seeded scenarios (scenario.cpp): exactly once, in order within a lane, unaltered,
// nothing leaked, whatever the network does. A failing seed replays with
// VIADUCT_TEST_SEED=N VIADUCT_TEST_SCENARIOS=1.
#include <gtest/gtest.h>

#include <iostream>

#include "tests/link/scenario.hpp"
#include "tests/support/effort.hpp"

namespace viaduct::link::test {
namespace {

TEST(LinkProperties, HoldInThousandsOfSeededScenarios) {
  const std::uint64_t first = viaduct::test::from_environment("VIADUCT_TEST_SEED", 1);
  const std::uint64_t count =
      viaduct::test::from_environment("VIADUCT_TEST_SCENARIOS", viaduct::test::effort(3000));
  ScenarioResult sum;
  for (std::uint64_t seed = first; seed < first + count; ++seed) {
    const ScenarioResult r = run_scenario(draw_scenario(seed));
    ASSERT_EQ(r.failure, "") << "seed " << seed;
    sum.faults.lost += r.faults.lost;
    sum.faults.duplicated += r.faults.duplicated;
    sum.faults.reordered += r.faults.reordered;
    sum.faults.corrupted += r.faults.corrupted;
    sum.faults.truncated += r.faults.truncated;
    sum.partitioned += r.partitioned;
    sum.sent += r.sent;
    sum.delivered += r.delivered;
    sum.retransmits += r.retransmits;
    sum.fast_retransmits += r.fast_retransmits;
    sum.probes += r.probes;
    sum.duplicates += r.duplicates;
    sum.bad_checksums += r.bad_checksums;
    sum.stale += r.stale;
    sum.wraps += r.wraps;
    sum.incarnations_ended += r.incarnations_ended;
    sum.credit_waits += r.credit_waits;
    sum.overruns += r.overruns;
    sum.pauses += r.pauses;
  }
  std::cout << count << " scenarios: " << sum.sent << " messages sent, " << sum.delivered
            << " delivered; lost " << sum.faults.lost << ", duplicated " << sum.faults.duplicated
            << ", reordered " << sum.faults.reordered << ", corrupted " << sum.faults.corrupted
            << ", truncated " << sum.faults.truncated << ", partitioned " << sum.partitioned
            << "; retransmits " << sum.retransmits << " (fast " << sum.fast_retransmits
            << "), probes " << sum.probes << ", duplicates dropped " << sum.duplicates
            << ", bad checksums " << sum.bad_checksums << ", stale " << sum.stale
            << ", lives ended " << sum.incarnations_ended << ", credit waits " << sum.credit_waits
            << ", overruns " << sum.overruns << ", pauses " << sum.pauses << "\n";
  if (count < 100) return;
  // None of the faults may be missing, or the test proves nothing.
  EXPECT_GT(sum.faults.lost, count);
  EXPECT_GT(sum.faults.duplicated, count);
  EXPECT_GT(sum.faults.reordered, count);
  EXPECT_GT(sum.faults.corrupted, count);
  EXPECT_GT(sum.faults.truncated, 0u);
  EXPECT_GT(sum.partitioned, 0u);
  EXPECT_GT(sum.retransmits, count);
  EXPECT_GT(sum.fast_retransmits, 0u);
  EXPECT_GT(sum.probes, 0u);
  EXPECT_GT(sum.duplicates, count);
  EXPECT_GT(sum.bad_checksums, count);
  EXPECT_GT(sum.stale, 0u);
  EXPECT_GT(sum.wraps, 0u);
  EXPECT_GT(sum.incarnations_ended, 0u);
  EXPECT_GT(sum.credit_waits, 0u);
  EXPECT_GT(sum.pauses, count);
}

}  // namespace
}  // namespace viaduct::link::test
