// What drivers/vi_over_verbs makes of a device, and what it asks of libibverbs.
#include <gtest/gtest.h>

#include <cstdlib>

#include "tests/vipl/core/null_pair.hpp"
#include "tests/vipl/core/null_verbs.hpp"

namespace viaduct::vipl::test {
namespace {

VIP_ULONG max_segments(int max_sge_rd) {
  null_verbs.max_sge_rd = max_sge_rd;
  const NullPair pair(false);
  VIP_NIC_ATTRIBUTES attributes{};
  EXPECT_EQ(VipQueryNic(pair.nic, &attributes), VIP_SUCCESS);
  return attributes.MaxSegmentsPerDesc;
}

TEST(Verbs, SegmentsOfReads) {
  EXPECT_EQ(max_segments(0), 32u);  // does not say
  EXPECT_EQ(max_segments(32), 32u);
  EXPECT_EQ(max_segments(31), 32u);
  EXPECT_EQ(max_segments(13), 14u);
  EXPECT_EQ(max_segments(1), 2u);
}

TEST(Verbs, TrafficClass) {
  const NullPair ordinary(false);
  EXPECT_EQ(null_verbs.connected.ah_attr.grh.traffic_class, 0);
  ASSERT_EQ(setenv("VIADUCT_VIPL_TRAFFIC_CLASS", "104", 1), 0);
  const NullPair lossless(false);
  EXPECT_EQ(null_verbs.connected.ah_attr.grh.traffic_class, 104);
  unsetenv("VIADUCT_VIPL_TRAFFIC_CLASS");
}

}  // namespace
}  // namespace viaduct::vipl::test
