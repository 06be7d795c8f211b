// Ports on PCI functions: the two virtual functions and the whole NIC of `viaduct-vm --sriov`,
// where this has to run.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>

#include "tests/port/port_bed.hpp"
#include "tests/support/isolated.hpp"

namespace viaduct::link {
namespace {

using testing::HasSubstr;
using namespace std::chrono_literals;

// Under emulation everything takes a second where it takes milliseconds elsewhere.
constexpr unsigned kPatience = 240;

std::string told(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

class PciPort : public testing::Test {
 protected:
  void SetUp() override {
    ASSERT_NE(told("VIADUCT_VM_VF0"), "") << "run this with viaduct-vm --sriov";
  }
  static bool passes(const std::function<void()>& body) {
    return Child(body, kPatience).succeeded();
  }
};

// The number of 20 frames that arrived, each sent until it does or a second is over.
int traffic(port::Port& from, port::Port& to, std::size_t size) {
  int arrived = 0;
  for (std::uint32_t i = 0; i < 20; ++i) {
    bool there = false;
    for (const Time until = port::now() + 1s; !there && port::now() < until;) {
      send(from, numbered_frame(from, i, size));
      rte_mbuf* burst[32];
      for (const Time again = port::now() + 20ms; !there && port::now() < again;) {
        const auto got = to.receive(burst, 32);
        for (int k = 0; k < got; ++k) {
          there |= ours(burst[k]) && number_of(burst[k]) == i && intact(burst[k], size);
          port::Port::release(burst[k]);
        }
      }
    }
    arrived += there;
  }
  return arrived;
}

void expect_link(port::Port& port) {
  const Time until = port::now() + 20s;
  while (!port.link_up() && port::now() < until) sched_yield();
  EXPECT_TRUE(port.link_up());
}

// DPDK takes the first function as it starts, a second one later, and either again after it was
// closed. Names need no domain.
TEST_F(PciPort, CarryFramesBothWaysAndOpenAgain) {
  EXPECT_TRUE(passes([] {
    const std::string first = told("VIADUCT_VM_VF0");
    const std::string second = told("VIADUCT_VM_VF1").substr(5);
    for (int round = 0; round < 2; ++round) {
      const auto a = port::Port::open({.devargs = first});
      EXPECT_EQ(a->driver(), "net_e1000_igb_vf");
      EXPECT_EQ(a->address().text(), told("VIADUCT_VM_VF0_MAC"));
      EXPECT_THAT(refusal({.devargs = first}), HasSubstr("busy"));
      const auto b = port::Port::open({.devargs = second});
      EXPECT_EQ(b->address().text(), told("VIADUCT_VM_VF1_MAC"));
      expect_link(*a);
      expect_link(*b);
      for (const std::size_t size : {60, 1514}) {
        EXPECT_EQ(traffic(*a, *b, size), 20) << size;
        EXPECT_EQ(traffic(*b, *a, size), 20) << size;
      }
    }
  }));
}

void take_all(port::Port& port) {
  rte_mbuf* burst[32];
  while (const auto got = port.receive(burst, 32))
    for (int i = 0; i < got; ++i) port::Port::release(burst[i]);
}

// Sleeps until a frame of ours comes, and takes it; how long that was. The kernel says something on
// the wire now and then, too.
Duration until_frame(port::Port& port) {
  const Time began = port::now();
  while (port::now() - began < 20s) {
    EXPECT_TRUE(port.sleep(20s, -1));
    rte_mbuf* burst[32];
    bool there = false;
    while (const auto got = port.receive(burst, 32))
      for (int i = 0; i < got; ++i) {
        there |= ours(burst[i]);
        port::Port::release(burst[i]);
      }
    if (there) break;
  }
  return port::now() - began;
}

// The driver of the whole NIC has a receive interrupt, that of virtual functions has none.
TEST_F(PciPort, AFrameWakesWhoSleeps) {
  EXPECT_TRUE(passes([] {
    const auto function = port::Port::open({.devargs = told("VIADUCT_VM_VF0")});
    EXPECT_FALSE(function->sleep(1ms, -1));
    for (int round = 0; round < 2; ++round) {
      const auto nic = port::Port::open({.devargs = told("VIADUCT_VM_NIC").substr(5)});
      EXPECT_EQ(nic->driver(), "net_e1000_igb");
      EXPECT_EQ(nic->address().text(), told("VIADUCT_VM_NIC_MAC"));
      expect_link(*nic);
      EXPECT_EQ(traffic(*function, *nic, 1514), 20);
      take_all(*nic);
      std::thread sender([&] {
        std::this_thread::sleep_for(500ms);
        send(*function, numbered_frame(*function, 1));
      });
      const Duration woken = until_frame(*nic);
      sender.join();
      EXPECT_GT(woken, 400ms);
      EXPECT_LT(woken, 10s);
      // One that came while nobody slept is seen at once.
      send(*function, numbered_frame(*function, 2));
      std::this_thread::sleep_for(100ms);
      EXPECT_LT(until_frame(*nic), 5s);
      const Time began = port::now();
      while (port::now() - began < 300ms) EXPECT_TRUE(nic->sleep(300ms, -1));
      EXPECT_EQ(traffic(*nic, *function, 60), 20);
    }
  }));
}

TEST_F(PciPort, NapsWhereTheInterruptIsNotWanted) {
  ::setenv("VIADUCT_RX_INTERRUPT", "off", 1);
  EXPECT_TRUE(passes(
      [] { EXPECT_FALSE(port::Port::open({.devargs = told("VIADUCT_VM_NIC")})->sleep(1ms, -1)); }));
  ::unsetenv("VIADUCT_RX_INTERRUPT");
}

TEST_F(PciPort, NeedsThePciBus) {
  EXPECT_TRUE(passes([] {
    const auto memif = port::Port::open({.devargs = "net_memif0,socket=viaduct-none"});
    EXPECT_THAT(refusal({.devargs = told("VIADUCT_VM_VF0")}),
                HasSubstr("open the PCI port before any other"));
  }));
}

}  // namespace
}  // namespace viaduct::link
