// The name service.
#include <cstdlib>
#include <fstream>

#include "tests/vipl/programs/support/bed.hpp"

namespace viaduct::vipl_test {

namespace {

class Names : public PairTest {
 protected:
  VIP_RETURN by_name(const char* host, VIP_NET_ADDRESS* to, VIP_ULONG index = 0) {
    return VipNSGetHostByName(a_, const_cast<VIP_CHAR*>(host), to, index);
  }
  bool is(Address& found, const Nic& nic) {
    const auto host = found.host();
    return host.size() == nic.attributes().NicAddressLen &&
           std::memcmp(host.data(), nic.attributes().LocalNicAddress, host.size()) == 0;
  }
};

// NT initialises before every look-up and never ends it.
TEST_F(Names, InitialisedManyTimes) {
  EXPECT_VIP(VIP_SUCCESS, VipNSInit(a_, nullptr));
  EXPECT_VIP(VIP_SUCCESS, VipNSInit(a_, nullptr));
  Address found;
  found->HostAddressLen = 6;
  EXPECT_VIP(VIP_SUCCESS, by_name("10.9.0.2", found));
  EXPECT_VIP(VIP_SUCCESS, VipNSShutdown(a_));
  EXPECT_VIP(VIP_SUCCESS, by_name("10.9.0.2", found));  // one Init is left
  EXPECT_VIP(VIP_SUCCESS, VipNSShutdown(a_));
}

TEST_F(Names, NotInitialised) {
  Address found;
  EXPECT_VIP(VIP_ERROR_NAMESERVICE, by_name("10.9.0.2", found));
  char text[64];
  VIP_ULONG length = sizeof(text);
  Address known(b_, "");
  EXPECT_VIP(VIP_ERROR_NAMESERVICE, VipNSGetHostByAddr(a_, known, text, &length));
}

TEST_F(Names, ByNumber) {
  ASSERT_VIP(VIP_SUCCESS, VipNSInit(a_, nullptr));
  Address found;
  found->HostAddressLen = 6;
  ASSERT_VIP(VIP_SUCCESS, by_name("10.9.0.2", found));
  EXPECT_TRUE(is(found, b_));
  Address zeroed;  // as ARMCI passes it
  ASSERT_VIP(VIP_SUCCESS, by_name("10.9.0.1", zeroed));
  EXPECT_TRUE(is(zeroed, a_));
  Address no_room;
  no_room->HostAddressLen = 3;
  EXPECT_VIP(VIP_ERROR_RESOURCE, by_name("10.9.0.2", no_room));
  EXPECT_VIP(VIP_ERROR_NAMESERVICE, by_name("10.9.0.2", found, 1));  // there is only one
  EXPECT_VIP(VIP_SUCCESS, VipNSShutdown(a_));
}

// The host database, by its names; cLAN's programs cut theirs at the first dot.
TEST_F(Names, ByTheHostDatabase) {
  ASSERT_VIP(VIP_SUCCESS, VipNSInit(a_, nullptr));
  Address found;
  EXPECT_VIP(VIP_SUCCESS, by_name("localhost", found));
  EXPECT_EQ(6, found->HostAddressLen);
  EXPECT_VIP(VIP_ERROR_NAMESERVICE, by_name("there.is.no.such.host.invalid", found));
  EXPECT_VIP(VIP_SUCCESS, VipNSShutdown(a_));
}

TEST_F(Names, ByAFile) {
  char path[] = "/tmp/vipl-names-XXXXXX";
  ASSERT_GE(mkstemp(path), 0);
  std::ofstream(path) << "# VIA hosts\n10.9.0.2  second second.example\n10.9.0.1 first\n";
  ASSERT_EQ(0, setenv("VIADUCT_VIPL_HOSTS", path, 1));
  ASSERT_VIP(VIP_SUCCESS, VipNSInit(a_, nullptr));
  Address found;
  EXPECT_VIP(VIP_SUCCESS, by_name("second", found));
  EXPECT_TRUE(is(found, b_));
  EXPECT_VIP(VIP_SUCCESS, by_name("first", found));
  EXPECT_TRUE(is(found, a_));
  char text[64];
  VIP_ULONG length = sizeof(text);
  Address known(b_, "");
  EXPECT_VIP(VIP_SUCCESS, VipNSGetHostByAddr(a_, known, text, &length));
  EXPECT_STREQ("second", text);
  VIP_ULONG short_length = 3;
  EXPECT_VIP(VIP_ERROR_RESOURCE, VipNSGetHostByAddr(a_, known, text, &short_length));
  EXPECT_GE(short_length, 7u);  // what is needed
  EXPECT_VIP(VIP_SUCCESS, VipNSShutdown(a_));
  unsetenv("VIADUCT_VIPL_HOSTS");
  std::remove(path);
}

TEST_F(Names, BadParameters) {
  Address found;
  char text[64];
  VIP_ULONG length = sizeof(text);
  EXPECT_VIP(VIP_INVALID_PARAMETER, VipNSInit(no_handle(), nullptr));
  EXPECT_VIP(VIP_INVALID_PARAMETER, VipNSShutdown(no_handle()));
  ASSERT_VIP(VIP_SUCCESS, VipNSInit(a_, nullptr));
  EXPECT_VIP(VIP_INVALID_PARAMETER,
             VipNSGetHostByName(no_handle(), const_cast<VIP_CHAR*>("x"), found, 0));
  EXPECT_VIP(VIP_INVALID_PARAMETER, by_name(nullptr, found));
  EXPECT_VIP(VIP_INVALID_PARAMETER, by_name("x", nullptr));
  EXPECT_VIP(VIP_INVALID_PARAMETER, VipNSGetHostByAddr(no_handle(), found, text, &length));
  EXPECT_VIP(VIP_INVALID_PARAMETER, VipNSGetHostByAddr(a_, nullptr, text, &length));
  EXPECT_VIP(VIP_INVALID_PARAMETER, VipNSGetHostByAddr(a_, found, nullptr, &length));
  EXPECT_VIP(VIP_INVALID_PARAMETER, VipNSGetHostByAddr(a_, found, text, nullptr));
  EXPECT_VIP(VIP_SUCCESS, VipNSShutdown(a_));
}

}  // namespace

}  // namespace viaduct::vipl_test
