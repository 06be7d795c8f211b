// Opening, asking, closing NICs.
#include <thread>

#include "tests/vipl/programs/support/bed.hpp"

namespace viaduct::vipl_test {

namespace {

TEST(Nic, EachOpenGivesAnotherHandle) {
  VIP_NIC_HANDLE first, second;
  ASSERT_VIP(VIP_SUCCESS, VipOpenNic(kNicNames[0], &first));
  ASSERT_VIP(VIP_SUCCESS, VipOpenNic(kNicNames[0], &second));
  EXPECT_NE(first, second);
  // What belongs to one is not the other's.
  VIP_PROTECTION_HANDLE ptag;
  ASSERT_VIP(VIP_SUCCESS, VipCreatePtag(first, &ptag));
  EXPECT_VIP(VIP_INVALID_PARAMETER, VipDestroyPtag(second, ptag));
  EXPECT_VIP(VIP_SUCCESS, VipDestroyPtag(first, ptag));
  EXPECT_VIP(VIP_SUCCESS, VipCloseNic(first));
  VIP_NIC_ATTRIBUTES attributes;
  EXPECT_VIP(VIP_SUCCESS, VipQueryNic(second, &attributes));
  EXPECT_VIP(VIP_SUCCESS, VipCloseNic(second));
}

TEST(Nic, NamesThatAreNone) {
  VIP_NIC_HANDLE nic;
  EXPECT_VIP(VIP_INVALID_PARAMETER, VipOpenNic("no such device", &nic));
  EXPECT_VIP(VIP_INVALID_PARAMETER, VipOpenNic("", &nic));
  EXPECT_VIP(VIP_INVALID_PARAMETER, VipOpenNic("/dev/via_eth99", &nic));
  EXPECT_VIP(VIP_INVALID_PARAMETER, VipOpenNic(nullptr, &nic));
  EXPECT_VIP(VIP_INVALID_PARAMETER, VipOpenNic(kNicNames[0], nullptr));
}

// Programs for M-VIA, cLAN and VI-GM open these.
TEST(Nic, NamesAsProgramsUseThem) {
  const Nic first(kNicNames[0]), second(kNicNames[1]);
  const auto opens = [](const char* device, const Nic& expected) {
    const Nic nic(device);
    EXPECT_EQ(0,
              std::memcmp(nic.attributes().LocalNicAddress, expected.attributes().LocalNicAddress,
                          expected.attributes().NicAddressLen))
        << device;
  };
  for (const char* device :
       {"nic0", "VINIC", "VINIC0", "/dev/clanvi0", "/dev/via_eth0", "veth1", "/dev/via_veth1"})
    opens(device, first);
  for (const char* device : {"nic1", "VINIC1", "/dev/clanvi1", "veth2"}) opens(device, second);
}

TEST(Nic, Attributes) {
  const Nic nic(kNicNames[0]);
  const VIP_NIC_ATTRIBUTES& a = nic.attributes();
  EXPECT_NE(nullptr, std::memchr(a.Name, 0, sizeof(a.Name)));
  EXPECT_NE('\0', a.Name[0]);
  EXPECT_EQ(6, a.NicAddressLen);  // in programs' source
  ASSERT_NE(nullptr, a.LocalNicAddress);
  EXPECT_EQ(VIP_TRUE, a.ThreadSafe);
  EXPECT_GE(a.MaxDiscriminatorLen, 16);
  EXPECT_GE(a.MaxRegisterBytes, 1u << 20);
  EXPECT_GE(a.MaxRegisterBlockBytes, 1u << 20);
  EXPECT_GE(a.MaxRegisterRegions, 1024u);
  EXPECT_GE(a.MaxVI, 1024u);
  EXPECT_GE(a.MaxDescriptorsPerQueue, 256u);
  EXPECT_GE(a.MaxSegmentsPerDesc, 2u);
  EXPECT_GE(a.MaxCQ, 64u);
  EXPECT_GE(a.MaxCQEntries, 1024u);
  EXPECT_GE(a.MaxTransferSize, 32768u);
  EXPECT_GE(a.NativeMTU, 256u);
  EXPECT_GE(a.MaxPtags, 2u);
  EXPECT_EQ(VIP_SERVICE_UNRELIABLE | VIP_SERVICE_RELIABLE_DELIVERY | VIP_SERVICE_RELIABLE_RECEPTION,
            a.ReliabilityLevelSupport);
  // Not on the unreliable level.
  EXPECT_EQ(VIP_SERVICE_RELIABLE_DELIVERY | VIP_SERVICE_RELIABLE_RECEPTION, a.RDMAReadSupport);
}

TEST(Nic, TwoNicsHaveTwoAddresses) {
  const Nic a(kNicNames[0]), b(kNicNames[1]);
  EXPECT_NE(0, std::memcmp(a.attributes().LocalNicAddress, b.attributes().LocalNicAddress, 6));
}

TEST(Nic, BadHandles) {
  VIP_NIC_ATTRIBUTES attributes;
  VIP_NIC_HANDLE nic;
  ASSERT_VIP(VIP_SUCCESS, VipOpenNic(kNicNames[0], &nic));
  EXPECT_VIP(VIP_INVALID_PARAMETER, VipQueryNic(nic, nullptr));
  EXPECT_VIP(VIP_SUCCESS, VipCloseNic(nic));
  for (const VIP_NIC_HANDLE bad : {VIP_NIC_HANDLE{}, no_handle(), nic}) {
    EXPECT_VIP(VIP_INVALID_PARAMETER, VipQueryNic(bad, &attributes));
    EXPECT_VIP(VIP_INVALID_PARAMETER, VipErrorCallback(bad, nullptr, nullptr));
    EXPECT_VIP(VIP_INVALID_PARAMETER, VipCloseNic(bad));
  }
}

// A program that ends in a hurry closes the NIC and nothing else.
TEST(Nic, CloseTakesEverythingWithIt) {
  VIP_NIC_HANDLE nic;
  ASSERT_VIP(VIP_SUCCESS, VipOpenNic(kNicNames[0], &nic));
  VIP_PROTECTION_HANDLE ptag;
  ASSERT_VIP(VIP_SUCCESS, VipCreatePtag(nic, &ptag));
  alignas(4096) static std::byte memory[4096];
  VIP_MEM_HANDLE handle;
  VIP_MEM_ATTRIBUTES with_tag = memory_attributes(ptag);
  ASSERT_VIP(VIP_SUCCESS, VipRegisterMem(nic, memory, sizeof(memory), &with_tag, &handle));
  VIP_CQ_HANDLE cq;
  ASSERT_VIP(VIP_SUCCESS, VipCreateCQ(nic, 16, &cq));
  VIP_VI_ATTRIBUTES attributes = vi_attributes(VIP_SERVICE_RELIABLE_DELIVERY, ptag);
  VIP_VI_HANDLE vi;
  ASSERT_VIP(VIP_SUCCESS, VipCreateVi(nic, &attributes, cq, cq, &vi));
  auto* const d = new (memory) VIP_DESCRIPTOR{};
  ASSERT_VIP(VIP_SUCCESS, VipPostRecv(vi, d, handle));
  EXPECT_VIP(VIP_SUCCESS, VipCloseNic(nic));
  EXPECT_VIP(VIP_INVALID_PARAMETER, VipDisconnect(vi));
  EXPECT_VIP(VIP_INVALID_PARAMETER, VipDestroyVi(vi));
  EXPECT_VIP(VIP_INVALID_PARAMETER, VipDestroyCQ(cq));
}

TEST(Nic, SystemManagementInformation) {
  const Nic nic(kNicNames[0]);
  VIP_AUTODISCOVERY_LIST list{};
  EXPECT_VIP(VIP_INVALID_PARAMETER,
             VipQuerySystemManagementInfo(no_handle(), VIP_SMI_AUTODISCOVERY, &list));
  EXPECT_VIP(VIP_INVALID_PARAMETER, VipQuerySystemManagementInfo(nic, 77, &list));
  EXPECT_VIP(VIP_INVALID_PARAMETER,
             VipQuerySystemManagementInfo(nic, VIP_SMI_AUTODISCOVERY, nullptr));
  EXPECT_VIP(VIP_ERROR_NOT_SUPPORTED,
             VipQuerySystemManagementInfo(nic, VIP_SMI_AUTODISCOVERY, &list));
}

TEST(Nic, OpenedAndClosedByManyThreads) {
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i)
    threads.emplace_back([i] {
      for (int round = 0; round < 5; ++round) {
        const Nic nic(kNicNames[i % 2]);
        const Ptag ptag(nic);
      }
    });
  for (std::thread& thread : threads) thread.join();
}

}  // namespace

}  // namespace viaduct::vipl_test
