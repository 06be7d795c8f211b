// Ports on the kernel's network interfaces: a veth pair in a network namespace of the test's own.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>

#include "tests/port/port_bed.hpp"
#include "tests/support/isolated.hpp"

namespace viaduct::link {
namespace {

using testing::AllOf, testing::HasSubstr;

bool shell(const std::string& command) {
  return WEXITSTATUS(std::system(command.c_str())) == 0;
}

// The namespace goes with the process.
void make_veth(int mtu) {
  ASSERT_EQ(unshare(CLONE_NEWNET), 0);
  ASSERT_TRUE(
      shell("ip link add va type veth peer name vb && "
            "for i in va vb; do sysctl -qw net.ipv6.conf.$i.disable_ipv6=1; "
            "ip link set $i mtu " +
            std::to_string(mtu) + " up; done"));
}

bool flag_is_set(const char* interface, const char* word) {
  return shell(std::string("ip -d link show ") + interface + " | grep -qw -- " + word);
}

// Tests on interfaces in network namespaces of their own; skipped where none can be made.
template <class Test>
class InNamespace : public Test {
 protected:
  void SetUp() override {
    if (geteuid() != 0 || !shell("unshare -n true 2>/dev/null"))
      GTEST_SKIP() << "needs the right to make a network namespace";
  }
};

class Interface : public InNamespace<testing::TestWithParam<std::string>> {
 protected:
  static port::PortConfig on(const char* interface, int number = 0, std::size_t mtu = 0) {
    return {.devargs = GetParam() + std::to_string(number) + ",iface=" + interface, .mtu = mtu};
  }
};

// Each frame crosses the kernel; it may be dropped there when the machine is busy.
void expect_traffic(port::Port& from, port::Port& to, std::size_t size) {
  int arrived = 0;
  for (std::uint32_t i = 0; i < 100; ++i) {
    const Time again = port::now() + std::chrono::milliseconds(50);
    send(from, numbered_frame(from, i, size));
    bool back = false;
    while (!back && port::now() < again) {
      rte_mbuf* burst[8];
      const auto got = to.receive(burst, 8);
      for (int k = 0; k < got; ++k) {
        back = back || (ours(burst[k]) && number_of(burst[k]) == i && intact(burst[k], size));
        port::Port::release(burst[k]);
      }
    }
    arrived += back;
  }
  EXPECT_GE(arrived, 90);
}

TEST_P(Interface, CarriesFramesBothWaysAndOpensAgain) {
  EXPECT_TRUE(succeeds([] {
    make_veth(1500);
    for (int round = 0; round < 2; ++round) {
      const auto a = port::Port::open(on("va", 0)), b = port::Port::open(on("vb", 1));
      EXPECT_EQ(a->mtu(), 1500u);
      EXPECT_GE(a->receive_capacity(), 1024u);
      EXPECT_NE(a->address(), b->address());
      EXPECT_TRUE(a->link_up());
      for (const std::size_t size : {60, 1514}) {
        expect_traffic(*a, *b, size);
        expect_traffic(*b, *a, size);
      }
    }
    EXPECT_FALSE(flag_is_set("va", "prog/xdp")) << "the XDP program must go with the port";
  }));
}

TEST_P(Interface, AFrameWakesTheSleeper) {
  EXPECT_TRUE(succeeds([] {
    make_veth(1500);
    Child other_end([] {
      const auto b = port::Port::open(on("vb", 1));
      Child::tell();
      while (true) echo_slowly(*b);
    });
    ASSERT_TRUE(other_end.wait_until_told());
    const auto a = port::Port::open(on("va", 0));
    EXPECT_LE(overslept(*a, 50, std::chrono::seconds(2)), 1);
    ASSERT_TRUE(shell("ip link set va down"));
    rte_mbuf* burst[8];
    while (const auto got = a->receive(burst, 8)) rte_pktmbuf_free_bulk(burst, got);
    const Time before = port::now();
    const bool slept = a->sleep(std::chrono::milliseconds(20), -1);
    EXPECT_TRUE(!slept || port::now() - before >= std::chrono::milliseconds(20))
        << "its CPU would be busy with this";
  }));
}

TEST_P(Interface, HasOnePort) {
  EXPECT_TRUE(succeeds([] {
    make_veth(1500);
    const auto a = port::Port::open(on("va", 0));
    EXPECT_THAT(refusal(on("va", 1)), AllOf(HasSubstr("va is busy"), HasSubstr("viaduct-port")));
    Child other([] { EXPECT_THAT(refusal(on("va", 2)), HasSubstr("va is busy")); });
    EXPECT_TRUE(other.succeeded());
  }));
}

TEST_P(Interface, ItsMtuIsALimit) {
  EXPECT_TRUE(succeeds([] {
    make_veth(1500);
    EXPECT_THAT(refusal(on("va", 0, 1501)), AllOf(HasSubstr("larger than the interface's 1500"),
                                                  HasSubstr("ip link set va mtu 1501")));
    const auto smaller = port::Port::open(on("va", 0, 1000));
    EXPECT_EQ(smaller->mtu(), 1000u);
    EXPECT_TRUE(shell("ip link show va | grep -q 'mtu 1500'"))
        << "the interface is not ours to change";
  }));
}

TEST_P(Interface, MustBeUp) {
  EXPECT_TRUE(succeeds([] {
    make_veth(1500);
    ASSERT_TRUE(shell("ip link set va down"));
    EXPECT_THAT(refusal(on("va")), AllOf(HasSubstr("va is down"), HasSubstr("ip link set va up")));
    ASSERT_TRUE(shell("ip link set va up"));
    EXPECT_EQ(refusal(on("va")), "(opened)");
  }));
}

TEST_P(Interface, IsFreeAgainWhenItsProcessIsKilled) {
  EXPECT_TRUE(succeeds([] {
    make_veth(1500);
    Child victim([] {
      const auto a = port::Port::open(on("va", 0));
      Child::tell();
      pause();
    });
    ASSERT_TRUE(victim.wait_until_told());
    victim.kill();
    const auto a = port::Port::open(on("va", 0)), b = port::Port::open(on("vb", 1));
    expect_traffic(*b, *a, 60);
  }));
}

TEST_P(Interface, WithoutPrivilegeSaysWhichOneIsMissing) {
  EXPECT_TRUE(succeeds([] {
    make_veth(1500);
    ASSERT_EQ(setresgid(65534, 65534, 65534), 0);
    ASSERT_EQ(setresuid(65534, 65534, 65534), 0);
    EXPECT_THAT(refusal(on("va")), AllOf(HasSubstr("not permitted"), HasSubstr("cap_net_raw"),
                                         HasSubstr("unshare -Urn")));
  }));
}

// As between two ports of 9000 bytes on a wire of 1500. The kernel keeps such a frame and tries it
// again before all others.
INSTANTIATE_TEST_SUITE_P(Driver, Interface, testing::Values("net_af_packet", "net_af_xdp"),
                         [](const auto& info) { return info.param; });

// Its ring is what a frame could stay at the head of; AF_XDP hands each over by itself.
class PacketSocket : public Interface {};

TEST_P(PacketSocket, AFrameThatTheWireCannotCarryStopsNoOther) {
  EXPECT_TRUE(succeeds([] {
    make_veth(1500);
    ASSERT_TRUE(shell("ip link set va mtu 9000"));
    const auto a = port::Port::open(on("va", 0)), b = port::Port::open(on("vb", 1));
    for (int round = 0; round < 3; ++round) {
      for (std::uint32_t i = 0; i < 3; ++i) ASSERT_TRUE(send(*a, numbered_frame(*a, i, 9014)));
      expect_traffic(*a, *b, 1514);
    }
  }));
}

INSTANTIATE_TEST_SUITE_P(Driver, PacketSocket, testing::Values("net_af_packet"),
                         [](const auto& info) { return info.param; });

class Jumbo : public InNamespace<testing::TestWithParam<int>> {};

TEST_P(Jumbo, FramesCrossWhole) {
  EXPECT_TRUE(succeeds([] {
    make_veth(GetParam());
    const auto a = port::Port::open({.devargs = "net_af_packet0,iface=va"});
    const auto b = port::Port::open({.devargs = "net_af_packet1,iface=vb"});
    EXPECT_EQ(a->mtu(), static_cast<std::size_t>(GetParam()));
    expect_traffic(*a, *b, a->mtu() + 14);
    const std::string small =
        refusal({.devargs = "net_af_packet2,iface=va,framesz=1024,blocksz=4096"});
    EXPECT_NE(small, "(opened)");
  }));
}

INSTANTIATE_TEST_SUITE_P(Mtu, Jumbo, testing::Values(576, 1900, 3000, 9000, 15000));

class AfXdp : public InNamespace<testing::Test> {};

TEST_F(AfXdp, JumboFramesAreRefusedWithTheLimit) {
  EXPECT_TRUE(succeeds([] {
    make_veth(9000);
    const std::string refused = refusal({.devargs = "net_af_xdp0,iface=va"});
    const std::string before = "at most MTU ";
    ASSERT_THAT(refused, AllOf(HasSubstr(before), HasSubstr("ip link set va mtu ")));
    const int most = std::atoi(refused.c_str() + refused.find(before) + before.size());
    EXPECT_GE(most, 3000);
    for (const auto* end : {"va", "vb"})
      ASSERT_TRUE(shell(std::string("ip link set ") + end + " mtu " + std::to_string(most)));
    const auto a = port::Port::open({.devargs = "net_af_xdp0,iface=va"});
    const auto b = port::Port::open({.devargs = "net_af_xdp1,iface=vb"});
    expect_traffic(*a, *b, most + 14);
  }));
}

}  // namespace
}  // namespace viaduct::link
