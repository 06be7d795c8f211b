// Many threads in the library at once, and objects that end while others wait for them.
#include <atomic>
#include <thread>

#include "tests/vipl/programs/support/bed.hpp"

namespace viaduct::vipl_test {

namespace {

using Threads = PairTest;

// How NT's library ends: it disconnects and destroys what two other threads are still blocked in.
TEST_F(Threads, ShutDownUnderBlockedThreads) {
  VIP_NIC_HANDLE nic;
  ASSERT_VIP(VIP_SUCCESS, VipOpenNic(kNicNames[1], &nic));
  VIP_CQ_HANDLE cq;
  ASSERT_VIP(VIP_SUCCESS, VipCreateCQ(nic, 64, &cq));
  VIP_VI_ATTRIBUTES attributes = vi_attributes();
  VIP_VI_HANDLE vi;
  ASSERT_VIP(VIP_SUCCESS, VipCreateVi(nic, &attributes, nullptr, cq, &vi));
  std::thread connecting([&] {
    Address local(b_, fresh_discriminator()), remote;
    VIP_VI_ATTRIBUTES seen;
    VIP_CONN_HANDLE connection;
    EXPECT_VIP(VIP_ERROR_RESOURCE,
               VipConnectWait(nic, local, VIP_INFINITE, remote, &seen, &connection));
  });
  std::thread completing([&] {
    VIP_VI_HANDLE of;
    VIP_BOOLEAN receive;
    EXPECT_VIP(VIP_INVALID_PARAMETER, VipCQWait(cq, VIP_INFINITE, &of, &receive));
  });
  std::this_thread::sleep_for(std::chrono::milliseconds{2 * kMoment});
  EXPECT_VIP(VIP_SUCCESS, VipDisconnect(vi));
  EXPECT_VIP(VIP_SUCCESS, VipDestroyVi(vi));
  EXPECT_VIP(VIP_SUCCESS, VipDestroyCQ(cq));
  completing.join();
  EXPECT_VIP(VIP_SUCCESS, VipCloseNic(nic));
  connecting.join();
}

TEST_F(Threads, DestroyedUnderAWait) {
  for (const bool receive : {false, true}) {
    VIP_VI_ATTRIBUTES attributes = vi_attributes();
    VIP_VI_HANDLE vi;
    ASSERT_VIP(VIP_SUCCESS, VipCreateVi(a_, &attributes, nullptr, nullptr, &vi));
    const Memory memory(a_, 1, 64);
    ASSERT_VIP(VIP_SUCCESS, VipPostRecv(vi, memory.receive(0, 64), memory.handle()));
    std::atomic<bool> begun = false;
    std::thread waiting([&] {
      VIP_DESCRIPTOR* d;
      begun = true;
      const VIP_RETURN code =
          receive ? VipRecvWait(vi, VIP_INFINITE, &d) : VipSendWait(vi, VIP_INFINITE, &d);
      // An empty send queue is no reason to wait: it says so at once.
      EXPECT_VIP(receive ? VIP_INVALID_PARAMETER : VIP_DESCRIPTOR_ERROR, code);
      EXPECT_EQ(nullptr, d);
    });
    ASSERT_TRUE(eventually([&] { return begun.load(); }));
    std::this_thread::sleep_for(std::chrono::milliseconds{kMoment});
    EXPECT_VIP(VIP_SUCCESS, VipDestroyVi(vi));
    waiting.join();
  }
}

// One thread posts, one takes sends, one takes receives, on the same VI, in both directions.
TEST_F(Threads, OneViManyThreads) {
  constexpr std::size_t kSlots = 16, kMessages = 2000;
  const Memory out_a(a_, kSlots, 64), out_b(b_, kSlots, 64), in_a(a_, kSlots, 64),
      in_b(b_, kSlots, 64);
  const Vi vis[2] = {Vi(a_), Vi(b_)};
  const Memory* const outs[2] = {&out_a, &out_b};
  const Memory* const ins[2] = {&in_a, &in_b};
  for (int side = 0; side < 2; ++side)
    for (std::size_t i = 0; i < kSlots; ++i)
      ASSERT_VIP(VIP_SUCCESS,
                 VipPostRecv(vis[side], ins[side]->receive(i, 64), ins[side]->handle()));
  connect(vis[0], vis[1]);
  // Credits: a message may go when the other side has taken the one kSlots before it and its
  // descriptor here is free.
  std::atomic<std::size_t> sent[2] = {0, 0}, received[2] = {0, 0};
  std::vector<std::thread> threads;
  for (int side = 0; side < 2; ++side) {
    threads.emplace_back([&, side] {
      for (std::size_t i = 0; i < kMessages; ++i) {
        while (i >= kSlots && (sent[side] <= i - kSlots || received[1 - side] <= i - kSlots))
          std::this_thread::yield();
        std::memcpy(outs[side]->buffer(i % kSlots), &i, sizeof(i));
        ASSERT_VIP(VIP_SUCCESS, VipPostSend(vis[side], outs[side]->send(i % kSlots, sizeof(i)),
                                            outs[side]->handle()));
      }
    });
    threads.emplace_back([&, side] {
      for (std::size_t i = 0; i < kMessages; ++i) {
        // An empty queue is told from one that is at work; this thread may be ahead of the poster.
        VIP_DESCRIPTOR* d = nullptr;
        ASSERT_TRUE(eventually([&] { return VipSendWait(vis[side], kSoon, &d), d != nullptr; }));
        ASSERT_EQ(outs[side]->raw(i % kSlots), d);
        ASSERT_EQ(0u, errors(d));
        sent[side] = i + 1;
      }
    });
    threads.emplace_back([&, side] {
      for (std::size_t i = 0; i < kMessages; ++i) {
        VIP_DESCRIPTOR* const d = next_received(vis[side]);
        ASSERT_EQ(ins[side]->raw(i % kSlots), d);
        std::size_t number = 0;
        std::memcpy(&number, ins[side]->buffer(i % kSlots), sizeof(number));
        ASSERT_EQ(i, number);
        ASSERT_VIP(VIP_SUCCESS, VipPostRecv(vis[side], d, ins[side]->handle()));
        received[side] = i + 1;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
}

// Several threads wait for one CQ: each entry goes to one of them.
TEST_F(Threads, ManyWaitForOneCq) {
  constexpr std::size_t kWaiters = 4, kMessages = 64;
  const Cq cq(b_, kMessages);
  const Vi client(a_), server(b_, vi_attributes(), nullptr, cq);
  const Memory out(a_, kMessages, 16), in(b_, kMessages, 16);
  for (std::size_t i = 0; i < kMessages; ++i)
    ASSERT_VIP(VIP_SUCCESS, VipPostRecv(server, in.receive(i, 16), in.handle()));
  connect(client, server);
  std::atomic<std::size_t> taken = 0;
  std::vector<std::thread> threads;
  for (std::size_t t = 0; t < kWaiters; ++t)
    threads.emplace_back([&] {
      while (taken < kMessages) {
        const auto entry = next_entry(cq, 50);
        if (!entry) continue;
        VIP_DESCRIPTOR* d = nullptr;
        EXPECT_VIP(VIP_SUCCESS, VipRecvDone(entry->vi, &d));
        ++taken;
      }
    });
  for (std::size_t i = 0; i < kMessages; ++i)
    ASSERT_VIP(VIP_SUCCESS, VipPostSend(client, out.send(i, 8), out.handle()));
  for (std::size_t i = 0; i < kMessages; ++i) ASSERT_EQ(out.raw(i), next_sent(client));
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(kMessages, taken);
}

// VIs come and go on one CQ while a thread waits for it and another connects more.
TEST_F(Threads, VisComeAndGo) {
  constexpr int kRounds = 30;
  const Cq cq(b_, 64);
  std::atomic<bool> ended = false;
  std::atomic<int> flushed = 0;
  std::thread completing([&] {
    while (!ended) {
      const auto entry = next_entry(cq, 20);
      VIP_DESCRIPTOR* d;
      if (entry && VipRecvDone(entry->vi, &d) == VIP_DESCRIPTOR_ERROR && d != nullptr) ++flushed;
    }
  });
  const Memory in(b_, 2, 64);
  const auto rounds = [&](std::size_t slot) {
    for (int i = 0; i < kRounds; ++i) {
      const Vi client(a_);
      Vi server(b_, vi_attributes(), nullptr, cq);
      ASSERT_VIP(VIP_SUCCESS, VipPostRecv(server, in.receive(slot, 64), in.handle()));
      connect(client, server);
    }
  };
  std::thread other([&] { rounds(0); });
  rounds(1);
  other.join();
  ended = true;
  completing.join();
}

// Register, deregister and change rights while others send.
TEST_F(Threads, MemoryComesAndGoesWhileOthersSend) {
  const Vi client(a_), server(b_);
  const Memory out(a_, 1, 64), in(b_, 1, 64);
  connect(client, server);
  std::atomic<bool> ended = false;
  std::vector<std::thread> threads;
  for (const Nic* nic : {&a_, &b_})
    threads.emplace_back([&ended, nic] {
      const Ptag ptag(*nic);
      while (!ended) {
        const Memory memory(*nic, 1, 64, memory_attributes(ptag));
        VIP_MEM_ATTRIBUTES open = memory_attributes(ptag, true, true);
        EXPECT_VIP(VIP_SUCCESS, VipSetMemAttributes(*nic, memory.base(), memory.handle(), &open));
      }
    });
  for (int i = 0; i < 500; ++i) {
    ASSERT_VIP(VIP_SUCCESS, VipPostRecv(server, in.receive(0, 64), in.handle()));
    ASSERT_VIP(VIP_SUCCESS, VipPostSend(client, out.send(0, 8), out.handle()));
    ASSERT_EQ(in.raw(0), next_received(server));
    ASSERT_EQ(out.raw(0), next_sent(client));
  }
  ended = true;
  for (std::thread& thread : threads) thread.join();
}

// A handle that is being destroyed is good or bad, nothing else.
TEST_F(Threads, HandlesThatGoBad) {
  std::atomic<VIP_VI_HANDLE> current = nullptr;
  std::atomic<bool> ended = false;
  const Memory memory(a_, 8, 64);
  std::vector<std::thread> threads;
  for (std::size_t t = 0; t < 3; ++t)
    threads.emplace_back([&, t] {
      VIP_DESCRIPTOR* d;
      while (!ended) {
        const VIP_VI_HANDLE vi = current;
        if (vi == nullptr) continue;
        VipPostRecv(vi, memory.receive(t, 64), memory.handle());
        VipRecvWait(vi, 1, &d);
        VIP_VI_STATE state;
        VIP_VI_ATTRIBUTES attributes;
        VIP_BOOLEAN empty;
        const VIP_RETURN code = VipQueryVi(vi, &state, &attributes, &empty, &empty);
        EXPECT_TRUE(code == VIP_SUCCESS || code == VIP_INVALID_PARAMETER) << name(code);
      }
    });
  for (int i = 0; i < 200; ++i) {
    VIP_VI_ATTRIBUTES attributes = vi_attributes();
    VIP_VI_HANDLE vi;
    ASSERT_VIP(VIP_SUCCESS, VipCreateVi(a_, &attributes, nullptr, nullptr, &vi));
    current = vi;
    std::this_thread::sleep_for(std::chrono::microseconds{500});
    EXPECT_VIP(VIP_SUCCESS, VipDestroyVi(vi));
  }
  ended = true;
  for (std::thread& thread : threads) thread.join();
}

}  // namespace

}  // namespace viaduct::vipl_test
