// Completion queues.
#include <thread>

#include "tests/vipl/programs/support/bed.hpp"

namespace viaduct::vipl_test {

namespace {

class CqTest : public PairTest {
 protected:
  static constexpr std::size_t kCount = 16, kBytes = 256;

  void post_receives(const Vi& vi, std::size_t count) {
    for (std::size_t i = 0; i < count; ++i)
      ASSERT_VIP(VIP_SUCCESS, VipPostRecv(vi, in_.receive(i, kBytes), in_.handle()));
  }
  void post_sends(const Vi& vi, std::size_t count) {
    for (std::size_t i = 0; i < count; ++i)
      ASSERT_VIP(VIP_SUCCESS, VipPostSend(vi, out_.send(i, 8), out_.handle()));
  }
  VIP_DESCRIPTOR* take(const Entry& entry) {
    VIP_DESCRIPTOR* d = nullptr;
    // No gap: the descriptor is done before its entry can be seen.
    const VIP_RETURN code = entry.receive ? VipRecvDone(entry.vi, &d) : VipSendDone(entry.vi, &d);
    EXPECT_TRUE(code == VIP_SUCCESS || code == VIP_DESCRIPTOR_ERROR) << name(code);
    EXPECT_NE(nullptr, d);
    return d;
  }

  Memory out_{a_, kCount, kBytes}, in_{b_, kCount, kBytes};
};

TEST_F(CqTest, MakingAndDestroying) {
  VIP_CQ_HANDLE cq;
  ASSERT_VIP(VIP_SUCCESS, VipCreateCQ(a_, 1, &cq));
  VIP_VI_HANDLE vi;
  VIP_BOOLEAN receive;
  EXPECT_VIP(VIP_NOT_DONE, VipCQDone(cq, &vi, &receive));
  EXPECT_VIP(VIP_INVALID_PARAMETER, VipCQDone(cq, nullptr, &receive));
  EXPECT_VIP(VIP_INVALID_PARAMETER, VipCQDone(cq, &vi, nullptr));
  EXPECT_VIP(VIP_SUCCESS, VipDestroyCQ(cq));
  const Vi other(a_);
  for (const VIP_CQ_HANDLE bad :
       {VIP_CQ_HANDLE{}, no_handle(), cq, static_cast<VIP_CQ_HANDLE>(other)}) {
    EXPECT_VIP(VIP_INVALID_PARAMETER, VipDestroyCQ(bad));
    EXPECT_VIP(VIP_INVALID_PARAMETER, VipResizeCQ(bad, 10));
    EXPECT_VIP(VIP_INVALID_PARAMETER, VipCQDone(bad, &vi, &receive));
    EXPECT_VIP(VIP_INVALID_PARAMETER, VipCQWait(bad, kMoment, &vi, &receive));
    EXPECT_VIP(VIP_INVALID_PARAMETER, VipCQNotify(bad, nullptr, nullptr));
  }
  EXPECT_VIP(VIP_INVALID_PARAMETER, VipCreateCQ(no_handle(), 10, &cq));
  EXPECT_VIP(VIP_INVALID_PARAMETER, VipCreateCQ(a_, 10, nullptr));
  EXPECT_VIP(VIP_INVALID_PARAMETER, VipCreateCQ(a_, 0, &cq));
  const VIP_RETURN code = VipCreateCQ(a_, a_.attributes().MaxCQEntries + 1, &cq);
  EXPECT_TRUE(code == VIP_ERROR_RESOURCE || code == VIP_INVALID_PARAMETER) << name(code);
}

TEST_F(CqTest, StaysWhileAViUsesIt) {
  VIP_CQ_HANDLE cq;
  ASSERT_VIP(VIP_SUCCESS, VipCreateCQ(a_, 16, &cq));
  {
    const Vi sends(a_, vi_attributes(), cq, nullptr);
    EXPECT_VIP(VIP_ERROR_RESOURCE, VipDestroyCQ(cq));
  }
  {
    const Vi receives(a_, vi_attributes(), nullptr, cq);
    EXPECT_VIP(VIP_ERROR_RESOURCE, VipDestroyCQ(cq));
  }
  EXPECT_VIP(VIP_SUCCESS, VipDestroyCQ(cq));
}

TEST_F(CqTest, WaitReturns) {
  const Cq cq(a_, 4);
  VIP_VI_HANDLE vi;
  VIP_BOOLEAN receive;
  const auto start = std::chrono::steady_clock::now();
  EXPECT_VIP(VIP_TIMEOUT, VipCQWait(cq, 1, &vi, &receive));
  EXPECT_VIP(VIP_TIMEOUT, VipCQWait(cq, 0, &vi, &receive));
  EXPECT_VIP(VIP_TIMEOUT, VipCQWait(cq, 200, &vi, &receive));
  EXPECT_GE(std::chrono::steady_clock::now() - start, std::chrono::milliseconds{200});
  EXPECT_VIP(VIP_INVALID_PARAMETER, VipCQWait(cq, kMoment, nullptr, &receive));
  EXPECT_VIP(VIP_INVALID_PARAMETER, VipCQWait(cq, kMoment, &vi, nullptr));
}

// One entry for each descriptor that can complete, not one more (Iometer, ARMCI).
TEST_F(CqTest, ExactlyAsManyEntriesAsDescriptors) {
  const Cq sent(a_, kCount), received(b_, kCount);
  const Vi client(a_, vi_attributes(), sent, nullptr),
      server(b_, vi_attributes(), nullptr, received);
  post_receives(server, kCount);
  connect(client, server);
  for (int round = 0; round < 3; ++round) {
    if (round > 0) post_receives(server, kCount);
    post_sends(client, kCount);
    std::this_thread::sleep_for(std::chrono::milliseconds{kMoment});  // all of them are there
    for (std::size_t i = 0; i < kCount; ++i) {
      const auto out = next_entry(sent), in = next_entry(received);
      ASSERT_EQ((Entry{client, false}), out);
      ASSERT_EQ((Entry{server, true}), in);
      ASSERT_EQ(out_.raw(i), take(*out));
      ASSERT_EQ(in_.raw(i), take(*in));
    }
    EXPECT_EQ(std::nullopt, next_entry(sent, 0));
    EXPECT_EQ(std::nullopt, next_entry(received, 0));
  }
}

// Both queues of a VI on one CQ, and those of several VIs.
TEST_F(CqTest, SharedByEverything) {
  constexpr std::size_t kVis = 3;
  const Cq cq(b_, 6 * kVis);
  std::vector<std::unique_ptr<Vi>> clients, servers;
  const Memory back(b_, kVis, 64), from(a_, kVis, 64);
  for (std::size_t i = 0; i < kVis; ++i) {
    clients.push_back(std::make_unique<Vi>(a_));
    servers.push_back(std::make_unique<Vi>(b_, vi_attributes(), cq, cq));
    ASSERT_VIP(VIP_SUCCESS, VipPostRecv(*servers[i], in_.receive(i, kBytes), in_.handle()));
    ASSERT_VIP(VIP_SUCCESS, VipPostRecv(*clients[i], from.receive(i, 64), from.handle()));
    connect(*clients[i], *servers[i]);
  }
  std::vector<int> sends(kVis), receives(kVis);
  for (std::size_t i = 0; i < kVis; ++i) {
    ASSERT_VIP(VIP_SUCCESS, VipPostSend(*clients[i], out_.send(i, 8), out_.handle()));
    ASSERT_VIP(VIP_SUCCESS, VipPostSend(*servers[i], back.send(i, 8), back.handle()));
  }
  for (std::size_t n = 0; n < 2 * kVis; ++n) {
    const auto entry = next_entry(cq);
    ASSERT_TRUE(entry.has_value());
    std::size_t i = 0;
    while (i < kVis && *servers[i] != entry->vi) ++i;
    ASSERT_LT(i, kVis);
    EXPECT_EQ(entry->receive ? in_.raw(i) : back.raw(i), take(*entry));
    ++(entry->receive ? receives : sends)[i];
  }
  EXPECT_EQ(std::vector<int>(kVis, 1), sends);
  EXPECT_EQ(std::vector<int>(kVis, 1), receives);
}

// More than it has entries for: it grows, nothing is lost.
TEST_F(CqTest, NothingIsDropped) {
  const Cq cq(b_, 2);
  const Vi client(a_), server(b_, vi_attributes(), nullptr, cq);
  post_receives(server, kCount);
  connect(client, server);
  post_sends(client, kCount);
  for (std::size_t i = 0; i < kCount; ++i) ASSERT_EQ(out_.raw(i), next_sent(client));
  for (std::size_t i = 0; i < kCount; ++i) {
    const auto entry = next_entry(cq);
    ASSERT_EQ((Entry{server, true}), entry);
    ASSERT_EQ(in_.raw(i), take(*entry));
  }
}

// NT enlarges its CQ with each connection.
TEST_F(CqTest, ResizedWhileInUse) {
  const Cq cq(b_, 2);
  const Vi client(a_), server(b_, vi_attributes(), nullptr, cq);
  post_receives(server, kCount);
  connect(client, server);
  std::size_t taken = 0;
  post_sends(client, kCount);
  for (const VIP_ULONG entries : {VIP_ULONG{kCount}, VIP_ULONG{500}, VIP_ULONG{4 * kCount}}) {
    EXPECT_VIP(VIP_SUCCESS, VipResizeCQ(cq, entries));
    for (int n = 0; n < 4; ++n, ++taken) {
      const auto entry = next_entry(cq);
      ASSERT_EQ((Entry{server, true}), entry);
      ASSERT_EQ(in_.raw(taken), take(*entry));
    }
  }
  // Never below what is in use.
  const VIP_RETURN code = VipResizeCQ(cq, 1);
  EXPECT_TRUE(code == VIP_SUCCESS || code == VIP_ERROR_RESOURCE) << name(code);
  for (; taken < kCount; ++taken) {
    const auto entry = next_entry(cq);
    ASSERT_EQ((Entry{server, true}), entry);
    ASSERT_EQ(in_.raw(taken), take(*entry));
  }
  EXPECT_VIP(VIP_INVALID_PARAMETER, VipResizeCQ(cq, 0));
  const VIP_RETURN too_many = VipResizeCQ(cq, b_.attributes().MaxCQEntries + 1);
  EXPECT_TRUE(too_many == VIP_ERROR_RESOURCE || too_many == VIP_INVALID_PARAMETER)
      << name(too_many);
}

TEST_F(CqTest, WaitIsWoken) {
  const Cq cq(b_, kCount);
  const Vi client(a_), server(b_, vi_attributes(), nullptr, cq);
  post_receives(server, 1);
  connect(client, server);
  std::thread waiting([&] {
    VIP_VI_HANDLE vi;
    VIP_BOOLEAN receive;
    EXPECT_VIP(VIP_SUCCESS, VipCQWait(cq, VIP_INFINITE, &vi, &receive));
    EXPECT_EQ(static_cast<VIP_VI_HANDLE>(server), vi);
    EXPECT_EQ(VIP_TRUE, receive);
  });
  std::this_thread::sleep_for(std::chrono::milliseconds{kMoment});
  post_sends(client, 1);
  waiting.join();
  EXPECT_EQ(out_.raw(0), next_sent(client));
}

// Flushed descriptors have entries too.
TEST_F(CqTest, FlushedDescriptorsAreNamed) {
  const Cq cq(b_, kCount);
  const Vi client(a_), server(b_, vi_attributes(), cq, cq);
  post_receives(server, 3);
  connect(client, server);
  EXPECT_VIP(VIP_SUCCESS, VipDisconnect(client));
  for (std::size_t i = 0; i < 3; ++i) {
    const auto entry = next_entry(cq);
    ASSERT_EQ((Entry{server, true}), entry);
    ASSERT_EQ(in_.raw(i), take(*entry));
    EXPECT_EQ(VIP_STATUS_DESC_FLUSHED_ERROR, errors(in_.raw(i)));
  }
  ASSERT_VIP(VIP_SUCCESS, VipPostSend(server, in_.send(0, 8), in_.handle()));
  const auto entry = next_entry(cq);
  ASSERT_EQ((Entry{server, false}), entry);
  EXPECT_EQ(in_.raw(0), take(*entry));
}

// A queue with a CQ can be waited for itself as well. Its entry then names a queue that is empty.
TEST_F(CqTest, WaitOnAQueueThatHasOne) {
  const Cq cq(b_, kCount);
  const Vi client(a_), server(b_, vi_attributes(), nullptr, cq);
  post_receives(server, 1);
  connect(client, server);
  post_sends(client, 1);
  EXPECT_EQ(in_.raw(0), next_received(server));
  EXPECT_EQ(out_.raw(0), next_sent(client));
}

}  // namespace

}  // namespace viaduct::vipl_test
