// Two processes on a memif pair: a node each, opened as programs open it.
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <functional>

#include "drivers/startx_emul/node.hpp"

namespace viaduct::startx {
namespace {

using link::SendStatus;
using Clock = std::chrono::steady_clock;

constexpr auto kLimit = std::chrono::seconds{60};
constexpr std::size_t kTransfer = 3'000'000;
constexpr std::uint32_t kPackets = 20'000;

// One side, in a process of its own. A failed step names itself and ends the process.
class Side {
 public:
  Side(const std::string& directory, int index) : memory_(2 * kTransfer) {
    const auto mac = [](int i) { return "02:00:00:00:5a:0" + std::to_string(i); };
    node_ = Node::open("net_memif0,role=" + std::string(index == 0 ? "server" : "client") +
                       ",socket=" + directory + "/memif,socket-abstract=no,mac=" + mac(index));
    must(node_->address() == link::Address::parse(mac(index)), "address");
    peer_ = node_->link().peer(*link::Address::parse(mac(1 - index)));
    region_ = node_->rdma().register_memory(memory_);
    for (std::size_t i = 0; i < kTransfer; ++i) memory_[i] = expected(i, index);
  }

  static void must(bool good, const char* what) {
    if (good) return;
    std::fprintf(stderr, "process %d: failed: %s\n", getpid(), what);
    _exit(1);
  }
  void until(const std::function<bool()>& done, const char* what) {
    const auto end = Clock::now() + kLimit;
    while (!done()) {
      node_->poll();
      must(Clock::now() < end, what);
    }
  }

  static std::byte expected(std::size_t i, int from) {
    return static_cast<std::byte>(i * 7 + i / 253 + static_cast<std::size_t>(from));
  }

  void send_pio(std::uint32_t tag) {
    Packet packet;
    packet.tag = tag;
    packet.payload[0] = tag * 3;
    until(
        [&] {
          return node_->niu().try_send(peer_, Priority::high, packet, link::now()) ==
                 SendStatus::sent;
        },
        "send");
  }
  void receive_pio(std::uint32_t tag) {
    until([&] { return node_->niu().peek(Priority::high) != nullptr; }, "receive");
    const Received* got = node_->niu().peek(Priority::high);
    must(got->tag == tag && got->payload[0] == tag * 3 && got->from == peer_, "PIO packet");
    node_->niu().pop(Priority::high);
  }

  // Both directions at once, in order and nothing missing.
  void exchange_queued() {
    std::uint32_t sent = 0, got = 0;
    Niu<link::Port>& niu = node_->niu();
    until(
        [&] {
          while (sent < kPackets) {
            Outgoing* entry = niu.reserve(Priority::low);
            if (!entry) break;
            entry->to = peer_;
            entry->packet.tag = sent++;
            entry->packet.words = 2;
            entry->packet.order = link::Order::ordered;
            niu.commit(Priority::low);
          }
          while (const Received* r = niu.queue_peek(Priority::low)) {
            must(r->tag == got++, "order of queued packets");
            niu.queue_pop(Priority::low);
          }
          return got == kPackets && node_->link().idle();
        },
        "queued packets");
  }

  void exchange_rdma(int index) {
    Rdma<link::Port>& rdma = node_->rdma();
    must(rdma.post(peer_, 1, {region_, kTransfer, kTransfer}).status == RdmaStatus::ok, "post");
    must(rdma.request(peer_, 1, {region_, 0, kTransfer}, link::now()).status == RdmaStatus::ok,
         "request");
    std::size_t complete = 0;
    until(
        [&] {
          for (Completion c; rdma.next_completion(c); ++complete)
            must(c.status == RdmaStatus::ok && c.length == kTransfer, "completion");
          return complete == 2;
        },
        "RDMA transfers");
    for (std::size_t i = 0; i < kTransfer; ++i)
      must(memory_[kTransfer + i] == expected(i, 1 - index), "transferred bytes");
  }

  void await_death() {
    Event event{};
    until([&] { return node_->niu().next_event(event) && event.kind == Event::Kind::peer_down; },
          "news of the death");
    must(event.peer == peer_, "who died");
    must(node_->niu().try_send(peer_, Priority::high, Packet{}, link::now()) ==
             SendStatus::peer_down,
         "sending to the dead");
  }
  Node& node() { return *node_; }
  link::PeerId peer() const { return peer_; }
  RegionId region() const { return region_; }

 private:
  std::vector<std::byte> memory_;
  std::unique_ptr<Node> node_;
  link::PeerId peer_;
  RegionId region_;
};

class TwoProcesses : public ::testing::Test {
 protected:
  void SetUp() override {
    char name[] = "/tmp/viaduct-startx-XXXXXX";
    ASSERT_NE(mkdtemp(name), nullptr);
    directory_ = name;
  }
  void TearDown() override { std::filesystem::remove_all(directory_); }

  // DPDK is started in the children only: a process starts it once.
  pid_t fork_side(int index, const std::function<void(Side&)>& work) {
    const pid_t pid = fork();
    if (pid != 0) return pid;
    alarm(120);
    setenv("VIADUCT_DEAD_AFTER_MS", "500", 1);
    setenv("VIADUCT_MEMORY", "nohuge", 1);
    try {
      Side side(directory_, index);
      work(side);
    } catch (const std::exception& error) {
      Side::must(false, error.what());
    }
    std::fflush(nullptr);
    _exit(0);
  }
  static int status_of(pid_t pid) {
    int status = -1;
    EXPECT_EQ(waitpid(pid, &status, 0), pid);
    return status;
  }
  std::string directory_;
};

TEST_F(TwoProcesses, AllThreeMechanismsWork) {
  pid_t sides[2];
  for (int index : {0, 1})
    sides[index] = fork_side(index, [index](Side& side) {
      for (std::uint32_t tag = 0; tag < 1000; ++tag) {
        if (index == 0) side.send_pio(tag);
        side.receive_pio(tag);
        if (index == 1) side.send_pio(tag);
        if (index == 0 && tag == 999) break;
      }
      side.exchange_queued();
      side.exchange_rdma(index);
      // Neither leaves while the other may still wait for an acknowledgement.
      side.until([&] { return side.node().link().idle(); }, "acknowledgements");
      side.send_pio(7777);
      side.receive_pio(7777);
      side.until(
          [&] { return side.node().link().idle() || !side.node().link().connected(side.peer()); },
          "last acknowledgement");
    });
  for (int index : {0, 1}) EXPECT_EQ(status_of(sides[index]), 0) << "side " << index;
}

TEST_F(TwoProcesses, AKilledProcessIsSeenByTheOtherAndItsTransfersEnd) {
  int up[2];
  ASSERT_EQ(pipe(up), 0);
  const pid_t survivor = fork_side(0, [&](Side& side) {
    side.receive_pio(1);
    // It will be killed with a post and a request of ours open.
    Rdma<link::Port>& rdma = side.node().rdma();
    Side::must(rdma.post(side.peer(), 1, {side.region(), 0, 100}).status == RdmaStatus::ok, "post");
    Side::must(
        rdma.request(side.peer(), 2, {side.region(), 0, 100}, link::now()).status == RdmaStatus::ok,
        "request");
    Side::must(write(up[1], "x", 1) == 1, "pipe");
    side.await_death();
    std::size_t ended = 0;
    for (Completion c; rdma.next_completion(c);) ended += c.status == RdmaStatus::peer_down;
    Side::must(ended == 2, "transfers with the dead");
  });
  close(up[1]);  // the survivor's alone now: its end, whatever the cause, ends the wait below
  const pid_t victim = fork_side(1, [](Side& side) {
    side.send_pio(1);
    side.until([] { return false; }, "being killed");
  });
  char byte;
  EXPECT_EQ(read(up[0], &byte, 1), 1);
  EXPECT_EQ(kill(victim, SIGKILL), 0);
  EXPECT_EQ(status_of(victim), SIGKILL);
  EXPECT_EQ(status_of(survivor), 0);
  close(up[0]);
}

}  // namespace
}  // namespace viaduct::startx
