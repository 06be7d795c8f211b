// Protection tags and registered memory; that the rights are kept is in rdma_test and error_test.
#include "tests/vipl/programs/support/bed.hpp"

namespace viaduct::vipl_test {

namespace {

class MemoryTest : public testing::Test {
 protected:
  Nic nic_{kNicNames[0]};
  alignas(4096) static inline std::byte bytes_[8192];
};

TEST_F(MemoryTest, Ptags) {
  VIP_PROTECTION_HANDLE one, two;
  ASSERT_VIP(VIP_SUCCESS, VipCreatePtag(nic_, &one));
  ASSERT_VIP(VIP_SUCCESS, VipCreatePtag(nic_, &two));
  EXPECT_NE(one, two);
  EXPECT_NE(nullptr, one);  // which is the default tag
  EXPECT_VIP(VIP_SUCCESS, VipDestroyPtag(nic_, one));
  EXPECT_VIP(VIP_SUCCESS, VipDestroyPtag(nic_, two));
  for (const VIP_PROTECTION_HANDLE bad : {VIP_PROTECTION_HANDLE{}, no_handle(), one})
    EXPECT_VIP(VIP_INVALID_PARAMETER, VipDestroyPtag(nic_, bad));
  EXPECT_VIP(VIP_INVALID_PARAMETER, VipCreatePtag(no_handle(), &one));
  EXPECT_VIP(VIP_INVALID_PARAMETER, VipCreatePtag(nic_, nullptr));
}

TEST_F(MemoryTest, APtagInUseStays) {
  VIP_PROTECTION_HANDLE ptag;
  ASSERT_VIP(VIP_SUCCESS, VipCreatePtag(nic_, &ptag));
  {
    const Vi vi(nic_, vi_attributes(VIP_SERVICE_RELIABLE_DELIVERY, ptag));
    EXPECT_VIP(VIP_ERROR_RESOURCE, VipDestroyPtag(nic_, ptag));
  }
  {
    const Memory memory(nic_, 1, 64, memory_attributes(ptag));
    EXPECT_VIP(VIP_ERROR_RESOURCE, VipDestroyPtag(nic_, ptag));
  }
  EXPECT_VIP(VIP_SUCCESS, VipDestroyPtag(nic_, ptag));
}

TEST_F(MemoryTest, TheSameMemoryManyTimes) {
  const Ptag ptag(nic_);
  VIP_MEM_ATTRIBUTES first = memory_attributes(ptag, true, false), second = memory_attributes();
  VIP_MEM_HANDLE one = 0, two = 0, odd = 0;
  ASSERT_VIP(VIP_SUCCESS, VipRegisterMem(nic_, bytes_, sizeof(bytes_), &first, &one));
  ASSERT_VIP(VIP_SUCCESS, VipRegisterMem(nic_, bytes_, sizeof(bytes_), &second, &two));
  ASSERT_VIP(VIP_SUCCESS, VipRegisterMem(nic_, bytes_ + 7, 33, &second, &odd));  // byte granular
  EXPECT_NE(one, two);
  EXPECT_NE(0u, one);
  EXPECT_NE(0u, two);
  VIP_MEM_ATTRIBUTES seen{};
  EXPECT_VIP(VIP_SUCCESS, VipDeregisterMem(nic_, bytes_, two));
  EXPECT_VIP(VIP_SUCCESS, VipQueryMem(nic_, bytes_, one, &seen));
  EXPECT_EQ(static_cast<VIP_PROTECTION_HANDLE>(ptag), seen.Ptag);
  EXPECT_EQ(VIP_TRUE, seen.EnableRdmaWrite);
  EXPECT_EQ(VIP_FALSE, seen.EnableRdmaRead);
  EXPECT_VIP(VIP_SUCCESS, VipDeregisterMem(nic_, bytes_, one));
  EXPECT_VIP(VIP_SUCCESS, VipDeregisterMem(nic_, bytes_ + 7, odd));
}

// NT passes none: the default tag, no RDMA.
TEST_F(MemoryTest, NoAttributes) {
  VIP_MEM_HANDLE handle = 0;
  ASSERT_VIP(VIP_SUCCESS, VipRegisterMem(nic_, bytes_, sizeof(bytes_), nullptr, &handle));
  VIP_MEM_ATTRIBUTES seen = memory_attributes(no_handle(), true, true);
  EXPECT_VIP(VIP_SUCCESS, VipQueryMem(nic_, bytes_, handle, &seen));
  EXPECT_EQ(nullptr, seen.Ptag);
  EXPECT_EQ(VIP_FALSE, seen.EnableRdmaWrite);
  EXPECT_EQ(VIP_FALSE, seen.EnableRdmaRead);
  EXPECT_VIP(VIP_SUCCESS, VipDeregisterMem(nic_, bytes_, handle));
}

TEST_F(MemoryTest, WhatRegistrationRefuses) {
  VIP_MEM_HANDLE handle = 0;
  VIP_MEM_ATTRIBUTES good = memory_attributes(), bad_tag = memory_attributes(no_handle());
  EXPECT_VIP(VIP_INVALID_PARAMETER,
             VipRegisterMem(no_handle(), bytes_, sizeof(bytes_), &good, &handle));
  EXPECT_VIP(VIP_INVALID_PARAMETER, VipRegisterMem(nic_, bytes_, sizeof(bytes_), &good, nullptr));
  EXPECT_VIP(VIP_INVALID_PARAMETER, VipRegisterMem(nic_, nullptr, sizeof(bytes_), &good, &handle));
  EXPECT_VIP(VIP_INVALID_PARAMETER, VipRegisterMem(nic_, bytes_, 0, &good, &handle));
  EXPECT_VIP(VIP_INVALID_PTAG, VipRegisterMem(nic_, bytes_, sizeof(bytes_), &bad_tag, &handle));
  // Memory that is not there.
  const auto nowhere = reinterpret_cast<VIP_PVOID>(0x1000);
  const VIP_RETURN code = VipRegisterMem(nic_, nowhere, 4096, &good, &handle);
  EXPECT_TRUE(code == VIP_INVALID_PARAMETER || code == VIP_ERROR_RESOURCE) << name(code);
  EXPECT_EQ(0u, handle);
}

TEST_F(MemoryTest, WhatDeregistrationRefuses) {
  VIP_MEM_HANDLE handle = 0;
  ASSERT_VIP(VIP_SUCCESS, VipRegisterMem(nic_, bytes_, sizeof(bytes_), nullptr, &handle));
  EXPECT_VIP(VIP_INVALID_PARAMETER, VipDeregisterMem(no_handle(), bytes_, handle));
  EXPECT_VIP(VIP_INVALID_PARAMETER, VipDeregisterMem(nic_, bytes_ + 64, handle));
  EXPECT_VIP(VIP_INVALID_PARAMETER, VipDeregisterMem(nic_, bytes_, 0));
  EXPECT_VIP(VIP_INVALID_PARAMETER, VipDeregisterMem(nic_, bytes_, handle ^ 0x5a5a5a5a));
  EXPECT_VIP(VIP_SUCCESS, VipDeregisterMem(nic_, bytes_, handle));
  EXPECT_VIP(VIP_INVALID_PARAMETER, VipDeregisterMem(nic_, bytes_, handle));
}

TEST_F(MemoryTest, AttributesCanBeChanged) {
  const Ptag ptag(nic_);
  const Memory memory(nic_, 1, 64);
  for (const auto& wanted : {memory_attributes(ptag, true, true), memory_attributes(ptag),
                             memory_attributes(nullptr, true), memory_attributes()}) {
    VIP_MEM_ATTRIBUTES set = wanted, seen{};
    EXPECT_VIP(VIP_SUCCESS, VipSetMemAttributes(nic_, memory.base(), memory.handle(), &set));
    EXPECT_VIP(VIP_SUCCESS, VipQueryMem(nic_, memory.base(), memory.handle(), &seen));
    EXPECT_EQ(wanted.Ptag, seen.Ptag);
    EXPECT_EQ(wanted.EnableRdmaWrite, seen.EnableRdmaWrite);
    EXPECT_EQ(wanted.EnableRdmaRead, seen.EnableRdmaRead);
  }
}

TEST_F(MemoryTest, WhatSettingAndQueryingRefuse) {
  const Memory memory(nic_, 1, 64);
  VIP_MEM_ATTRIBUTES good = memory_attributes(), bad_tag = memory_attributes(no_handle());
  const auto set = [&](VIP_NIC_HANDLE nic, std::byte* base, VIP_MEM_HANDLE handle,
                       VIP_MEM_ATTRIBUTES* a) { return VipSetMemAttributes(nic, base, handle, a); };
  EXPECT_VIP(VIP_INVALID_PARAMETER, set(no_handle(), memory.base(), memory.handle(), &good));
  EXPECT_VIP(VIP_INVALID_PARAMETER, set(nic_, memory.base() + 64, memory.handle(), &good));
  EXPECT_VIP(VIP_INVALID_PARAMETER, set(nic_, memory.base(), memory.handle() ^ 0x5a5a, &good));
  EXPECT_VIP(VIP_INVALID_PTAG, set(nic_, memory.base(), memory.handle(), &bad_tag));
  VIP_MEM_ATTRIBUTES seen;
  EXPECT_VIP(VIP_INVALID_PARAMETER,
             VipQueryMem(no_handle(), memory.base(), memory.handle(), &seen));
  EXPECT_VIP(VIP_INVALID_PARAMETER, VipQueryMem(nic_, memory.base(), memory.handle(), nullptr));
  EXPECT_VIP(VIP_INVALID_PARAMETER, VipQueryMem(nic_, memory.base(), memory.handle() ^ 1, &seen));
}

TEST_F(MemoryTest, ManyRegions) {
  constexpr std::size_t kRegions = 1000;
  static std::byte block[kRegions * 64];
  std::vector<VIP_MEM_HANDLE> handles(kRegions);
  for (std::size_t i = 0; i < kRegions; ++i)
    ASSERT_VIP(VIP_SUCCESS, VipRegisterMem(nic_, block + i * 64, 64, nullptr, &handles[i]));
  for (std::size_t i = 0; i < kRegions; ++i)
    ASSERT_VIP(VIP_SUCCESS, VipDeregisterMem(nic_, block + i * 64, handles[i]));
}

}  // namespace

}  // namespace viaduct::vipl_test
