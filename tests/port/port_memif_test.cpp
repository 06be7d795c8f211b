// Two processes joined by memif: start orders, deaths and returns, privileges.
#include <gmock/gmock.h>
#include <grp.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <filesystem>

#include "tests/port/port_bed.hpp"
#include "tests/support/isolated.hpp"

namespace viaduct::link {
namespace {

using testing::HasSubstr;
using namespace std::chrono_literals;

class Memif : public testing::Test {
 protected:
  ~Memif() override { std::filesystem::remove(file_); }

  std::string devargs(const std::string& role, bool file = false) const {
    return "net_memif0,role=" + role + ",socket=" + (file ? file_ : name_) +
           (file ? ",socket-abstract=no" : "");
  }
  static std::string other(const std::string& role) {
    return role == "server" ? "client" : "server";
  }
  // Sends back what it gets, for ever.
  [[noreturn]] static void echo(const std::string& devargs) {
    const auto port = port::Port::open({.devargs = devargs});
    Child::tell();
    while (true) echo_once(*port);
  }
  static void expect_pings(const port::PortConfig& config, std::size_t size = 64) {
    const auto port = port::Port::open(config);
    EXPECT_EQ(ping(*port, 50, size), 50);
    EXPECT_TRUE(port->link_up());
    // Else short messages take half as much time again, and nobody would notice.
    EXPECT_TRUE(port->knows_rings());
  }

  const std::string name_ = "viaduct-test-" + std::to_string(getpid());
  const std::string file_ = testing::TempDir() + name_ + ".sock";
};

class MemifRole : public Memif, public testing::WithParamInterface<const char*> {};

TEST_P(MemifRole, EitherSideMayComeFirst) {
  Child first([&] { echo(devargs(GetParam())); });
  ASSERT_TRUE(first.wait_until_told());
  EXPECT_TRUE(succeeds([&] { expect_pings({.devargs = devargs(other(GetParam()))}); }));
  EXPECT_TRUE(first.running());
}

// The peer reads the client's frames where they lie, so these must be in memory that it can map.
TEST_P(MemifRole, FramesAreReachedByAPeerThatCopiesNothing) {
  const auto open = [&](const std::string& role) {
    setenv("VIADUCT_EAL", "--single-file-segments", 1);
    return port::Port::open({.devargs = devargs(role) + ",zero-copy=yes"});
  };
  Child first([&] {
    const auto port = open(GetParam());
    Child::tell();
    while (true) echo_once(*port);
  });
  ASSERT_TRUE(first.wait_until_told());
  EXPECT_TRUE(succeeds([&] { EXPECT_EQ(ping(*open(other(GetParam())), 500, 1500), 500); }));
  EXPECT_TRUE(first.running());
}

TEST_P(MemifRole, AFrameWakesTheSleeper) {
  Child other_end([&] {
    const auto port = port::Port::open({.devargs = devargs(other(GetParam()))});
    Child::tell();
    while (true) echo_slowly(*port);
  });
  ASSERT_TRUE(other_end.wait_until_told());
  EXPECT_TRUE(succeeds([&] {
    const auto port = port::Port::open({.devargs = devargs(GetParam())});
    EXPECT_FALSE(port->sleep(10s, -1)) << "there is nobody yet";
    EXPECT_EQ(ping(*port, 1), 1);
    EXPECT_LE(overslept(*port, 50, 2s), 1);
    const Time before = port::now();
    EXPECT_TRUE(port->sleep(20ms, -1));
    EXPECT_GE(port::now() - before, 20ms);
  }));
}

// In the middle of traffic, again and again: the driver alone crashes here within a few rounds.
TEST_P(MemifRole, PeersMayBeKilledAndComeBack) {
  Child survivor([&] { echo(devargs(GetParam())); });
  ASSERT_TRUE(survivor.wait_until_told());
  for (int round = 0; round < 8; ++round) {
    Child victim([&] {
      const auto port = port::Port::open({.devargs = devargs(other(GetParam()))});
      EXPECT_EQ(ping(*port, 20), 20);
      Child::tell();
      while (true) {
        send(*port, numbered_frame(*port, 0, 1500));
        rte_mbuf* burst[32];
        rte_pktmbuf_free_bulk(burst, port->receive(burst, 32));
      }
    });
    ASSERT_TRUE(victim.wait_until_told()) << "round " << round;
    usleep(1000 + 777 * round);
    victim.kill();
    ASSERT_TRUE(survivor.running()) << "round " << round;
  }
}

// At any moment of the handshake too: about when a port has been opened, a little later each time.
TEST_P(MemifRole, PeersMayBeKilledWhileJoining) {
  Child survivor([&] { echo(devargs(GetParam())); });
  ASSERT_TRUE(survivor.wait_until_told());
  for (int round = 0; round < 12; ++round) {
    Child victim([&] {
      const auto port = port::Port::open({.devargs = devargs(other(GetParam()))});
      Child::tell();
      while (true) echo_once(*port);
    });
    ASSERT_TRUE(victim.wait_until_told());
    usleep(static_cast<useconds_t>(100 * round));
    victim.kill();
    ASSERT_TRUE(survivor.running()) << "round " << round;
  }
  EXPECT_TRUE(succeeds([&] { expect_pings({.devargs = devargs(other(GetParam()))}); }));
  EXPECT_TRUE(survivor.running());
}

// What is known of the ring goes with the peer, and comes with the next one.
TEST_P(MemifRole, KnowsTheRingsWhileThereIsAPeer) {
  Child survivor([&] {
    const auto port = port::Port::open({.devargs = devargs(GetParam())});
    EXPECT_FALSE(port->knows_rings());
    EXPECT_EQ(ping(*port, 50), 50);
    EXPECT_TRUE(port->knows_rings());
    Child::tell();
    const Time until = port::now() + 10s;
    rte_mbuf* burst[8];
    while (port->knows_rings() && port::now() < until) {
      if (port->may_receive()) rte_pktmbuf_free_bulk(burst, port->receive(burst, 8));
      port->expect_transmit();
    }
    EXPECT_FALSE(port->knows_rings());
    EXPECT_EQ(ping(*port, 50), 50);
    EXPECT_TRUE(port->knows_rings());
  });
  Child peer([&] { echo(devargs(other(GetParam()))); });
  ASSERT_TRUE(survivor.wait_until_told());
  peer.kill();
  Child next([&] { echo(devargs(other(GetParam()))); });
  EXPECT_TRUE(survivor.succeeded());
}

// What Port::may_receive() says is what receive() then finds, a long time through the ring.
TEST_P(MemifRole, SaysWhetherAFrameIsThere) {
  Child peer([&] { echo(devargs(other(GetParam()))); });
  EXPECT_TRUE(succeeds([&] {
    const auto port = port::Port::open({.devargs = devargs(GetParam())});
    EXPECT_EQ(ping(*port, 50), 50);
    rte_mbuf* burst[32];
    while (port->may_receive()) rte_pktmbuf_free_bulk(burst, port->receive(burst, 32));
    for (std::uint32_t round = 0; round < 3000; ++round) {
      ASSERT_FALSE(port->may_receive());
      ASSERT_EQ(port->receive(burst, 32), 0);
      ASSERT_TRUE(send(*port, numbered_frame(*port, round)));
      const Time until = port::now() + 10s;
      while (!port->may_receive() && port::now() < until) sched_yield();
      ASSERT_EQ(port->receive(burst, 32), 1);
      ASSERT_EQ(number_of(burst[0]), round);
      port::Port::release(burst[0]);
    }
  }));
}

TEST_P(MemifRole, PeersMayCloseAndComeBack) {
  Child survivor([&] { echo(devargs(GetParam(), true)); });
  ASSERT_TRUE(survivor.wait_until_told());
  // One process that reopens its port, then another process.
  EXPECT_TRUE(succeeds([&] {
    for (int round = 0; round < 5; ++round)
      expect_pings({.devargs = devargs(other(GetParam()), true)});
  }));
  EXPECT_TRUE(succeeds([&] { expect_pings({.devargs = devargs(other(GetParam()), true)}); }));
  EXPECT_TRUE(survivor.running());
}

INSTANTIATE_TEST_SUITE_P(Role, MemifRole, testing::Values("server", "client"),
                         [](const auto& info) { return std::string(info.param); });

TEST_F(Memif, AKilledServersSocketIsNotInTheWay) {
  Child server([&] { echo(devargs("server", true)); });
  ASSERT_TRUE(server.wait_until_told());
  server.kill();
  ASSERT_TRUE(std::filesystem::exists(file_));
  Child next([&] { echo(devargs("server", true)); });
  ASSERT_TRUE(next.wait_until_told());
  EXPECT_TRUE(succeeds([&] { expect_pings({.devargs = devargs("client", true)}); }));
}

TEST_F(Memif, ALivingServersSocketIs) {
  for (const bool file : {false, true}) {
    Child server([&] { echo(devargs("server", file)); });
    ASSERT_TRUE(server.wait_until_told());
    EXPECT_TRUE(succeeds([&] {
      EXPECT_THAT(refusal({.devargs = devargs("server", file)}),
                  testing::AllOf(HasSubstr("in use"), HasSubstr("choose another socket=")));
    }));
    EXPECT_TRUE(server.running());
  }
}

TEST_F(Memif, SocketsThatCannotBeMadeAreSaid) {
  EXPECT_TRUE(succeeds([&] {
    EXPECT_THAT(refusal({.devargs = "net_memif0,role=server,socket-abstract=no,socket=/no/dir/x"}),
                HasSubstr("make the directory"));
    EXPECT_THAT(refusal({.devargs = "net_memif0,role=server,socket=" + std::string(200, 'x')}),
                HasSubstr("too long"));
    EXPECT_THAT(refusal({.devargs = "net_memif0,role=nobody"}), HasSubstr("nobody"));
  }));
}

TEST_F(Memif, TheSocketFileGoesWithThePort) {
  EXPECT_TRUE(succeeds([&] {
    for (int round = 0; round < 3; ++round) {
      const auto port = port::Port::open({.devargs = devargs("server", true)});
      EXPECT_TRUE(std::filesystem::exists(file_));
    }
    EXPECT_FALSE(std::filesystem::exists(file_));
  }));
}

TEST_F(Memif, CarriesTheMtuThatIsAskedFor) {
  for (const std::size_t mtu : {std::size_t{1500}, std::size_t{9000}}) {
    Child server([&] {
      setenv("VIADUCT_MTU", std::to_string(mtu).c_str(), 1);
      echo(devargs("server"));
    });
    ASSERT_TRUE(server.wait_until_told());
    EXPECT_TRUE(succeeds([&] {
      const auto port = port::Port::open({.devargs = devargs("client"), .mtu = mtu});
      EXPECT_EQ(port->mtu(), mtu);
      EXPECT_EQ(ping(*port, 50, mtu + 14), 50);
    }));
  }
}

// An unknown process on the socket must neither break the port nor keep others away.
TEST_F(Memif, StrangersOnTheSocketAreShownOut) {
  Child server([&] { echo(devargs("server")); });
  ASSERT_TRUE(server.wait_until_told());
  const auto stranger = [&](std::string_view says) {
    const int fd = socket(AF_UNIX, SOCK_SEQPACKET, 0);
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    name_.copy(address.sun_path + 1, sizeof address.sun_path - 1);
    EXPECT_EQ(connect(fd, reinterpret_cast<const sockaddr*>(&address),
                      static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name_.size())),
              0);
    EXPECT_EQ(::send(fd, says.data(), says.size(), MSG_NOSIGNAL),
              static_cast<ssize_t>(says.size()));
    usleep(20'000);
    close(fd);
  };
  stranger("hello");                   // not a message
  stranger(std::string(128, '\xff'));  // a message of no known type
  std::string connect_without_init(128, '\0');
  connect_without_init[0] = 6;
  stranger(connect_without_init);
  EXPECT_TRUE(succeeds([&] { expect_pings({.devargs = devargs("client")}); }));
  EXPECT_TRUE(server.running());
}

// Nobody, without capabilities, with 64 KiB of lockable memory.
TEST_F(Memif, NeedsNoPrivilege) {
  const auto drop = [] {
    const rlimit little{65536, 65536};
    EXPECT_EQ(setrlimit(RLIMIT_MEMLOCK, &little), 0);
    if (getuid() != 0) return;
    EXPECT_EQ(setgroups(0, nullptr), 0);
    EXPECT_EQ(setresgid(65534, 65534, 65534), 0);
    EXPECT_EQ(setresuid(65534, 65534, 65534), 0);
  };
  Child server([&] {
    drop();
    echo(devargs("server"));
  });
  ASSERT_TRUE(server.wait_until_told());
  EXPECT_TRUE(succeeds([&] {
    drop();
    expect_pings({.devargs = devargs("client")});
  }));
}

}  // namespace
}  // namespace viaduct::link
