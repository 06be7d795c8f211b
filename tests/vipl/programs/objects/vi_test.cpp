// Making, asking, changing and destroying VIs.
#include <fstream>
#include <iostream>
#include <utility>

#include "tests/vipl/programs/support/bed.hpp"

namespace viaduct::vipl_test {

namespace {

class ViTest : public testing::Test {
 protected:
  VIP_RETURN create(VIP_VI_ATTRIBUTES attributes, VIP_CQ_HANDLE send = nullptr,
                    VIP_CQ_HANDLE receive = nullptr) {
    VIP_VI_HANDLE vi = nullptr;
    const VIP_RETURN code = VipCreateVi(nic_, &attributes, send, receive, &vi);
    if (code == VIP_SUCCESS) {
      EXPECT_VIP(VIP_SUCCESS, VipDestroyVi(vi));
    }
    return code;
  }
  Nic nic_{kNicNames[0]};
};

TEST_F(ViTest, EveryCombinationOfCompletionQueues) {
  const Cq one(nic_, 64), two(nic_, 64);
  for (const VIP_CQ_HANDLE send : {VIP_CQ_HANDLE{}, static_cast<VIP_CQ_HANDLE>(one)})
    for (const VIP_CQ_HANDLE receive :
         {VIP_CQ_HANDLE{}, static_cast<VIP_CQ_HANDLE>(one), static_cast<VIP_CQ_HANDLE>(two)})
      EXPECT_VIP(VIP_SUCCESS, create(vi_attributes(), send, receive));
}

// In kilobytes.
long free_memory() {
  std::ifstream file("/proc/meminfo");
  for (std::string word; file >> word;)
    if (long kilobytes = 0; word == "MemAvailable:" && file >> kilobytes) return kilobytes;
  return 0;
}

// What VIs cost, in kilobytes and microseconds each.
struct Cost {
  long memory;
  double time;
};
template <class Make>
Cost cost_of(std::size_t vis, Make make) {
  const long before = free_memory();
  const auto start = std::chrono::steady_clock::now();
  make();
  const std::chrono::duration<double, std::micro> took = std::chrono::steady_clock::now() - start;
  return {(before - free_memory()) / static_cast<long>(vis), took.count() / double(vis)};
}

// Programs make VIs for all whom they may talk to. What the device has for a VI is made when it
// is connected.
TEST_F(ViTest, CostsLittleUntilItIsConnected) {
  constexpr std::size_t kVis = 400;
  constexpr long kMax = 64;  // KB
  std::vector<std::unique_ptr<Vi>> vis;
  const Cost cost = cost_of(kVis, [&] {
    for (std::size_t i = 0; i < kVis; ++i) vis.push_back(std::make_unique<Vi>(nic_));
  });
  std::cout << "a VI: " << cost.memory << " KB, " << cost.time << " us\n";
  EXPECT_LE(cost.memory, kMax);
}

// ... as large as the program has asked for.
TEST_F(ViTest, ConnectedCostsWhatWasAskedFor) {
  const Nic other(kNicNames[1]);
  std::vector<std::unique_ptr<Vi>> all;  // they stay: their memory is nobody else's
  const auto connected = [&](std::size_t pairs, const char* name, auto prepare) {
    const std::size_t first = all.size();
    for (std::size_t i = 0; i < pairs; ++i)
      for (const Nic* const nic : {&std::as_const(nic_), &other})
        prepare(*all.emplace_back(new Vi(*nic)));
    const Cost cost = cost_of(2 * pairs, [&] {
      for (std::size_t i = first; i < all.size(); i += 2) connect(*all[i], *all[i + 1]);
    });
    std::cout << "a connected VI, " << name << ": " << cost.memory << " KB, " << cost.time
              << " us\n";
    return cost.memory;
  };
  const auto of = [](VIP_ULONG descriptors, VIP_ULONG segments) {
    return [=](const Vi& vi) {
      EXPECT_VIP(VIP_SUCCESS, VipSetViCapacity(vi, descriptors, descriptors, segments));
    };
  };
  // Many, because the rest of the system does not stand still meanwhile.
  EXPECT_LE(connected(100, "15 descriptors of 4 segments", of(15, 4)), 64);
  EXPECT_LE(connected(100, "16 descriptors of 3 segments", of(16, 3)), 64);
  connected(20, "31 descriptors of 8 segments", of(31, 8));
  connected(20, "255 descriptors of 32 segments", of(255, 32));
  connected(20, "default", [](const Vi&) {});
}

// The device keeps to it as well: the last place of a queue is there, the next one is not.
TEST_F(ViTest, Capacity) {
  const Nic other(kNicNames[1]);
  const Vi client(nic_), server(other);
  EXPECT_VIP(VIP_INVALID_PARAMETER, VipSetViCapacity(no_handle(), 1, 1, 1));
  EXPECT_VIP(VIP_INVALID_PARAMETER, VipSetViCapacity(client, 0, 1, 1));
  EXPECT_VIP(VIP_ERROR_RESOURCE,
             VipSetViCapacity(client, nic_.attributes().MaxDescriptorsPerQueue + 1, 1, 1));
  ASSERT_VIP(VIP_SUCCESS, VipSetViCapacity(client, 3, 1, 2));
  ASSERT_VIP(VIP_SUCCESS, VipSetViCapacity(server, 1, 5, 1));
  const Memory out(nic_, 4, 64), in(other, 6, 64, memory_attributes(nullptr, true));
  for (std::size_t i = 0; i < 5; ++i)
    ASSERT_VIP(VIP_SUCCESS, VipPostRecv(server, in.receive(i, 64), in.handle()));
  EXPECT_VIP(VIP_ERROR_RESOURCE, VipPostRecv(server, in.receive(5, 64), in.handle()));
  EXPECT_VIP(VIP_INVALID_STATE, VipSetViCapacity(server, 8, 8, 1));
  connect(client, server);
  EXPECT_VIP(VIP_INVALID_STATE, VipSetViCapacity(client, 8, 8, 1));
  for (std::size_t i = 0; i < 3; ++i)
    ASSERT_VIP(VIP_SUCCESS, VipPostSend(client, out.send(i, 8), out.handle()));
  EXPECT_VIP(VIP_ERROR_RESOURCE, VipPostSend(client, out.send(3, 8), out.handle()));
  for (std::size_t i = 0; i < 3; ++i) ASSERT_EQ(out.raw(i), next_sent(client));
  for (std::size_t i = 0; i < 2; ++i)
    ASSERT_VIP(VIP_SUCCESS, VipPostSend(client, out.send(i, 8), out.handle()));
  for (std::size_t i = 0; i < 5; ++i) {
    ASSERT_EQ(in.raw(i), next_received(server));
    EXPECT_EQ(0u, errors(in.raw(i)));
  }
}

TEST_F(ViTest, ReliabilityLevels) {
  for (const VIP_RELIABILITY_LEVEL good :
       {VIP_SERVICE_UNRELIABLE, VIP_SERVICE_RELIABLE_DELIVERY, VIP_SERVICE_RELIABLE_RECEPTION})
    EXPECT_VIP(VIP_SUCCESS, create(vi_attributes(good)));
  for (const VIP_RELIABILITY_LEVEL bad : {0, 3, 7, 8})
    EXPECT_VIP(VIP_INVALID_RELIABILITY_LEVEL, create(vi_attributes(bad)));
}

TEST_F(ViTest, TransferSizes) {
  VIP_VI_ATTRIBUTES a = vi_attributes();
  for (const VIP_ULONG size : {VIP_ULONG{1}, VIP_ULONG{32000}, nic_.attributes().MaxTransferSize}) {
    a.MaxTransferSize = size;
    EXPECT_VIP(VIP_SUCCESS, create(a)) << size;
  }
  a.MaxTransferSize = nic_.attributes().MaxTransferSize + 1;
  EXPECT_VIP(VIP_INVALID_MTU, create(a));
}

TEST_F(ViTest, RdmaReadNeedsAReliableLevel) {
  VIP_VI_ATTRIBUTES a = vi_attributes();
  a.EnableRdmaWrite = a.EnableRdmaRead = VIP_TRUE;
  EXPECT_VIP(VIP_SUCCESS, create(a));
  a.ReliabilityLevel = VIP_SERVICE_UNRELIABLE;
  EXPECT_VIP(VIP_INVALID_RDMAREAD, create(a));
}

TEST_F(ViTest, BadParameters) {
  VIP_VI_ATTRIBUTES a = vi_attributes();
  VIP_VI_HANDLE vi;
  EXPECT_VIP(VIP_INVALID_PARAMETER, VipCreateVi(no_handle(), &a, nullptr, nullptr, &vi));
  EXPECT_VIP(VIP_INVALID_PARAMETER, VipCreateVi(nic_, nullptr, nullptr, nullptr, &vi));
  EXPECT_VIP(VIP_INVALID_PARAMETER, VipCreateVi(nic_, &a, nullptr, nullptr, nullptr));
  EXPECT_VIP(VIP_INVALID_PARAMETER, create(a, no_handle(), nullptr));
  EXPECT_VIP(VIP_INVALID_PARAMETER, create(a, nullptr, no_handle()));
  EXPECT_VIP(VIP_INVALID_PTAG, create(vi_attributes(VIP_SERVICE_RELIABLE_DELIVERY, no_handle())));
  const Nic other(kNicNames[1]);
  const Cq others_cq(other, 16);
  const Ptag others_ptag(other);
  EXPECT_VIP(VIP_INVALID_PARAMETER, create(a, others_cq, nullptr));
  EXPECT_VIP(VIP_INVALID_PTAG, create(vi_attributes(VIP_SERVICE_RELIABLE_DELIVERY, others_ptag)));
}

TEST_F(ViTest, BadHandles) {
  VIP_VI_HANDLE freed;
  VIP_VI_ATTRIBUTES a = vi_attributes();
  ASSERT_VIP(VIP_SUCCESS, VipCreateVi(nic_, &a, nullptr, nullptr, &freed));
  ASSERT_VIP(VIP_SUCCESS, VipDestroyVi(freed));
  const Cq cq(nic_, 4);  // a handle, but of something else
  const Memory memory(nic_, 1, 64);
  VIP_VI_STATE state;
  VIP_BOOLEAN empty;
  VIP_DESCRIPTOR* d;
  for (const VIP_VI_HANDLE bad :
       {VIP_VI_HANDLE{}, no_handle(), freed, static_cast<VIP_VI_HANDLE>(cq),
        static_cast<VIP_VI_HANDLE>(nic_)}) {
    EXPECT_VIP(VIP_INVALID_PARAMETER, VipQueryVi(bad, &state, &a, &empty, &empty));
    EXPECT_VIP(VIP_INVALID_PARAMETER, VipSetViAttributes(bad, &a));
    EXPECT_VIP(VIP_INVALID_PARAMETER, VipDestroyVi(bad));
    EXPECT_VIP(VIP_INVALID_PARAMETER, VipDisconnect(bad));
    EXPECT_VIP(VIP_INVALID_PARAMETER, VipPostSend(bad, memory.send(0, 8), memory.handle()));
    EXPECT_VIP(VIP_INVALID_PARAMETER, VipPostRecv(bad, memory.receive(0, 8), memory.handle()));
    d = memory.raw(0);
    EXPECT_VIP(VIP_INVALID_PARAMETER, VipSendDone(bad, &d));
    EXPECT_VIP(VIP_INVALID_PARAMETER, VipRecvDone(bad, &d));
    EXPECT_VIP(VIP_INVALID_PARAMETER, VipSendWait(bad, kMoment, &d));
    EXPECT_VIP(VIP_INVALID_PARAMETER, VipRecvWait(bad, kMoment, &d));
    EXPECT_EQ(nullptr, d);  // written on every return: programs loop on it
    EXPECT_VIP(VIP_INVALID_PARAMETER, VipSendNotify(bad, nullptr, nullptr));
    EXPECT_VIP(VIP_INVALID_PARAMETER, VipRecvNotify(bad, nullptr, nullptr));
    EXPECT_EQ(nullptr, VipGetUserData(bad));
    VipSetUserData(bad, &d);
  }
}

TEST_F(ViTest, Query) {
  const Ptag ptag(nic_);
  const Memory memory(nic_, 2, 64, memory_attributes(ptag));
  VIP_VI_ATTRIBUTES wanted = vi_attributes(VIP_SERVICE_RELIABLE_RECEPTION, ptag);
  wanted.MaxTransferSize = 32000;
  wanted.EnableRdmaWrite = VIP_TRUE;
  const Vi vi(nic_, wanted);
  VIP_VI_STATE state = VIP_STATE_ERROR;
  VIP_VI_ATTRIBUTES seen{};
  VIP_BOOLEAN send_empty = VIP_FALSE, receive_empty = VIP_FALSE;
  ASSERT_VIP(VIP_SUCCESS, VipQueryVi(vi, &state, &seen, &send_empty, &receive_empty));
  EXPECT_EQ(VIP_STATE_IDLE, state);
  EXPECT_EQ(wanted.ReliabilityLevel, seen.ReliabilityLevel);
  EXPECT_EQ(wanted.MaxTransferSize, seen.MaxTransferSize);
  EXPECT_EQ(wanted.QoS, seen.QoS);
  EXPECT_EQ(wanted.Ptag, seen.Ptag);
  EXPECT_EQ(VIP_TRUE, seen.EnableRdmaWrite);
  EXPECT_EQ(VIP_FALSE, seen.EnableRdmaRead);
  EXPECT_EQ(VIP_TRUE, send_empty);
  EXPECT_EQ(VIP_TRUE, receive_empty);
  ASSERT_VIP(VIP_SUCCESS, VipPostRecv(vi, memory.receive(0, 64), memory.handle()));
  ASSERT_VIP(VIP_SUCCESS, VipQueryVi(vi, &state, &seen, &send_empty, &receive_empty));
  EXPECT_EQ(VIP_TRUE, send_empty);
  EXPECT_EQ(VIP_FALSE, receive_empty);
  // A program asks for what it wants to know.
  EXPECT_VIP(VIP_SUCCESS, VipQueryVi(vi, &state, nullptr, nullptr, nullptr));
}

TEST_F(ViTest, SetAttributes) {
  const Ptag ptag(nic_);
  const Vi vi(nic_);
  VIP_VI_ATTRIBUTES wanted = vi_attributes(VIP_SERVICE_UNRELIABLE, ptag), seen{};
  wanted.MaxTransferSize = 1234;
  wanted.EnableRdmaWrite = VIP_TRUE;
  ASSERT_VIP(VIP_SUCCESS, VipSetViAttributes(vi, &wanted));
  VIP_VI_STATE state;
  VIP_BOOLEAN empty;
  ASSERT_VIP(VIP_SUCCESS, VipQueryVi(vi, &state, &seen, &empty, &empty));
  EXPECT_EQ(wanted.ReliabilityLevel, seen.ReliabilityLevel);
  EXPECT_EQ(wanted.MaxTransferSize, seen.MaxTransferSize);
  EXPECT_EQ(wanted.Ptag, seen.Ptag);
  EXPECT_EQ(wanted.EnableRdmaWrite, seen.EnableRdmaWrite);

  EXPECT_VIP(VIP_INVALID_PARAMETER, VipSetViAttributes(vi, nullptr));
  VIP_VI_ATTRIBUTES bad = wanted;
  bad.ReliabilityLevel = 0;
  EXPECT_VIP(VIP_INVALID_RELIABILITY_LEVEL, VipSetViAttributes(vi, &bad));
  bad = wanted;
  bad.MaxTransferSize = nic_.attributes().MaxTransferSize + 1;
  EXPECT_VIP(VIP_INVALID_MTU, VipSetViAttributes(vi, &bad));
  bad = wanted;
  bad.Ptag = no_handle();
  EXPECT_VIP(VIP_INVALID_PTAG, VipSetViAttributes(vi, &bad));
  bad = wanted;
  bad.EnableRdmaRead = VIP_TRUE;
  EXPECT_VIP(VIP_INVALID_RDMAREAD, VipSetViAttributes(vi, &bad));
}

// What was refused above has changed nothing, and what was set is what connects: a client whose
// level was changed matches a server of the new one.
TEST_F(ViTest, SetAttributesBeforeConnecting) {
  const Nic other(kNicNames[1]);
  const Vi client(nic_), server(other, vi_attributes(VIP_SERVICE_UNRELIABLE));
  VIP_VI_ATTRIBUTES wanted = vi_attributes(VIP_SERVICE_UNRELIABLE);
  ASSERT_VIP(VIP_SUCCESS, VipSetViAttributes(client, &wanted));
  connect(client, server);
  EXPECT_VIP(VIP_INVALID_STATE, VipSetViAttributes(client, &wanted));
  EXPECT_VIP(VIP_SUCCESS, VipDisconnect(client));
  EXPECT_VIP(VIP_SUCCESS, VipSetViAttributes(client, &wanted));
}

TEST_F(ViTest, DestroyOnlyWhenIdle) {
  const Nic other(kNicNames[1]);
  VIP_VI_ATTRIBUTES attributes = vi_attributes();
  VIP_VI_HANDLE handle;
  ASSERT_VIP(VIP_SUCCESS, VipCreateVi(nic_, &attributes, nullptr, nullptr, &handle));
  EXPECT_VIP(VIP_SUCCESS, VipDestroyVi(handle));
  Vi client(nic_), server(other);
  connect(client, server);
  EXPECT_VIP(VIP_INVALID_STATE, VipDestroyVi(client));
  server.end();
  EXPECT_TRUE(eventually([&] { return client.state() == VIP_STATE_ERROR; }));
  EXPECT_VIP(VIP_INVALID_STATE, VipDestroyVi(client));
  EXPECT_VIP(VIP_SUCCESS, VipDisconnect(client));
  EXPECT_EQ(VIP_STATE_IDLE, client.state());
}

// MPL and PM2 destroy without draining and do not look at the code.
TEST_F(ViTest, DestroyWithoutDraining) {
  const Memory memory(nic_, 4, 64);
  const Cq cq(nic_, 16);
  for (const VIP_CQ_HANDLE receive_cq : {VIP_CQ_HANDLE{}, static_cast<VIP_CQ_HANDLE>(cq)}) {
    VIP_VI_ATTRIBUTES attributes = vi_attributes();
    VIP_VI_HANDLE vi;
    ASSERT_VIP(VIP_SUCCESS, VipCreateVi(nic_, &attributes, nullptr, receive_cq, &vi));
    for (std::size_t i = 0; i < 4; ++i)
      ASSERT_VIP(VIP_SUCCESS, VipPostRecv(vi, memory.receive(i, 64), memory.handle()));
    EXPECT_VIP(VIP_SUCCESS, VipDestroyVi(vi));
    EXPECT_VIP(VIP_INVALID_PARAMETER, VipDestroyVi(vi));
  }
  // The CQ names no VI that is gone.
  EXPECT_EQ(std::nullopt, next_entry(cq, kMoment));
}

TEST_F(ViTest, UserData) {
  const Vi one(nic_), two(nic_);
  EXPECT_EQ(nullptr, VipGetUserData(one));
  int word = 0;
  VipSetUserData(one, &word);
  EXPECT_EQ(&word, VipGetUserData(one));
  EXPECT_EQ(nullptr, VipGetUserData(two));
}

}  // namespace

}  // namespace viaduct::vipl_test
