// Port and EAL in one process: loop-back rings, refusals, faults, and what must be left as it was.
#include "drivers/port/port.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rte_dev.h>
#include <rte_eal.h>
#include <rte_eth_ring.h>
#include <rte_ring.h>
#include <sched.h>
#include <signal.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <set>
#include <thread>

#include "tests/port/port_bed.hpp"
#include "tests/support/isolated.hpp"

namespace viaduct::link {
namespace {

using testing::AllOf, testing::HasSubstr, testing::IsEmpty;

// Two ethdevs of the application's own, "net_ring_a" and "net_ring_b", joined by rings.
void make_ring_pair() {
  port::ensure_eal({});
  rte_ring* const there =
      rte_ring_create("there", 2048, SOCKET_ID_ANY, RING_F_SP_ENQ | RING_F_SC_DEQ);
  rte_ring* const back =
      rte_ring_create("back", 2048, SOCKET_ID_ANY, RING_F_SP_ENQ | RING_F_SC_DEQ);
  ASSERT_GE(rte_eth_from_rings("a", &back, 1, &there, 1, 0), 0);
  ASSERT_GE(rte_eth_from_rings("b", &there, 1, &back, 1, 0), 0);
}

std::vector<std::uint32_t> receive_all(port::Port& port, int polls = 200) {
  std::vector<std::uint32_t> numbers;
  for (int poll = 0; poll < polls; ++poll) {
    rte_mbuf* burst[32];
    const auto got = port.receive(burst, 32);
    for (int i = 0; i < got; ++i) {
      if (ours(burst[i])) numbers.push_back(number_of(burst[i]));
      port::Port::release(burst[i]);
    }
  }
  return numbers;
}

TEST(Port, CarriesFramesBetweenRings) {
  EXPECT_TRUE(succeeds([] {
    make_ring_pair();
    const auto a = port::Port::open({.devargs = "port:net_ring_a"});
    const auto b = port::Port::open({.devargs = "port:net_ring_b", .frames = 4095});
    EXPECT_EQ(a->driver(), "net_ring");
    EXPECT_EQ(a->mtu(), 1500u);
    EXPECT_EQ(b->pool_size(), 4095u);
    EXPECT_TRUE(a->link_up());
    EXPECT_EQ(a->fault_counts(), nullptr);
    EXPECT_EQ(a->frames_in_use(), 0u);
    for (std::uint32_t i = 0; i < 1000; ++i) ASSERT_TRUE(send(*a, numbered_frame(*a, i, 1514)));
    EXPECT_EQ(a->frames_in_use(), 1000u);
    const auto numbers = receive_all(*b);
    ASSERT_EQ(numbers.size(), 1000u);
    for (std::uint32_t i = 0; i < 1000; ++i) EXPECT_EQ(numbers[i], i);
    EXPECT_EQ(a->frames_in_use(), 0u);
  }));
}

TEST(Port, FramesAreCountedReferencesWithRoomForBookkeeping) {
  EXPECT_TRUE(succeeds([] {
    make_ring_pair();
    const auto port = port::Port::open({.devargs = "port:0"});
    rte_mbuf* const frame = port->allocate();
    ASSERT_NE(frame, nullptr);
    auto& meta = port::Port::meta(frame);
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(&meta) % alignof(FrameMeta<rte_mbuf>), 0u);
    std::memset(static_cast<void*>(&meta), 0xff, sizeof meta);
    EXPECT_LE(reinterpret_cast<std::byte*>(&meta + 1), port::Port::bytes(frame));
    port::Port::set_length(frame, 1514);
    EXPECT_EQ(port::Port::length(frame), 1514u);
    port::Port::retain(frame);
    port::Port::release(frame);
    EXPECT_EQ(port->frames_in_use(), 1u);
    port::Port::release(frame);
    EXPECT_EQ(port->frames_in_use(), 0u);
    std::vector<rte_mbuf*> all;
    while (rte_mbuf* const next = port->allocate()) all.push_back(next);
    EXPECT_EQ(all.size(), port->pool_size());
    for (rte_mbuf* const one : all) port::Port::release(one);
  }));
}

// A frame that still lies in the other's ring when its owner closes must be freed where it lives.
TEST(Port, ClosesInAnyOrderAndOpensAgain) {
  EXPECT_TRUE(succeeds([] {
    setenv("VIADUCT_EAL", "-m 80", 1);
    make_ring_pair();
    for (int round = 0; round < 12; ++round) {
      auto a = port::Port::open({.devargs = "port:net_ring_a"});
      auto b = port::Port::open({.devargs = "port:net_ring_b"});
      send(*a, numbered_frame(*a, 1));
      send(*b, numbered_frame(*b, 2));
      EXPECT_EQ(receive_all(*b).size(), 1u);
      send(*a, numbered_frame(*a, 3));
      (round % 2 == 0 ? a : b).reset();
      (round % 2 == 0 ? b : a).reset();
    }
  }));
}

TEST(Port, OneOwnerAtATime) {
  EXPECT_TRUE(succeeds([] {
    make_ring_pair();
    const auto port = port::Port::open({.devargs = "port:net_ring_a"});
    EXPECT_THAT(refusal({.devargs = "port:net_ring_a"}), HasSubstr("busy"));
    rte_eth_conf conf{};
    rte_eth_dev_configure(1, 1, 1, &conf);
    rte_mempool* const pool = rte_pktmbuf_pool_create("mine", 512, 0, 0, 2048, SOCKET_ID_ANY);
    rte_eth_rx_queue_setup(1, 0, 64, 0, nullptr, pool);
    rte_eth_tx_queue_setup(1, 0, 64, 0, nullptr);
    ASSERT_EQ(rte_eth_dev_start(1), 0);
    EXPECT_THAT(refusal({.devargs = "port:net_ring_b"}),
                AllOf(HasSubstr("somebody has started it"), HasSubstr("rte_eth_dev_stop")));
    const auto memif = port::Port::open({.devargs = "net_memif7,socket=viaduct-none"});
    EXPECT_THAT(refusal({.devargs = "net_memif7,socket=viaduct-none"}),
                AllOf(HasSubstr("busy"), HasSubstr("net_memif7")));
  }));
}

TEST(Port, ADeviceThatIsNoPortIsGivenBack) {
  EXPECT_TRUE(succeeds([] {
    EXPECT_THAT(refusal({.devargs = "crypto_null0"}),
                testing::AnyOf(HasSubstr("not a network port"),
                               HasSubstr("no driver of that name")));  // not installed
    rte_dev_iterator iterator;
    rte_device* device = nullptr;
    RTE_DEV_FOREACH(device, "bus=vdev,name=crypto_null0", &iterator) {
      ADD_FAILURE() << rte_dev_name(device) << " is still there";
    }
  }));
}

TEST(Port, RefusalsSayWhatWhyAndWhatToDo) {
  EXPECT_TRUE(succeeds([] {
    EXPECT_THAT(refusal({.devargs = ""}), HasSubstr("net_af_packet0,iface="));
    EXPECT_THAT(refusal({.devargs = "net_nonsense0"}),
                AllOf(HasSubstr("net_nonsense0"), HasSubstr("no driver of that name")));
    EXPECT_THAT(refusal({.devargs = "ffff:fe:1f.7"}), HasSubstr("no such PCI function"));
    EXPECT_THAT(refusal({.devargs = "port:nothing"}), HasSubstr("no such ethdev"));
    EXPECT_THAT(refusal({.devargs = "port:31"}), HasSubstr("no such ethdev"));
    EXPECT_THAT(refusal({.devargs = "port:"}), HasSubstr("no such ethdev"));
    EXPECT_THAT(refusal({.devargs = "net_af_packet0"}), HasSubstr("iface="));
    EXPECT_THAT(refusal({.devargs = "net_af_packet0,iface=no_such_if"}),
                AllOf(HasSubstr("no_such_if"), HasSubstr("`ip link`")));
    EXPECT_THAT(refusal({.devargs = "net_af_xdp0,iface=no_such_if"}), HasSubstr("no_such_if"));
    EXPECT_THAT(refusal({.devargs = "net_memif0,socket=x", .mtu = 100}), HasSubstr("out of range"));
    EXPECT_THAT(refusal({.devargs = "net_memif0,socket=x", .mtu = 70000}),
                HasSubstr("out of range"));
    EXPECT_THAT(refusal({.devargs = "net_memif0,socket=x", .frames = 700}),
                AllOf(HasSubstr("700 frames are too few"), HasSubstr("VIADUCT_FRAMES")));
    EXPECT_THAT(refusal({.devargs = "net_memif0,socket=x,zero-copy=yes"}),
                HasSubstr("single-file-segments"));
    EXPECT_THAT(refusal({.devargs = "net_memif0,socket=x,rsize=99"}), HasSubstr("ring size"));
    // What DPDK's parser would read as something else.
    EXPECT_THAT(refusal({.devargs = "net_memif0,socket=a=b"}),
                AllOf(HasSubstr("socket=a=b"), HasSubstr("no '=' in a value")));
    std::string many = "net_memif0";
    for (int i = 0; i < 40; ++i) many += ",id=1";
    EXPECT_THAT(refusal({.devargs = many}), HasSubstr("leave some out"));
    // After all these a port opens as if nothing had been.
    EXPECT_EQ(refusal({.devargs = "net_memif0,socket=x"}), "(opened)");
  }));
}

TEST(Port, BadVariablesAreRefusedBeforeAnythingIsStarted) {
  EXPECT_TRUE(succeeds([] {
    const std::pair<const char*, const char*> bad[] = {{"VIADUCT_FRAMES", "many"},
                                                       {"VIADUCT_MTU", "-1"},
                                                       {"VIADUCT_RX_DESCRIPTORS", "1"},
                                                       {"VIADUCT_MEMORY", "plenty"},
                                                       {"VIADUCT_FRAMES", "99"}};
    for (const auto& [name, value] : bad) {
      setenv(name, value, 1);
      EXPECT_THAT(refusal({.devargs = "net_memif0,socket=x"}),
                  HasSubstr(std::string(name) + "=" + value));
      unsetenv(name);
    }
    // More than any machine has.
    setenv("VIADUCT_MEMORY", "huge", 1);
    EXPECT_THAT(refusal({.devargs = "net_memif0,socket=x", .frames = 1'000'000'000}),
                AllOf(HasSubstr("too few hugepages"), HasSubstr("vm.nr_hugepages"),
                      HasSubstr("VIADUCT_MEMORY=nohuge")));
    setenv("VIADUCT_MEMORY", "nohuge", 1);
    EXPECT_THAT(refusal({.devargs = "net_memif0,socket=x", .frames = 1'000'000'000}),
                AllOf(HasSubstr("too little memory"), HasSubstr("VIADUCT_FRAMES")));
    unsetenv("VIADUCT_MEMORY");
    for (const auto& [name, value] :
         {std::pair{"VIADUCT_FAULTS", "loss=lots"}, {"VIADUCT_PCAP", "/no/such/directory/x"}}) {
      setenv(name, value, 1);
      EXPECT_THAT(refusal({.devargs = "net_memif0,socket=x"}), HasSubstr(value));
      unsetenv(name);
    }
    EXPECT_EQ(refusal({.devargs = "net_memif0,socket=x"}), "(opened)");
  }));
}

TEST(Port, VariablesReachThePort) {
  EXPECT_TRUE(succeeds([] {
    setenv("VIADUCT_FRAMES", "3000", 1);
    setenv("VIADUCT_MTU", "4000", 1);
    setenv("VIADUCT_RX_DESCRIPTORS", "512", 1);
    setenv("VIADUCT_EAL", "--single-file-segments  --log-level=lib.eal:debug", 1);
    const auto port = port::Port::open({.devargs = "net_memif0,socket=x,zero-copy=yes"});
    EXPECT_EQ(port->pool_size(), 3000u);
    EXPECT_EQ(port->mtu(), 4000u);
    EXPECT_EQ(port->receive_capacity(), 512u);
  }));
}

TEST(Eal, ABadArgumentIsRefusedInOneSentence) {
  EXPECT_THAT(Child::output_of([] {
                setenv("VIADUCT_EAL", "--no-such-option", 1);
                const std::string refused = refusal({.devargs = "net_memif0,socket=x"});
                EXPECT_THAT(refused, AllOf(HasSubstr("DPDK does not start"),
                                           HasSubstr("no-such-option"), HasSubstr("VIADUCT_EAL")));
              }),
              IsEmpty());
}

// EAL would print its options to nowhere and end the program as if all were well.
TEST(Eal, TheProgramIsNotEndedByAnArgument) {
  EXPECT_THAT(Child::output_of([] {
                for (const char* const help : {"--log-level=8 --help", "-h"}) {
                  setenv("VIADUCT_EAL", help, 1);
                  EXPECT_THAT(refusal({.devargs = "net_memif0,socket=x"}),
                              HasSubstr("would end the program"));
                }
                unsetenv("VIADUCT_EAL");
                EXPECT_EQ(refusal({.devargs = "net_memif0,socket=x"}), "(opened)");
              }),
              IsEmpty());
}

// Started by the application, without PCI and with little memory.
TEST(Eal, TheApplicationsOwnIsAccepted) {
  const std::string output = Child::output_of([] {
    const char* arguments[] = {"test", "--no-pci",    "--no-telemetry", "--no-huge", "-m",
                               "24",   "--no-shconf", "--log-level",    "error",     "-l",
                               "0"};
    std::vector<char*> argv;
    for (const char* argument : arguments) argv.push_back(const_cast<char*>(argument));
    ASSERT_GE(rte_eal_init(static_cast<int>(argv.size()), argv.data()), 0);
    EXPECT_THAT(refusal({.devargs = "net_null0"}),
                AllOf(HasSubstr("no memory for 8191 frames"), HasSubstr("VIADUCT_FRAMES")));
    const Time before = port::now();
    // The frames of a memif are not in DPDK's memory.
    EXPECT_EQ(refusal({.devargs = "net_memif0,socket=x"}), "(opened)");
    EXPECT_GT(port::now(), before);
  });
  EXPECT_THAT(output, IsEmpty());
}

TEST(Eal, ClockIsTheMonotonicOne) {
  EXPECT_TRUE(succeeds([] {
    port::ensure_eal({});
    const auto wall = std::chrono::steady_clock::now();
    const Time tick = port::now();
    usleep(50'000);
    const Duration by_tick = port::now() - tick;
    const Duration by_wall = std::chrono::steady_clock::now() - wall;
    // DPDK finds out how fast the ticks are within a tenth of a second, so to some ten-thousandths.
    EXPECT_GE(by_tick, std::chrono::microseconds(49'950));
    EXPECT_LE(by_tick, by_wall + std::chrono::milliseconds(1));
  }));
}

TEST(Eal, SuccessIsSilent) {
  EXPECT_THAT(Child::output_of([] {
                port::Port::open({.devargs = "net_memif0,role=server,socket=viaduct-silent"});
              }),
              IsEmpty());
}

std::string members(const sigset_t& set) {
  std::string text;
  for (int signal = 1; signal < NSIG; ++signal) text += sigismember(&set, signal) == 1 ? '1' : '0';
  return text;
}

std::string signal_handlers() {
  std::string text;
  for (int signal = 1; signal < NSIG; ++signal) {
    struct sigaction action {};
    if (sigaction(signal, nullptr, &action) != 0) continue;
    text += std::to_string(reinterpret_cast<std::uintptr_t>(action.sa_handler)) + " " +
            std::to_string(action.sa_flags) + " " + members(action.sa_mask) + "\n";
  }
  return text;
}

TEST(Eal, AffinityAndSignalsAreLeftAsTheyWere) {
  EXPECT_TRUE(succeeds([] {
    cpu_set_t one, before, after;
    CPU_ZERO(&one);
    CPU_SET(sched_getcpu(), &one);
    ASSERT_EQ(sched_setaffinity(0, sizeof one, &one), 0);
    signal(SIGBUS, [](int) { _exit(9); });
    signal(SIGINT, SIG_IGN);
    const auto handlers = signal_handlers();
    sigset_t mask_before, mask_after;
    pthread_sigmask(SIG_SETMASK, nullptr, &mask_before);
    sched_getaffinity(0, sizeof before, &before);
    const auto port = port::Port::open({.devargs = "net_memif0,socket=x"});
    sched_getaffinity(0, sizeof after, &after);
    pthread_sigmask(SIG_SETMASK, nullptr, &mask_after);
    EXPECT_TRUE(CPU_EQUAL(&before, &after));
    EXPECT_EQ(signal_handlers(), handlers);
    EXPECT_EQ(members(mask_before), members(mask_after));
  }));
}

TEST(Eal, AllProcessorsStayAllowed) {
  EXPECT_TRUE(succeeds([] {
    cpu_set_t before, after;
    sched_getaffinity(0, sizeof before, &before);
    port::ensure_eal({});
    sched_getaffinity(0, sizeof after, &after);
    EXPECT_TRUE(CPU_EQUAL(&before, &after));
  }));
}

TEST(Eal, LeavesNothingBehind) {
  EXPECT_TRUE(succeeds([] {
    const auto port = port::Port::open({.devargs = "net_memif0,socket=x"});
    const std::string mine = "viaduct_" + std::to_string(getpid());
    for (const auto* directory : {"/run/dpdk", "/tmp/dpdk", "/dev/shm"})
      EXPECT_FALSE(std::filesystem::exists(std::filesystem::path(directory) / mine)) << directory;
  }));
}

TEST(Eal, AnyThreadMayOpenAndGetsACacheOfItsOwn) {
  EXPECT_TRUE(succeeds([] {
    std::thread([] { port::ensure_eal({}); }).join();
    for (int round = 0; round < 200; ++round)  // more than there are lcore numbers
      std::thread([round] {
        const bool whole = round % 50 == 0;
        if (whole) {
          EXPECT_EQ(refusal({.devargs = "net_memif0,socket=x"}), "(opened)");
        } else {
          port::register_thread();
        }
        EXPECT_NE(rte_lcore_id(), LCORE_ID_ANY) << "round " << round;
      }).join();
  }));
}

// --- faults and recordings
// ------------------------------------------------------------------------

struct Sent {
  std::vector<std::uint32_t> numbers;
  base::FaultCounts counts;
};

// `count` frames from a faulty port to a sound one, each checked afterwards to be what it was.
Sent send_with(const base::FaultSpec& faults, std::uint32_t count) {
  make_ring_pair();
  const auto a = port::Port::open({.devargs = "port:net_ring_a", .faults = faults});
  const auto b = port::Port::open({.devargs = "port:net_ring_b"});
  Sent result;
  for (std::uint32_t i = 0; i < count; ++i) {
    rte_mbuf* frame = numbered_frame(*a, i, 100);
    port::Port::retain(frame);  // as the link does, to send it again
    rte_mbuf* const kept = frame;
    EXPECT_EQ(a->transmit(&frame, 1), 1);
    EXPECT_TRUE(intact(kept, 100) && number_of(kept) == i && port::Port::length(kept) == 100);
    port::Port::release(kept);
    const auto got = receive_all(*b, 1);
    result.numbers.insert(result.numbers.end(), got.begin(), got.end());
  }
  for (int i = 0; i < 100; ++i) receive_all(*a, 1);  // polls let go of what is held
  const auto got = receive_all(*b);
  result.numbers.insert(result.numbers.end(), got.begin(), got.end());
  EXPECT_NE(a->fault_counts(), nullptr);
  if (a->fault_counts() != nullptr) result.counts = *a->fault_counts();
  EXPECT_EQ(a->frames_in_use(), 0u);
  return result;
}

TEST(PortFaults, LoseAndDoubleAsManyAsTheySay) {
  EXPECT_TRUE(succeeds([] {
    const Sent sent = send_with({.loss = 0.1, .duplicate = 0.05, .seed = 5}, 5000);
    EXPECT_GT(sent.counts.lost, 300u);
    EXPECT_GT(sent.counts.duplicated, 100u);
    EXPECT_EQ(sent.numbers.size(), 5000 - sent.counts.lost + sent.counts.duplicated);
    const std::set<std::uint32_t> distinct(sent.numbers.begin(), sent.numbers.end());
    EXPECT_EQ(distinct.size(), 5000 - sent.counts.lost);
  }));
}

TEST(PortFaults, ReorderAndLoseNothing) {
  EXPECT_TRUE(succeeds([] {
    const Sent sent = send_with({.reorder = 0.2, .seed = 6}, 5000);
    EXPECT_GT(sent.counts.reordered, 500u);
    ASSERT_EQ(sent.numbers.size(), 5000u);
    std::size_t overtaken = 0;
    std::uint32_t highest = 0;
    for (const std::uint32_t number : sent.numbers) {
      overtaken += number < highest;
      highest = std::max(highest, number);
    }
    EXPECT_GT(overtaken, sent.counts.reordered * 9 / 10);
    EXPECT_LE(overtaken, sent.counts.reordered);
    const std::set<std::uint32_t> distinct(sent.numbers.begin(), sent.numbers.end());
    EXPECT_EQ(distinct.size(), 5000u);
  }));
}

TEST(PortFaults, DamageCopiesOnly) {
  EXPECT_TRUE(succeeds([] {
    make_ring_pair();
    const auto a =
        port::Port::open({.devargs = "port:net_ring_a", .faults = {.corrupt = 1, .truncate = 0.5}});
    const auto b = port::Port::open({.devargs = "port:net_ring_b"});
    int shorter = 0;
    for (std::uint32_t i = 0; i < 1000; ++i) {
      rte_mbuf* frame = numbered_frame(*a, i, 100);
      port::Port::retain(frame);
      rte_mbuf* const kept = frame;
      ASSERT_EQ(a->transmit(&frame, 1), 1);
      rte_mbuf* received = nullptr;
      ASSERT_EQ(b->receive(&received, 1), 1);
      EXPECT_NE(received, kept);
      EXPECT_GE(port::Port::length(received), 14u);
      shorter += port::Port::length(received) < 100;
      if (port::Port::length(received) == 100) {
        EXPECT_NE(std::memcmp(port::Port::bytes(received), port::Port::bytes(kept), 100), 0);
      }
      EXPECT_TRUE(intact(kept, 100));
      port::Port::release(received);
      port::Port::release(kept);
    }
    EXPECT_GT(shorter, 300);
    EXPECT_EQ(a->fault_counts()->corrupted, 1000u);
  }));
}

TEST(PortFaults, ComeFromTheEnvironmentToo) {
  EXPECT_TRUE(succeeds([] {
    setenv("VIADUCT_FAULTS", "loss=50%,seed=3", 1);
    const Sent sent = send_with({.loss = 0.5, .seed = 4}, 1000);
    EXPECT_NEAR(sent.counts.lost, 750, 60);
  }));
}

// The device takes nothing: nothing may be lost or kept without end.
TEST(PortFaults, PassOnThatTheDeviceIsFull) {
  EXPECT_TRUE(succeeds([] {
    make_ring_pair();
    const auto a = port::Port::open({.devargs = "port:net_ring_a", .faults = {.reorder = 0.1}});
    const auto b = port::Port::open({.devargs = "port:net_ring_b"});
    std::uint32_t taken = 0;
    for (std::uint32_t i = 0; i < 4000; ++i)
      if (send(*a, numbered_frame(*a, i))) ++taken;
    EXPECT_LT(taken, 2400u);
    std::size_t arrived = 0;
    for (int round = 0; round < 200; ++round) {
      arrived += receive_all(*b, 10).size();
      receive_all(*a, 1);
    }
    EXPECT_EQ(arrived, taken);
  }));
}

TEST(PortRecording, HasEveryFrameThatPassed) {
  const std::string path = testing::TempDir() + "viaduct_port_test_" + std::to_string(getpid());
  EXPECT_TRUE(succeeds([&] {
    setenv("VIADUCT_PCAP", (path + "_{port}").c_str(), 1);
    make_ring_pair();
    const auto a = port::Port::open({.devargs = "port:net_ring_a"});
    const auto b = port::Port::open({.devargs = "port:net_ring_b"});
    for (std::uint32_t i = 0; i < 3000; ++i) send(*a, numbered_frame(*a, i, 100));
    EXPECT_EQ(receive_all(*b).size(), 2047u);
    EXPECT_EQ(a->frames_in_use(), 0u);
  }));
  for (const auto* port : {"_net_ring_a", "_net_ring_b"}) {
    EXPECT_EQ(std::filesystem::file_size(path + port), 24 + 2047 * (16 + 100)) << port;
    std::filesystem::remove(path + port);
  }
}

}  // namespace
}  // namespace viaduct::link
