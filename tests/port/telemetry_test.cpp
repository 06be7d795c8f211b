// The counters of two links that run, as DPDK's telemetry gives them out at its socket.
#include <gtest/gtest.h>
#include <rte_eal.h>
#include <sched.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <string>
#include <thread>

#include "drivers/endpoint/endpoint.hpp"
#include "tests/support/isolated.hpp"

namespace viaduct::link {
namespace {

struct NoConfig {};
struct NoDriver {
  NoDriver(Link<port::Port>& over, const NoConfig&) : link(over) {}
  void poll(Time now) { link.poll(now); }
  Link<port::Port>& link;
};
class Node final : public endpoint::EndpointOf<Node, NoDriver, NoConfig> {
 public:
  using EndpointOf::EndpointOf;
};

class Client {
 public:
  Client() {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    const std::string path = std::string(rte_eal_get_runtime_dir()) + "/dpdk_telemetry.v2";
    path.copy(address.sun_path, sizeof address.sun_path - 1);
    EXPECT_EQ(::connect(socket_, reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
    EXPECT_NE(read().find("version"), std::string::npos);
  }
  ~Client() { ::close(socket_); }
  std::string ask(const std::string& command) {
    EXPECT_EQ(::write(socket_, command.data(), command.size()), ssize_t(command.size()));
    return read();
  }

 private:
  std::string read() {
    std::string text(20'000, ' ');
    const ssize_t size = ::read(socket_, text.data(), text.size());
    text.resize(size > 0 ? static_cast<std::size_t>(size) : 0);
    return text;
  }
  const int socket_ = ::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
};

// The number behind that name, or -1.
long long number(const std::string& json, const std::string& name) {
  const std::string key = "\"" + name + "\":";
  const auto at = json.find(key);
  return at == std::string::npos ? -1 : std::atoll(json.c_str() + at + key.size());
}

std::string key_of(const Address& address) {
  std::string text = address.text();
  std::erase(text, ':');
  return text;
}

TEST(Telemetry, GivesOutTheCountersOfLinksThatRun) {
  EXPECT_TRUE(succeeds([] {
    setenv("VIADUCT_TELEMETRY", "on", 1);
    static std::string directory;
    // Runs after the exit handlers that are registered later.
    std::atexit([] {
      if (std::filesystem::exists(directory)) _exit(1);
    });
    const std::string socket = ",socket=viaduct-telemetry-" + std::to_string(getpid());
    auto a = Node::open("net_memif0,role=server" + socket);
    auto b = Node::open("net_memif1,role=client" + socket);
    directory = rte_eal_get_runtime_dir();
    const PeerId peer = a->link().peer(b->address());
    a->link().connect(peer, port::now());
    while (!a->link().connected(peer)) {
      a->poll();
      b->poll();
      sched_yield();
    }
    const auto ask = [&](const std::string& command) {
      std::string answer;
      std::atomic<bool> done = false;
      std::thread client([&] {
        answer = Client().ask(command);
        done = true;
      });
      while (!done) {
        a->poll();
        if (b) b->poll();
      }
      client.join();
      return answer;
    };
    // On a busy machine the first answer may be an old one.
    const auto becomes = [&](const std::string& command, const std::string& name, long long value) {
      long long last = -2;
      for (int tries = 0; tries < 50 && last != value; ++tries) last = number(ask(command), name);
      return last == value;
    };
    const std::string counters = "/viaduct/link/counters", peers = "/viaduct/link/peers,port0/";
    EXPECT_TRUE(becomes(counters, "port0/peers_up", 1));
    EXPECT_TRUE(becomes(counters, "port1/peers_up", 1));
    EXPECT_GT(number(ask(counters), "port1/frames_sent"), 0);
    EXPECT_TRUE(becomes(peers, "port0/" + key_of(b->address()) + "/up", 1));
    EXPECT_GT(number(ask(peers), "port0/" + key_of(b->address()) + "/mtu"), 0);
    EXPECT_EQ(number(ask(peers), "port1/age_us"), -1);  // not of the names asked for
    EXPECT_GE(number(ask("/ethdev/stats,0"), "ipackets"), 0);
    // A link that has closed is not given out; one that does not poll gives what it gave last.
    b.reset();
    EXPECT_TRUE(becomes(counters, "port0/peers_down", 1));
    EXPECT_TRUE(becomes(counters, "port1/frames_sent", -1));
    const std::string old = Client().ask(counters);
    EXPECT_EQ(number(old, "port0/peers_down"), 1) << old;
    EXPECT_GT(number(old, "port0/age_us"), 90'000) << old;
    a.reset();
    std::exit(testing::Test::HasFailure() ? 1 : 0);
  }));
}

}  // namespace
}  // namespace viaduct::link
