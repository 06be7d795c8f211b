// What drivers/vi_over_verbs makes of a device, and what it asks of libibverbs.
#include <gtest/gtest.h>

#include <cstdlib>
#include <span>
#include <string>

#include "libvipl/connection/address.hpp"
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

std::string address(const NullPair& pair) {
  VIP_NIC_ATTRIBUTES attributes{};
  EXPECT_EQ(VipQueryNic(pair.nic, &attributes), VIP_SUCCESS);
  return NicAddress::from(std::span<const std::uint8_t, 6>(attributes.LocalNicAddress, 6)).text();
}

TEST(Verbs, PortWithSeveralAddresses) {
  const NullPair first(false);
  EXPECT_EQ(address(first), "127.0.0.1:18650");
  EXPECT_EQ(null_verbs.connected.ah_attr.grh.sgid_index, 0);
  ASSERT_EQ(setenv("VIADUCT_VIPL_DEVICES", "null0@127.0.0.2", 1), 0);
  const NullPair second(false);
  EXPECT_EQ(address(second), "127.0.0.2:18650");
  EXPECT_EQ(null_verbs.connected.ah_attr.grh.sgid_index, 3);
  unsetenv("VIADUCT_VIPL_DEVICES");
}

}  // namespace
}  // namespace viaduct::vipl::test
