// What viaduct-info says about Virtual Interfaces.
#include "tools/info/vipl.hpp"

#include <gtest/gtest.h>

#include <cstring>

namespace viaduct::info {
namespace {

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

TEST(InfoVipl, NamesThatLeadToEachDevice) {
  std::vector<vi::DeviceInfo> devices(2);
  devices[0].name = "rxe1";
  devices[0].interface = "veth1";
  devices[0].ip = {10, 9, 0, 1};
  devices[0].usable = true;
  devices[1].name = "mlx5_0";
  devices[1].problem = "has no IPv4 address: ip addr add";
  const std::string report = vipl_names_report(devices, 2);
  EXPECT_TRUE(contains(report, "10.9.0.1")) << report;
  EXPECT_TRUE(contains(report, "rxe1 veth1 /dev/via_veth1 nic0 VINIC0 /dev/clanvi0 VINIC\n"))
      << report;
  EXPECT_TRUE(contains(report, "mlx5_0 nic1 VINIC1 /dev/clanvi1\n")) << report;
  EXPECT_TRUE(contains(report, "\n  mlx5_0: has no IPv4 address: ip addr add\n")) << report;
}

TEST(InfoVipl, NoDevices) {
  EXPECT_TRUE(contains(vipl_names_report({}, 0), "a verbs device is needed"));
  EXPECT_TRUE(contains(vipl_names_report({}, 1), "apt-get install ibverbs-providers"));
  EXPECT_EQ(vipl_limits_report({}), "");
}

TEST(InfoVipl, Limits) {
  VIP_NIC_ATTRIBUTES nic{};
  std::strcpy(nic.Name, "rxe1");
  nic.MaxVI = 1234;
  nic.MaxTransferSize = 1 << 23;
  nic.RDMAReadSupport = VIP_SERVICE_RELIABLE_DELIVERY;
  const std::string report = vipl_limits_report(std::span(&nic, 1));
  for (const char* part : {"rxe1", "1234", "8 MiB", "delivery\n"})
    EXPECT_TRUE(contains(report, part)) << part << "\n" << report;
}

}  // namespace
}  // namespace viaduct::info
