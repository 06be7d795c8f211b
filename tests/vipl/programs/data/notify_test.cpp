// The Notify functions: handlers that run on a thread of the library.
#include <condition_variable>
#include <mutex>
#include <thread>

#include "tests/vipl/programs/support/bed.hpp"

namespace viaduct::vipl_test {

namespace {

struct Call {
  std::thread::id thread;
  VIP_NIC_HANDLE nic;
  VIP_VI_HANDLE vi;
  VIP_DESCRIPTOR* descriptor;  // of queues
  bool receive;                // of CQs
};

// What the handlers were called with.
class Calls {
 public:
  static void of_queue(VIP_PVOID context, VIP_NIC_HANDLE nic, VIP_VI_HANDLE vi,
                       VIP_DESCRIPTOR* descriptor) {
    static_cast<Calls*>(context)->add({std::this_thread::get_id(), nic, vi, descriptor, false});
  }
  // As a program would: the entry is gone, the descriptor is still to be taken.
  static void of_cq(VIP_PVOID context, VIP_NIC_HANDLE nic, VIP_VI_HANDLE vi, VIP_BOOLEAN receive) {
    VIP_DESCRIPTOR* d = nullptr;
    EXPECT_VIP(VIP_SUCCESS, receive ? VipRecvDone(vi, &d) : VipSendDone(vi, &d));
    static_cast<Calls*>(context)->add(
        {std::this_thread::get_id(), nic, vi, d, receive == VIP_TRUE});
  }
  bool wait_for(std::size_t count) {
    std::unique_lock guard(lock_);
    return changed_.wait_for(guard, std::chrono::milliseconds{kSoon},
                             [&] { return calls_.size() >= count; });
  }
  Call at(std::size_t i) const {
    const std::lock_guard guard(lock_);
    return calls_.at(i);
  }
  std::size_t count() const {
    const std::lock_guard guard(lock_);
    return calls_.size();
  }

 private:
  void add(const Call& call) {
    const std::lock_guard guard(lock_);
    calls_.push_back(call);
    changed_.notify_all();
  }
  mutable std::mutex lock_;
  std::condition_variable changed_;
  std::vector<Call> calls_;
};

class Notify : public ConnectedTest {
 protected:
  void post_receive(std::size_t i) {
    ASSERT_VIP(VIP_SUCCESS, VipPostRecv(server_, in_.receive(i, kBytes), in_.handle()));
  }
  void post_send(std::size_t i) {
    ASSERT_VIP(VIP_SUCCESS, VipPostSend(client_, out_.send(i, 8), out_.handle()));
  }
  Calls calls_;
};

TEST_F(Notify, ReceiveAndSend) {
  Calls sends;
  post_receive(0);
  ASSERT_VIP(VIP_SUCCESS, VipRecvNotify(server_, &calls_, Calls::of_queue));
  post_send(0);
  ASSERT_VIP(VIP_SUCCESS, VipSendNotify(client_, &sends, Calls::of_queue));
  ASSERT_TRUE(calls_.wait_for(1));
  ASSERT_TRUE(sends.wait_for(1));
  EXPECT_EQ(in_.raw(0), calls_.at(0).descriptor);
  EXPECT_EQ(static_cast<VIP_VI_HANDLE>(server_), calls_.at(0).vi);
  EXPECT_EQ(static_cast<VIP_NIC_HANDLE>(b_), calls_.at(0).nic);
  EXPECT_EQ(out_.raw(0), sends.at(0).descriptor);
  EXPECT_EQ(static_cast<VIP_VI_HANDLE>(client_), sends.at(0).vi);
  EXPECT_NE(std::this_thread::get_id(), calls_.at(0).thread);
  // It was taken from the queue.
  VIP_DESCRIPTOR* d;
  EXPECT_VIP(VIP_DESCRIPTOR_ERROR, VipRecvDone(server_, &d));
  EXPECT_EQ(nullptr, d);
}

TEST_F(Notify, WhatIsAlreadyDone) {
  post_receive(0);
  post_send(0);
  EXPECT_EQ(out_.raw(0), next_sent(client_));
  std::this_thread::sleep_for(std::chrono::milliseconds{kMoment});
  ASSERT_VIP(VIP_SUCCESS, VipRecvNotify(server_, &calls_, Calls::of_queue));
  ASSERT_TRUE(calls_.wait_for(1));
  EXPECT_EQ(in_.raw(0), calls_.at(0).descriptor);
}

TEST_F(Notify, OnceEachInOrder) {
  constexpr std::size_t kRegistered = 4;
  for (std::size_t i = 0; i < kCount; ++i) post_receive(i);
  for (std::size_t i = 0; i < kRegistered; ++i)
    ASSERT_VIP(VIP_SUCCESS, VipRecvNotify(server_, &calls_, Calls::of_queue));
  for (std::size_t i = 0; i < kCount; ++i) post_send(i);
  ASSERT_TRUE(calls_.wait_for(kRegistered));
  for (std::size_t i = 0; i < kRegistered; ++i) EXPECT_EQ(in_.raw(i), calls_.at(i).descriptor);
  // The others are for the program to take.
  for (std::size_t i = kRegistered; i < kCount; ++i) EXPECT_EQ(in_.raw(i), next_received(server_));
  EXPECT_EQ(kRegistered, calls_.count());
}

TEST_F(Notify, FlushedDescriptors) {
  post_receive(0);
  ASSERT_VIP(VIP_SUCCESS, VipRecvNotify(server_, &calls_, Calls::of_queue));
  EXPECT_VIP(VIP_SUCCESS, VipDisconnect(client_));
  ASSERT_TRUE(calls_.wait_for(1));
  EXPECT_EQ(in_.raw(0), calls_.at(0).descriptor);
  EXPECT_EQ(VIP_STATUS_DESC_FLUSHED_ERROR, errors(in_.raw(0)));
}

TEST_F(Notify, GoesWithTheVi) {
  {
    Vi short_lived(b_);
    ASSERT_VIP(VIP_SUCCESS, VipPostRecv(short_lived, in_.receive(0, kBytes), in_.handle()));
    ASSERT_VIP(VIP_SUCCESS, VipRecvNotify(short_lived, &calls_, Calls::of_queue));
    const VIP_VI_HANDLE vi = short_lived;
    EXPECT_VIP(VIP_SUCCESS, VipDestroyVi(vi));
    EXPECT_VIP(VIP_INVALID_PARAMETER, VipDestroyVi(vi));
    short_lived.forget();
  }
  std::this_thread::sleep_for(std::chrono::milliseconds{kMoment});
  EXPECT_EQ(0u, calls_.count());
}

TEST_F(Notify, BadParameters) {
  EXPECT_VIP(VIP_INVALID_PARAMETER, VipRecvNotify(server_, &calls_, nullptr));
  EXPECT_VIP(VIP_INVALID_PARAMETER, VipSendNotify(server_, &calls_, nullptr));
  const Cq cq(a_, 4);
  EXPECT_VIP(VIP_INVALID_PARAMETER, VipCQNotify(cq, &calls_, nullptr));
}

// A handler may post again and register itself anew: how such programs are written.
struct Server {
  const Memory* memory;
  std::size_t handled = 0;
  std::mutex lock;
  std::condition_variable changed;
};
void serve(VIP_PVOID context, VIP_NIC_HANDLE, VIP_VI_HANDLE vi, VIP_DESCRIPTOR* d) {
  auto& server = *static_cast<Server*>(context);
  if (errors(d) != 0) return;
  EXPECT_VIP(VIP_SUCCESS, VipPostRecv(vi, d, server.memory->handle()));
  EXPECT_VIP(VIP_SUCCESS, VipRecvNotify(vi, context, serve));
  const std::lock_guard guard(server.lock);
  ++server.handled;
  server.changed.notify_all();
}
TEST_F(Notify, HandlersMayCallTheLibrary) {
  constexpr std::size_t kMessages = 50;
  Server server{&in_, 0, {}, {}};
  post_receive(0);
  post_receive(1);
  ASSERT_VIP(VIP_SUCCESS, VipRecvNotify(server_, &server, serve));
  for (std::size_t i = 0; i < kMessages; ++i) {
    post_send(0);
    ASSERT_EQ(out_.raw(0), next_sent(client_));
    std::unique_lock guard(server.lock);
    ASSERT_TRUE(server.changed.wait_for(guard, std::chrono::milliseconds{kSoon},
                                        [&] { return server.handled == i + 1; }));
  }
}

TEST_F(Notify, CompletionQueue) {
  const Cq cq(b_, 16);
  const Vi client(a_), server(b_, vi_attributes(), cq, cq);
  const Memory in(b_, 4, 64), out(a_, 4, 64);
  for (std::size_t i = 0; i < 4; ++i)
    ASSERT_VIP(VIP_SUCCESS, VipPostRecv(server, in.receive(i, 64), in.handle()));
  connect(client, server);
  const auto send = [&](std::size_t i) {
    ASSERT_VIP(VIP_SUCCESS, VipPostSend(client, out.send(i, 8), out.handle()));
    ASSERT_EQ(out.raw(i), next_sent(client));
  };
  // One registration, one entry; two registrations, the next two.
  ASSERT_VIP(VIP_SUCCESS, VipCQNotify(cq, &calls_, Calls::of_cq));
  send(0);
  ASSERT_TRUE(calls_.wait_for(1));
  ASSERT_VIP(VIP_SUCCESS, VipCQNotify(cq, &calls_, Calls::of_cq));
  ASSERT_VIP(VIP_SUCCESS, VipCQNotify(cq, &calls_, Calls::of_cq));
  for (std::size_t i = 1; i < 4; ++i) send(i);
  ASSERT_TRUE(calls_.wait_for(3));
  for (std::size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(in.raw(i), calls_.at(i).descriptor);
    EXPECT_TRUE(calls_.at(i).receive);
    EXPECT_EQ(static_cast<VIP_VI_HANDLE>(server), calls_.at(i).vi);
    EXPECT_EQ(static_cast<VIP_NIC_HANDLE>(b_), calls_.at(i).nic);
  }
  EXPECT_EQ((Entry{server, true}), next_entry(cq));
  EXPECT_EQ(in.raw(3), next_received(server));
  EXPECT_EQ(3u, calls_.count());
}

TEST_F(Notify, GoesWithTheCompletionQueue) {
  VIP_CQ_HANDLE cq;
  ASSERT_VIP(VIP_SUCCESS, VipCreateCQ(a_, 4, &cq));
  ASSERT_VIP(VIP_SUCCESS, VipCQNotify(cq, &calls_, Calls::of_cq));
  EXPECT_VIP(VIP_SUCCESS, VipDestroyCQ(cq));
  EXPECT_EQ(0u, calls_.count());
}

}  // namespace

}  // namespace viaduct::vipl_test
