// A host without an RDMA device. Runs outside of the guest.
#include <gtest/gtest.h>
#include <vipl.h>

#include <cstdlib>
#include <filesystem>
#include <string>

namespace {

bool has_device() {
  std::error_code none;
  const std::filesystem::directory_iterator devices("/sys/class/infiniband", none);
  return !none && devices != std::filesystem::directory_iterator();
}

TEST(NoDevice, OpenNicSaysSo) {
  if (has_device()) GTEST_SKIP() << "this host has an RDMA device";
  VIP_NIC_HANDLE nic = nullptr;
  for (const char* name : {"nic0", "/dev/via_eth0", "VINIC0", "rxe1"})
    EXPECT_EQ(VIP_ERROR_RESOURCE, VipOpenNic(name, &nic)) << name;
  EXPECT_EQ(VIP_INVALID_PARAMETER, VipOpenNic(nullptr, &nic));
}

// Whatever it is about, and with or without a device.
TEST(OpenNic, RefusesWrongSettings) {
  for (const char* variable : {"VIADUCT_VIPL_DESCRIPTORS", "VIADUCT_VIPL_SPIN"}) {
    setenv(variable, "many", 1);
    VIP_NIC_HANDLE nic = nullptr;
    testing::internal::CaptureStderr();
    EXPECT_EQ(VIP_ERROR_RESOURCE, VipOpenNic("nic0", &nic));
    EXPECT_NE(testing::internal::GetCapturedStderr().find(std::string(variable) +
                                                          "=many is not a whole number from"),
              std::string::npos);
    unsetenv(variable);
  }
}

}  // namespace
