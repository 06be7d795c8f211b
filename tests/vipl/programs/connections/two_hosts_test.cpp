// Across two hosts: viaduct-vm --hosts 2 runs the part "far" on one and these tests on the other.
#include <signal.h>

#include <cstdlib>
#include <thread>

#include "tests/vipl/programs/support/async_errors.hpp"
#include "tests/vipl/programs/support/bed.hpp"
#include "tests/vipl/programs/support/process.hpp"
#include "tests/vipl/programs/support/random_writes.hpp"

namespace viaduct::vipl_test {

namespace {

constexpr std::size_t kRegionBytes = 65536, kRegions = 2;

// Where the other host may write and read.
struct Target {
  VIP_UINT64 address;
  VIP_MEM_HANDLE handle;
};

VIP_VI_ATTRIBUTES open_to_all() {
  VIP_VI_ATTRIBUTES out = vi_attributes();
  out.EnableRdmaWrite = out.EnableRdmaRead = VIP_TRUE;
  return out;
}

// The discriminator of one of the VIs of RandomWrites.
std::string random_name(std::size_t i) {
  return "random" + std::to_string(i);
}

// One end of all connections of RandomWrites: tells the other side where to write, and learns the
// same.
class RandomEnd {
 public:
  explicit RandomEnd(const Nic& nic) : nic_(nic), messages_(nic, 2 * kRandomVis, 64) {
    for (std::size_t i = 0; i < kRandomVis; ++i) {
      ends_.push_back(std::make_unique<RandomWrites>(nic, i));
      made_.push_back(std::make_unique<Vi>(nic, open_to_writes()));
      vis_.push_back(*made_[i]);
      VipPostRecv(vis_[i], messages_.receive(i, 64), messages_.handle());
    }
  }
  void accept() {
    for (std::size_t i = 0; i < kRandomVis; ++i) {
      Address local(nic_, random_name(i)), remote;
      VIP_VI_ATTRIBUTES attributes;
      VIP_CONN_HANDLE connection;
      EXPECT_VIP(VIP_SUCCESS, VipConnectWait(nic_, local, kSoon, remote, &attributes, &connection));
      EXPECT_VIP(VIP_SUCCESS, VipConnectAccept(connection, vis_[i]));
    }
  }
  void request_from(std::span<const VIP_UINT8> host) {
    for (std::size_t i = 0; i < kRandomVis; ++i) {
      Address local(nic_, "near"), remote(host, random_name(i));
      EXPECT_VIP(VIP_SUCCESS, request(*made_[i], local, remote));
    }
  }
  // What was wrong, if anything.
  std::string run(bool writes) {
    std::vector<WriteTarget> others(kRandomVis);
    for (std::size_t i = 0; i < kRandomVis; ++i) {
      const WriteTarget mine = ends_[i]->target();
      std::memcpy(messages_.buffer(kRandomVis + i), &mine, sizeof mine);
      VipPostSend(vis_[i], messages_.send(kRandomVis + i, sizeof mine), messages_.handle());
      if (next_received(vis_[i]) == nullptr || next_sent(vis_[i]) == nullptr) return "no message";
      std::memcpy(&others[i], messages_.buffer(i), sizeof mine);
    }
    return writes ? write_all(ends_, vis_, others) : check_all(ends_, vis_, others);
  }

 private:
  const Nic& nic_;
  Memory messages_;
  std::vector<std::unique_ptr<RandomWrites>> ends_;
  std::vector<std::unique_ptr<Vi>> made_;
  std::vector<VIP_VI_HANDLE> vis_;
};

// Does what one client asks for, until it goes. False: it said that it was the last.
bool serve(const Vi& vi, const Memory& in, const Memory& out) {
  for (std::size_t i = 0;; i = (i + 1) % kRegions) {
    VIP_DESCRIPTOR* d;
    if (VipRecvWait(vi, VIP_INFINITE, &d) != VIP_SUCCESS) return true;
    const std::size_t length = d->CS.Length;
    VIP_DESCRIPTOR* reply = nullptr;
    switch (static_cast<char>(in.buffer(i)[0])) {
      case 'k': ::raise(SIGKILL); break;
      case 'b': return false;
      case 'r': {  // "random": as the target of writes; what was wrong
        RandomEnd random(vi.nic());
        random.accept();
        const std::string wrong = random.run(false);
        std::memcpy(out.buffer(0), wrong.data(), wrong.size());
        reply = out.send(0, wrong.size());
        break;
      }
      case 't': {
        const Target target{reinterpret_cast<VIP_UINT64>(in.buffer(kRegions)), in.handle()};
        std::memcpy(out.buffer(0), &target, sizeof(target));
        reply = out.send(0, sizeof(target));
        break;
      }
      default: std::memcpy(out.buffer(0), in.buffer(i), length); reply = out.send(0, length);
    }
    VipPostRecv(vi, in.receive(i, kRegionBytes), in.handle());
    VipPostSend(vi, reply, out.handle());
    if (VipSendWait(vi, VIP_INFINITE, &d) != VIP_SUCCESS) return true;
  }
}

// far NIC: takes one client after the other.
int far(const Arguments& arguments) {
  const Nic nic(arguments.at(0).c_str());
  const Memory in(nic, kRegions + 1, kRegionBytes, memory_attributes(nullptr, true, true));
  const Memory out(nic, 1, kRegionBytes);
  for (;;) {
    const Vi vi(nic, open_to_all());
    for (std::size_t i = 0; i < kRegions; ++i)
      VipPostRecv(vi, in.receive(i, kRegionBytes), in.handle());
    Address local(nic, "far"), remote;
    VIP_VI_ATTRIBUTES attributes;
    VIP_CONN_HANDLE connection;
    if (VipConnectWait(nic, local, VIP_INFINITE, remote, &attributes, &connection) != VIP_SUCCESS ||
        VipConnectAccept(connection, vi) != VIP_SUCCESS)
      continue;
    if (!serve(vi, in, out)) return 0;
  }
}
const Part far_part("far", far);

class TwoHosts : public testing::Test {
 protected:
  static void TearDownTestSuite() {  // the other host has done its part
    TwoHostsClient client;
    client.ask("bye", false);
  }

  struct TwoHostsClient {
    TwoHostsClient() {
      EXPECT_VIP(VIP_SUCCESS, VipNSInit(nic, nullptr));
      VIP_CHAR host[] = "host2";
      EXPECT_VIP(VIP_SUCCESS, VipNSGetHostByName(nic, host, remote, 0));
      EXPECT_VIP(VIP_SUCCESS, VipNSShutdown(nic));
      remote = Address(remote.host(), "far");
      Address local(nic, "near");
      // That host may not have started yet, or its process anew.
      EXPECT_VIP(VIP_SUCCESS, request(vi, local, remote));
    }
    std::string ask(const std::string& text, bool answered = true) {
      say(text, answered);
      return answered ? answer() : std::string{};
    }
    void say(const std::string& text, bool answered) {
      out.fill(0, text);
      if (answered) {
        EXPECT_VIP(VIP_SUCCESS, VipPostRecv(vi, in.receive(0, kRegionBytes), in.handle()));
      }
      EXPECT_VIP(VIP_SUCCESS, VipPostSend(vi, out.send(0, text.size()), out.handle()));
      EXPECT_EQ(out.raw(0), next_sent(vi));
    }
    std::string answer() {
      EXPECT_EQ(in.raw(0), next_received(vi));
      return in.text(0, in.raw(0)->CS.Length);
    }

    Nic nic{kNicNames[0]};
    Address remote;
    Memory in{nic, 2, kRegionBytes}, out{nic, 2, kRegionBytes};
    Vi vi{nic};
  };
  TwoHostsClient client_;
};

TEST_F(TwoHosts, Messages) {
  EXPECT_EQ("hello", client_.ask("hello"));
  std::string longest(kRegionBytes, 'x');
  for (std::size_t i = 0; i < longest.size(); ++i) longest[i] = static_cast<char>('A' + i % 23);
  EXPECT_EQ(longest, client_.ask(longest));
}

TEST_F(TwoHosts, RandomWritesWithFlagsThatThePollerSees) {
  RandomEnd near(client_.nic);
  client_.say("random", true);
  near.request_from(client_.remote.host());
  EXPECT_EQ("", near.run(true));
  EXPECT_EQ("", client_.answer());
}

TEST_F(TwoHosts, RdmaWriteAndRead) {
  Target target;
  const std::string said = client_.ask("target");
  ASSERT_EQ(sizeof(target), said.size());
  std::memcpy(&target, said.data(), sizeof(target));
  const auto there = reinterpret_cast<const void*>(target.address);
  const Memory& out = client_.out;
  for (std::size_t i = 0; i < kRegionBytes; ++i)
    out.buffer(0)[i] = static_cast<std::byte>(i * 11 + i / 99);
  ASSERT_VIP(VIP_SUCCESS,
             VipPostSend(client_.vi,
                         out.rdma(0, kRegionBytes, VIP_CONTROL_OP_RDMAWRITE, there, target.handle),
                         out.handle()));
  ASSERT_VIP(VIP_SUCCESS,
             VipPostSend(client_.vi,
                         out.rdma(1, kRegionBytes, VIP_CONTROL_OP_RDMAREAD, there, target.handle),
                         out.handle()));
  for (std::size_t i = 0; i < 2; ++i) {
    EXPECT_EQ(out.raw(i), next_sent(client_.vi));
    EXPECT_EQ(0u, errors(out.raw(i)));
  }
  EXPECT_EQ(0, std::memcmp(out.buffer(0), out.buffer(1), kRegionBytes));
}

TEST_F(TwoHosts, TheOtherProcessIsKilled) {
  const AsyncErrors reports(client_.nic);
  ASSERT_VIP(VIP_SUCCESS,
             VipPostRecv(client_.vi, client_.in.receive(1, kRegionBytes), client_.in.handle()));
  client_.ask("kill yourself", false);
  EXPECT_TRUE(reports.wait_for(client_.vi, VIP_ERROR_CONN_LOST).has_value());
  EXPECT_EQ(client_.in.raw(1), next_received(client_.vi));
  EXPECT_EQ(VIP_STATUS_DESC_FLUSHED_ERROR, errors(client_.in.raw(1)));
}

TEST_F(TwoHosts, NobodyWaits) {
  const Vi vi(client_.nic);
  Address local(client_.nic, "x"), remote(client_.remote.host(), "nobody");
  VIP_VI_ATTRIBUTES attributes;
  EXPECT_VIP(VIP_NO_MATCH, VipConnectRequest(vi, local, remote, VIP_INFINITE, &attributes));
}

}  // namespace

}  // namespace viaduct::vipl_test
