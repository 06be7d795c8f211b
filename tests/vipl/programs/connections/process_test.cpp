// Two processes and more; what a process leaves behind that is killed; a thousand VIs.
#include <unistd.h>

#include <iomanip>
#include <sstream>
#include <thread>

#include "tests/vipl/programs/support/async_errors.hpp"
#include "tests/vipl/programs/support/bed.hpp"
#include "tests/vipl/programs/support/process.hpp"

namespace viaduct::vipl_test {

namespace {

constexpr std::size_t kSlots = 8, kBytes = 4096;

std::string hex(const Nic& nic) {
  std::ostringstream out;
  for (int i = 0; i < nic.attributes().NicAddressLen; ++i)
    out << std::hex << std::setw(2) << std::setfill('0')
        << static_cast<unsigned>(nic.attributes().LocalNicAddress[i]);
  return out.str();
}
std::vector<VIP_UINT8> from_hex(const std::string& text) {
  std::vector<VIP_UINT8> out;
  for (std::size_t i = 0; i + 1 < text.size(); i += 2)
    out.push_back(static_cast<VIP_UINT8>(std::stoi(text.substr(i, 2), nullptr, 16)));
  return out;
}

VIP_RETURN call(const Vi& vi, VIP_NET_ADDRESS* remote) {
  Address local(vi.nic(), "");
  return request(vi, local, remote);
}

VIP_RETURN accept(const Vi& vi, const std::string& discriminator) {
  Address local(vi.nic(), discriminator), remote;
  VIP_VI_ATTRIBUTES attributes;
  VIP_CONN_HANDLE connection;
  const VIP_RETURN code = VipConnectWait(vi.nic(), local, kSoon, remote, &attributes, &connection);
  return code == VIP_SUCCESS ? VipConnectAccept(connection, vi) : code;
}

// echo NIC DISCRIMINATOR: takes one connection, sends back what comes until it is broken. Says its
// NIC's address, and then what ended it.
int echo(const Arguments& arguments) {
  const Nic nic(arguments.at(0).c_str());
  const Vi vi(nic);
  const Memory in(nic, kSlots, kBytes), out(nic, kSlots, kBytes);
  for (std::size_t i = 0; i < kSlots; ++i) VipPostRecv(vi, in.receive(i, kBytes), in.handle());
  tell(hex(nic));
  const VIP_RETURN code = accept(vi, arguments.at(1));
  tell(name(code));
  if (code != VIP_SUCCESS) return 1;
  for (std::size_t i = 0;; i = (i + 1) % kSlots) {
    VIP_DESCRIPTOR* d;
    if (VipRecvWait(vi, VIP_INFINITE, &d) != VIP_SUCCESS) return 0;
    std::memcpy(out.buffer(i), in.buffer(i), d->CS.Length);
    VipPostSend(vi, out.send(i, d->CS.Length), out.handle());
    VipPostRecv(vi, in.receive(i, kBytes), in.handle());
    if (VipSendWait(vi, VIP_INFINITE, &d) != VIP_SUCCESS) return 0;
  }
}
const Part echo_part("echo", echo);

class Processes : public testing::Test {
 protected:
  void exchange(const Vi& vi, const std::string& text) {
    ASSERT_VIP(VIP_SUCCESS, VipPostRecv(vi, in_.receive(0, kBytes), in_.handle()));
    out_.fill(0, text);
    ASSERT_VIP(VIP_SUCCESS, VipPostSend(vi, out_.send(0, text.size()), out_.handle()));
    ASSERT_EQ(out_.raw(0), next_sent(vi));
    ASSERT_EQ(in_.raw(0), next_received(vi));
    EXPECT_EQ(text, in_.text(0, text.size()));
  }

  Nic nic_{kNicNames[0]};
  Memory out_{nic_, kSlots, kBytes}, in_{nic_, kSlots, kBytes};
};

TEST_F(Processes, Talk) {
  const std::string discriminator = fresh_discriminator();
  Process other("echo", {kNicNames[1], discriminator});
  Address remote(from_hex(other.hear()), discriminator);
  Vi vi(nic_);
  ASSERT_VIP(VIP_SUCCESS, call(vi, remote));
  EXPECT_EQ("VIP_SUCCESS", other.hear());
  for (const char* text : {"one", "two", "three"}) exchange(vi, text);
  vi.end();
  EXPECT_EQ(0, other.wait());
}

// Requests find the process that waits for their discriminator, whichever takes them from the
// network; when that one is killed, the others go on.
TEST_F(Processes, ShareANicAddress) {
  const std::string stem = fresh_discriminator() + ".";
  std::vector<std::unique_ptr<Process>> others;
  std::vector<VIP_UINT8> address;
  const auto start = [&](std::size_t i) {
    others.push_back(
        std::make_unique<Process>("echo", Arguments{kNicNames[1], stem + std::to_string(i)}));
    address = from_hex(others.back()->hear());
  };
  const auto talk = [&](std::size_t i) {
    Vi vi(nic_);
    Address remote(address, stem + std::to_string(i));
    ASSERT_VIP(VIP_SUCCESS, call(vi, remote));
    exchange(vi, "process " + std::to_string(i));
  };
  for (std::size_t i = 0; i < 4; ++i) start(i);
  talk(2);
  others[0]->kill();
  talk(3);
  talk(1);
  start(4);
  talk(4);
  Vi vi(nic_);
  Address dead(address, stem + "0"), local(nic_, "");
  VIP_VI_ATTRIBUTES attributes;
  EXPECT_VIP(VIP_NO_MATCH, VipConnectRequest(vi, local, dead, kSoon, &attributes));
}

// kill -9: the connection is lost at once, what was posted comes back in order.
TEST_F(Processes, TheOtherIsKilled) {
  const AsyncErrors reports(nic_);
  const std::string discriminator = fresh_discriminator();
  Process other("echo", {kNicNames[1], discriminator});
  Address remote(from_hex(other.hear()), discriminator);
  const Vi vi(nic_);
  ASSERT_VIP(VIP_SUCCESS, call(vi, remote));
  exchange(vi, "alive");
  for (std::size_t i = 0; i < kSlots; ++i)
    ASSERT_VIP(VIP_SUCCESS, VipPostRecv(vi, in_.receive(i, kBytes), in_.handle()));
  other.kill();
  const auto report = reports.wait_for(vi, VIP_ERROR_CONN_LOST);
  ASSERT_TRUE(report.has_value());
  EXPECT_EQ(VIP_RESOURCE_VI, report->ResourceCode);
  for (std::size_t i = 0; i < kSlots; ++i) {
    EXPECT_EQ(in_.raw(i), next_received(vi));
    EXPECT_EQ(VIP_STATUS_DESC_FLUSHED_ERROR, errors(in_.raw(i)));
  }
  ASSERT_VIP(VIP_SUCCESS, VipPostSend(vi, out_.send(0, 8), out_.handle()));
  EXPECT_EQ(out_.raw(0), next_sent(vi));
  EXPECT_EQ(VIP_STATUS_DESC_FLUSHED_ERROR, errors(out_.raw(0)));
  EXPECT_EQ(VIP_STATE_ERROR, vi.state());
}

// ... on a NIC that its program drives: no thread sees it, nothing is posted, and the look is told.
TEST(OwnNicProcesses, TheOtherIsKilled) {
  const Nic nic(kNicNames[0]);
  ASSERT_VIP(VIP_SUCCESS, VipNicOwnProgress(nic, VIP_TRUE));
  std::vector<VIP_VI_HANDLE> lost;
  VipErrorCallback(nic, &lost, [](VIP_PVOID context, VIP_ERROR_DESCRIPTOR* error) {
    EXPECT_EQ(VIP_ERROR_CONN_LOST, error->ErrorCode);
    static_cast<std::vector<VIP_VI_HANDLE>*>(context)->push_back(error->ViHandle);
  });
  const std::string discriminator = fresh_discriminator();
  Process other("echo", {kNicNames[1], discriminator});
  Address remote(from_hex(other.hear()), discriminator);
  const Vi vi(nic);
  ASSERT_VIP(VIP_SUCCESS, call(vi, remote));
  EXPECT_EQ("VIP_SUCCESS", other.hear());
  EXPECT_VIP(VIP_NOT_DONE, VipNicProgress(nic));
  EXPECT_TRUE(lost.empty());
  other.kill();
  EXPECT_TRUE(eventually([&] {
    VipNicProgress(nic);
    return !lost.empty();
  }));
  EXPECT_EQ(std::vector<VIP_VI_HANDLE>{vi}, lost);
  EXPECT_EQ(VIP_STATE_ERROR, vi.state());
}

// ... and of what was on its way, everything completes one way or the other.
TEST_F(Processes, TheOtherIsKilledInAStream) {
  const std::string discriminator = fresh_discriminator();
  Process other("echo", {kNicNames[1], discriminator});
  Address remote(from_hex(other.hear()), discriminator);
  const Vi vi(nic_);
  ASSERT_VIP(VIP_SUCCESS, call(vi, remote));
  for (std::size_t i = 0; i < kSlots; ++i)
    ASSERT_VIP(VIP_SUCCESS, VipPostRecv(vi, in_.receive(i, kBytes), in_.handle()));
  std::size_t posted = 0, completed = 0;
  const auto post = [&] {
    ASSERT_VIP(VIP_SUCCESS, VipPostSend(vi, out_.send(posted++ % kSlots, kBytes), out_.handle()));
  };
  for (std::size_t i = 0; i < kSlots / 2; ++i) post();
  for (bool failed = false; completed < posted;) {
    if (completed == 20) other.kill();
    VIP_DESCRIPTOR* const d = next_sent(vi);
    ASSERT_EQ(out_.raw(completed++ % kSlots), d);
    failed = failed || errors(d) != 0;
    EXPECT_EQ(failed, errors(d) != 0);  // nothing is executed behind the first that failed
    if (failed) continue;
    ASSERT_LT(completed, 100'000u);
    // One that has come back makes room for the next.
    VIP_DESCRIPTOR* r = nullptr;
    if (VipRecvWait(vi, kSoon, &r) != VIP_SUCCESS) continue;
    ASSERT_VIP(VIP_SUCCESS, VipPostRecv(vi, r, in_.handle()));
    post();
  }
  EXPECT_GE(completed, 20u);
}

// Of the size that a program asks for which has a thousand.
std::unique_ptr<Vi> one_of_many(const Nic& nic, VIP_CQ_HANDLE receives = nullptr) {
  auto vi = std::make_unique<Vi>(nic, vi_attributes(), nullptr, receives);
  EXPECT_VIP(VIP_SUCCESS, VipSetViCapacity(*vi, 15, 15, 4));
  return vi;
}

// peers NIC COUNT STEM ADDRESS: asks for that many connections at once, says how it went.
int many_peers(const Arguments& arguments) {
  const Nic nic(arguments.at(0).c_str());
  const std::size_t count = std::stoul(arguments.at(1));
  tell(hex(nic));
  const std::vector<VIP_UINT8> other = from_hex(arguments.at(3));
  std::vector<std::unique_ptr<Vi>> vis;
  for (std::size_t i = 0; i < count; ++i) {
    const std::string discriminator = arguments.at(2) + std::to_string(i);
    Address local(nic, discriminator), remote(other, discriminator);
    vis.push_back(one_of_many(nic));
    if (VipConnectPeerRequest(*vis.back(), local, remote, 10 * kSoon) != VIP_SUCCESS) return 1;
  }
  for (const auto& vi : vis) {
    VIP_VI_ATTRIBUTES attributes;
    const VIP_RETURN code = VipConnectPeerWait(*vi, &attributes);
    if (code != VIP_SUCCESS) {
      tell(name(code));
      return 1;
    }
  }
  tell("connected");
  hear();
  return testing::Test::HasFailure() ? 1 : 0;
}
const Part many_peers_part("peers", many_peers);

TEST_F(Processes, AThousandVisByPeerRequests) {
  constexpr std::size_t kVis = 1000;
  const std::string stem = fresh_discriminator() + ".";
  Process other("peers", {kNicNames[1], std::to_string(kVis), stem, hex(nic_)});
  const std::vector<VIP_UINT8> address = from_hex(other.hear());
  std::vector<std::unique_ptr<Vi>> vis;
  for (std::size_t i = 0; i < kVis; ++i) {
    const std::string discriminator = stem + std::to_string(i);
    Address local(nic_, discriminator), remote(address, discriminator);
    vis.push_back(one_of_many(nic_));
    ASSERT_VIP(VIP_SUCCESS, VipConnectPeerRequest(*vis.back(), local, remote, 10 * kSoon));
  }
  for (const auto& vi : vis) {
    VIP_VI_ATTRIBUTES attributes;
    ASSERT_VIP(VIP_SUCCESS, VipConnectPeerWait(*vi, &attributes));
  }
  EXPECT_EQ("connected", other.hear());
  other.tell("enough");
  EXPECT_EQ(0, other.wait());
}

// Both ends in this process: two thousand VIs, connected one after the other, and a message on
// each.
TEST_F(Processes, AThousandVisByClientAndServer) {
  constexpr std::size_t kVis = 1000;
  const Nic there(kNicNames[1]);
  const Memory in(there, 1, 64);
  const Cq cq(there, 16);
  const std::string discriminator = fresh_discriminator();
  std::vector<std::unique_ptr<Vi>> clients, servers;
  for (std::size_t i = 0; i < kVis; ++i) {
    clients.push_back(one_of_many(nic_));
    servers.push_back(one_of_many(there, cq));
  }
  std::thread accepting([&] {
    for (const auto& server : servers) EXPECT_VIP(VIP_SUCCESS, accept(*server, discriminator));
  });
  Address remote(there, discriminator);
  for (const auto& client : clients) EXPECT_VIP(VIP_SUCCESS, call(*client, remote));
  accepting.join();
  for (std::size_t i = 0; i < kVis; ++i) {
    ASSERT_VIP(VIP_SUCCESS, VipPostRecv(*servers[i], in.receive(0, 64), in.handle()));
    ASSERT_VIP(VIP_SUCCESS, VipPostSend(*clients[i], out_.send(0, 8), out_.handle()));
    ASSERT_EQ(out_.raw(0), next_sent(*clients[i]));
    ASSERT_EQ((Entry{*servers[i], true}), next_entry(cq));
    VIP_DESCRIPTOR* d = nullptr;
    ASSERT_VIP(VIP_SUCCESS, VipRecvDone(*servers[i], &d));
  }
}

}  // namespace

}  // namespace viaduct::vipl_test
