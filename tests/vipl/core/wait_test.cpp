// Wait and Notify functions, on one thread and on several.
#include <atomic>
#include <chrono>
#include <future>
#include <thread>
#include <utility>

#include "tests/vipl/core/node.hpp"

namespace viaduct::vipl::test {
namespace {

using std::chrono::milliseconds;

constexpr VIP_ULONG kLong = 20000;  // ms; nothing that works takes so long

class Waits : public Core {
 protected:
  Waits() { connect(a, b); }
  // Longer than waits look without sleeping.
  static void let_it_sleep() { std::this_thread::sleep_for(milliseconds(20)); }

  VIP_CQ_HANDLE cq = make_cq(16);
  VIP_VI_HANDLE a = make_vi(), b = make_vi();
};

TEST_F(Waits, DoneAlready) {
  post_receive(b, memory->message(0, 0, 10));
  post_send(a, memory->send(1, 100, "x"));
  VIP_DESCRIPTOR* d = nullptr;
  EXPECT_EQ(VipRecvWait(b, 0, &d), VIP_SUCCESS);
  EXPECT_EQ(d, memory->descriptor(0));
  EXPECT_EQ(VipSendWait(a, VIP_INFINITE, &d), VIP_SUCCESS);
  EXPECT_EQ(d, memory->descriptor(1));
}

TEST_F(Waits, EmptyQueueIsAnErrorAtOnce) {
  VIP_DESCRIPTOR* d = memory->descriptor(0);
  EXPECT_EQ(VipRecvWait(b, VIP_INFINITE, &d), VIP_DESCRIPTOR_ERROR);
  EXPECT_EQ(d, nullptr);
}

TEST_F(Waits, TimeoutsAreMilliseconds) {
  post_receive(b, memory->message(0, 0, 10));
  for (const VIP_ULONG timeout : {0, 1, 30}) {
    const auto start = std::chrono::steady_clock::now();
    VIP_DESCRIPTOR* d = memory->descriptor(0);
    EXPECT_EQ(VipRecvWait(b, timeout, &d), VIP_TIMEOUT);
    EXPECT_EQ(d, nullptr);
    VIP_VI_HANDLE vi = nullptr;
    VIP_BOOLEAN receive = VIP_FALSE;
    EXPECT_EQ(VipCQWait(cq, timeout, &vi, &receive), VIP_TIMEOUT);
    EXPECT_GE(std::chrono::steady_clock::now() - start, milliseconds(2 * timeout));
  }
}

TEST_F(Waits, SleepsUntilTheMessageComes) {
  for (const VIP_ULONG timeout : {kLong, VIP_INFINITE, ~VIP_ULONG{0}}) {
    post_receive(b, memory->message(0, 0, 10));
    auto waiting = std::async(std::launch::async, [&] {
      VIP_DESCRIPTOR* d = nullptr;
      EXPECT_EQ(VipRecvWait(b, timeout, &d), VIP_SUCCESS);
      return d;
    });
    let_it_sleep();
    post_send(a, memory->send(1, 100, "x"));
    EXPECT_EQ(waiting.get(), memory->descriptor(0));
    expect_sent(a, memory->descriptor(1));
  }
}

// Done and Post go on while a thread waits on the same queue.
TEST_F(Waits, NothingBlocksBehindAWait) {
  post_receive(b, memory->message(0, 0, 10));
  auto waiting = std::async(std::launch::async, [&] {
    VIP_DESCRIPTOR* d = nullptr;
    return VipRecvWait(b, kLong, &d);
  });
  let_it_sleep();
  const auto start = std::chrono::steady_clock::now();
  VIP_DESCRIPTOR* d = nullptr;
  EXPECT_EQ(VipRecvDone(b, &d), VIP_NOT_DONE);
  post_receive(b, memory->message(1, 0, 10));
  EXPECT_LT(std::chrono::steady_clock::now() - start, milliseconds(kLong / 2));
  post_send(a, memory->send(2, 100, "x"));
  EXPECT_EQ(waiting.get(), VIP_SUCCESS);
}

TEST_F(Waits, DisconnectWakesWithTheFlushedDescriptor) {
  post_receive(b, memory->message(0, 0, 10));
  auto waiting = std::async(std::launch::async, [&] {
    VIP_DESCRIPTOR* d = nullptr;
    EXPECT_EQ(VipRecvWait(b, kLong, &d), VIP_DESCRIPTOR_ERROR);
    return d;
  });
  let_it_sleep();
  disconnect(b);
  EXPECT_EQ(waiting.get(), memory->descriptor(0));
}

TEST_F(Waits, LosingTheOtherSideWakes) {
  post_receive(b, memory->message(0, 0, 10));
  auto waiting = std::async(std::launch::async, [&] {
    VIP_DESCRIPTOR* d = nullptr;
    return VipRecvWait(b, kLong, &d);
  });
  let_it_sleep();
  Vi::find(b)->on_connection_lost(CloseReason::disconnected);
  EXPECT_EQ(waiting.get(), VIP_DESCRIPTOR_ERROR);
}

TEST_F(Waits, DestroyingACqWakes) {
  auto waiting = std::async(std::launch::async, [&] {
    VIP_VI_HANDLE vi = nullptr;
    VIP_BOOLEAN receive = VIP_FALSE;
    return VipCQWait(cq, VIP_INFINITE, &vi, &receive);
  });
  let_it_sleep();
  EXPECT_EQ(VipDestroyCQ(cq), VIP_SUCCESS);
  EXPECT_EQ(waiting.get(), VIP_INVALID_PARAMETER);
}

TEST_F(Waits, ClosingTheNicWakes) {
  const VIP_NIC_HANDLE other = open();
  VIP_CQ_HANDLE its_cq = nullptr;
  ASSERT_EQ(VipCreateCQ(other, 4, &its_cq), VIP_SUCCESS);
  auto waiting = std::async(std::launch::async, [&] {
    VIP_VI_HANDLE vi = nullptr;
    VIP_BOOLEAN receive = VIP_FALSE;
    return VipCQWait(its_cq, VIP_INFINITE, &vi, &receive);
  });
  let_it_sleep();
  EXPECT_EQ(VipCloseNic(other), VIP_SUCCESS);
  EXPECT_EQ(waiting.get(), VIP_INVALID_PARAMETER);
}

TEST_F(Waits, CqWaitOfSeveralThreads) {
  const VIP_VI_HANDLE c = make_vi(nullptr, cq), d = make_vi();
  connect(c, d);
  constexpr std::size_t kThreads = 4;
  for (std::size_t i = 0; i < kThreads; ++i) post_receive(c, memory->message(i, 0, 10));
  std::atomic<int> entries{0};
  std::vector<std::thread> threads;
  for (std::size_t i = 0; i < kThreads; ++i)
    threads.emplace_back([&] {
      VIP_VI_HANDLE vi = nullptr;
      VIP_BOOLEAN receive = VIP_FALSE;
      entries += VipCQWait(cq, kLong, &vi, &receive) == VIP_SUCCESS && vi == c && receive;
    });
  let_it_sleep();
  for (std::size_t i = 0; i < kThreads; ++i) post_send(d, memory->send(100, 100, "x"));
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(entries, static_cast<int>(kThreads));
}

// ---- Notify ----

struct Call {
  VIP_NIC_HANDLE nic;
  VIP_VI_HANDLE vi;
  VIP_DESCRIPTOR* descriptor;
  VIP_BOOLEAN receive;
  std::thread::id thread;
};
struct CallLog {
  std::mutex mutex;
  std::condition_variable changed;
  std::vector<Call> all;

  void add(const Call& call) {
    const std::lock_guard lock(mutex);
    all.push_back(call);
    changed.notify_all();
  }
  static void of_queue(VIP_PVOID self, VIP_NIC_HANDLE nic, VIP_VI_HANDLE vi, VIP_DESCRIPTOR* d) {
    static_cast<CallLog*>(self)->add({nic, vi, d, VIP_FALSE, std::this_thread::get_id()});
  }
  static void of_cq(VIP_PVOID self, VIP_NIC_HANDLE nic, VIP_VI_HANDLE vi, VIP_BOOLEAN receive) {
    static_cast<CallLog*>(self)->add({nic, vi, nullptr, receive, std::this_thread::get_id()});
  }
  std::vector<Call> get(std::size_t n) {
    std::unique_lock lock(mutex);
    EXPECT_TRUE(changed.wait_for(lock, std::chrono::seconds(10), [&] { return all.size() >= n; }));
    return all;
  }
};

TEST_F(Waits, NotifyOfWhatIsDoneAlready) {
  post_receive(b, memory->message(0, 0, 10));
  post_send(a, memory->send(1, 100, "x"));
  CallLog log;
  ASSERT_EQ(VipRecvNotify(b, &log, &CallLog::of_queue), VIP_SUCCESS);
  const std::vector<Call> calls = log.get(1);
  EXPECT_EQ(calls[0].descriptor, memory->descriptor(0));
  EXPECT_EQ(calls[0].vi, b);
  EXPECT_EQ(calls[0].nic, nic);
  EXPECT_NE(calls[0].thread, std::this_thread::get_id());
  expect_receive_queue_empty(b);
  ASSERT_EQ(VipSendNotify(a, &log, &CallLog::of_queue), VIP_SUCCESS);
  EXPECT_EQ(log.get(2)[1].descriptor, memory->descriptor(1));
}

// Nobody looks but the library.
TEST_F(Waits, NotifyOfWhatComesLater) {
  constexpr std::size_t kMessages = 3;
  CallLog log;
  for (std::size_t i = 0; i < kMessages; ++i) {
    post_receive(b, memory->message(i, 0, 10));
    ASSERT_EQ(VipRecvNotify(b, &log, &CallLog::of_queue), VIP_SUCCESS);
  }
  for (std::size_t i = 0; i < kMessages; ++i) {
    let_it_sleep();
    post_send(a, memory->send(10 + i, 100, "x"));
    log.get(i + 1);
  }
  // One call each, in the order of the descriptors.
  post_receive(b, memory->message(9, 0, 10));
  post_send(a, memory->send(20, 100, "x"));
  expect_received(b, memory->descriptor(9));
  const std::vector<Call> calls = log.get(kMessages);
  ASSERT_EQ(calls.size(), kMessages);
  for (std::size_t i = 0; i < kMessages; ++i) EXPECT_EQ(calls[i].descriptor, memory->descriptor(i));
}

// What a handler is owed is not given to the program too, whoever finds it.
TEST_F(Waits, DoneTakesNothingFromNotify) {
  CallLog log;
  for (std::size_t i = 0; i < 50; ++i) {
    post_receive(b, memory->message(0, 0, 10));
    ASSERT_EQ(VipRecvNotify(b, &log, &CallLog::of_queue), VIP_SUCCESS);
    post_send(a, memory->send(1, 100, "x"));
    VIP_DESCRIPTOR* d = nullptr;
    EXPECT_NE(VipRecvDone(b, &d), VIP_SUCCESS);
    EXPECT_EQ(d, nullptr);
    log.get(i + 1);
    expect_sent(a, memory->descriptor(1));
  }
}

TEST_F(Waits, CqNotify) {
  const VIP_VI_HANDLE c = make_vi(cq, cq), d = make_vi();
  connect(c, d);
  CallLog log;
  ASSERT_EQ(VipCQNotify(cq, &log, &CallLog::of_cq), VIP_SUCCESS);
  ASSERT_EQ(VipCQNotify(cq, &log, &CallLog::of_cq), VIP_SUCCESS);
  post_receive(c, memory->message(0, 0, 10));
  post_receive(d, memory->message(1, 0, 10));
  let_it_sleep();
  post_send(d, memory->send(2, 100, "x"));
  EXPECT_EQ(log.get(1)[0].receive, VIP_TRUE);
  expect_received(c, memory->descriptor(0));
  post_send(c, memory->send(3, 100, "x"));
  const std::vector<Call> calls = log.get(2);
  EXPECT_EQ(calls[1].receive, VIP_FALSE);
  EXPECT_EQ(calls[1].vi, c);
  VIP_VI_HANDLE vi = nullptr;
  VIP_BOOLEAN receive = VIP_FALSE;
  EXPECT_EQ(VipCQDone(cq, &vi, &receive), VIP_NOT_DONE);
}

TEST_F(Waits, NotifyEndsWithItsObject) {
  CallLog log;
  const VIP_VI_HANDLE c = make_vi(nullptr, cq);
  post_receive(c, memory->message(0, 0, 10));
  ASSERT_EQ(VipRecvNotify(b, &log, &CallLog::of_queue), VIP_SUCCESS);
  ASSERT_EQ(VipSendNotify(c, &log, &CallLog::of_queue), VIP_SUCCESS);
  disconnect(b);
  EXPECT_EQ(VipDestroyVi(b), VIP_SUCCESS);
  EXPECT_EQ(VipDestroyVi(c), VIP_SUCCESS);
  ASSERT_EQ(VipCQNotify(cq, &log, &CallLog::of_cq), VIP_SUCCESS);
  EXPECT_EQ(VipDestroyCQ(cq), VIP_SUCCESS);
  let_it_sleep();
  EXPECT_TRUE(log.all.empty());
}

// A handler may do anything, even end what it is a handler of.
TEST_F(Waits, HandlerClosesTheNic) {
  const VIP_NIC_HANDLE other = open();
  VIP_VI_ATTRIBUTES attributes = vi_attributes();
  VIP_VI_HANDLE vi = nullptr;
  ASSERT_EQ(VipCreateVi(other, &attributes, nullptr, nullptr, &vi), VIP_SUCCESS);
  const Memory its_memory(other, nullptr);
  ASSERT_EQ(VipPostSend(vi, its_memory.send(0, 0, "x"), its_memory.handle()), VIP_SUCCESS);
  std::promise<VIP_RETURN> closed;
  const auto close = [](VIP_PVOID context, VIP_NIC_HANDLE nic, VIP_VI_HANDLE, VIP_DESCRIPTOR*) {
    static_cast<std::promise<VIP_RETURN>*>(context)->set_value(VipCloseNic(nic));
  };
  ASSERT_EQ(VipSendNotify(vi, &closed, close), VIP_SUCCESS);
  EXPECT_EQ(closed.get_future().get(), VIP_SUCCESS);
}

// ---- bursts: more completions at once than are taken from the device at a time ----

class Bursts : public Waits {
 protected:
  static constexpr std::size_t kBurst = 100;
  // All of them arrive at once.
  void send_burst(VIP_VI_HANDLE vi) {
    Fabric::get().hold();
    for (std::size_t i = 0; i < kBurst; ++i) post_send(vi, memory->send(500 + i, 100, "x"));
    Fabric::get().release();
  }
};

TEST_F(Bursts, NotifyOfEach) {
  CallLog log;
  for (std::size_t i = 0; i < kBurst; ++i) {
    post_receive(b, memory->message(i, 0, 8));
    ASSERT_EQ(VipRecvNotify(b, &log, &CallLog::of_queue), VIP_SUCCESS);
  }
  send_burst(a);
  EXPECT_EQ(log.get(kBurst).size(), kBurst);
}

TEST_F(Bursts, CqNotifyOfEach) {
  const VIP_VI_HANDLE c = make_vi(), d = make_vi(nullptr, cq);
  connect(c, d);
  CallLog log;
  for (std::size_t i = 0; i < kBurst; ++i) {
    post_receive(d, memory->message(i, 0, 8));
    ASSERT_EQ(VipCQNotify(cq, &log, &CallLog::of_cq), VIP_SUCCESS);
  }
  send_burst(c);
  EXPECT_EQ(log.get(kBurst).size(), kBurst);
}

// A queue whose message is behind a burst for another VI of its completion queue.
TEST_F(Bursts, WaitBehindOne) {
  const VIP_VI_HANDLE c = make_vi(), d = make_vi(nullptr, cq), e = make_vi(nullptr, cq);
  connect(c, d);
  connect(a = make_vi(), e);
  for (std::size_t i = 0; i < kBurst; ++i) post_receive(d, memory->message(i, 0, 8));
  post_receive(e, memory->message(200, 0, 8));
  auto waiting = std::async(std::launch::async, [&] {
    VIP_DESCRIPTOR* it = nullptr;
    return VipRecvWait(e, kLong, &it);
  });
  let_it_sleep();
  const auto start = std::chrono::steady_clock::now();
  Fabric::get().hold();
  for (std::size_t i = 0; i < kBurst; ++i) post_send(c, memory->send(500 + i, 100, "x"));
  post_send(a, memory->send(700, 100, "x"));
  Fabric::get().release();
  EXPECT_EQ(waiting.get(), VIP_SUCCESS);
  EXPECT_LT(std::chrono::steady_clock::now() - start, milliseconds(kLong / 2));
}

// Looking once tells the device nothing.
TEST_F(Waits, TimeoutOfZeroArmsNothing) {
  post_receive(b, memory->message(0, 0, 8));
  const int armed = Fabric::get().armed;
  VIP_DESCRIPTOR* d = nullptr;
  EXPECT_EQ(VipRecvWait(b, 0, &d), VIP_TIMEOUT);
  EXPECT_EQ(Fabric::get().armed, armed);
}

// ---- many threads ----

// Several threads send on one VI, several take what arrives from the other's CQ.
TEST_F(Waits, ThreadsShareAVi) {
  constexpr std::size_t kThreads = 3, kEach = 300;
  const VIP_VI_HANDLE from = make_vi(), to = make_vi(nullptr, cq);
  connect(from, to);
  for (std::size_t i = 0; i < 200; ++i) post_receive(to, memory->message(i, 0, 8));
  std::atomic<std::size_t> sent{0}, received{0}, tickets{0};
  std::vector<std::thread> threads;
  for (std::size_t t = 0; t < kThreads; ++t) {
    // A thread gets back the oldest descriptor, which another thread may have posted, and posts
    // that one next: its own may still be with the library.
    threads.emplace_back([&, d = memory->send(300 + t, 1000 + 8 * t, "12345678")]() mutable {
      for (std::size_t i = 0; i < kEach;) {
        if (tickets - received >= 100) continue;  // the programs' own flow control
        ++tickets;
        while (VipPostSend(from, d, memory->handle()) != VIP_SUCCESS) std::this_thread::yield();
        while (VipSendWait(from, kLong, &d) != VIP_SUCCESS) std::this_thread::yield();
        ++sent;
        ++i;
      }
    });
    threads.emplace_back([&] {
      while (received < kThreads * kEach) {
        VIP_VI_HANDLE vi = nullptr;
        VIP_BOOLEAN receive = VIP_FALSE;
        if (VipCQWait(cq, 1, &vi, &receive) != VIP_SUCCESS) continue;
        VIP_DESCRIPTOR* d = nullptr;
        ASSERT_EQ(VipRecvDone(vi, &d), VIP_SUCCESS);
        ASSERT_EQ(VipPostRecv(vi, d, memory->handle()), VIP_SUCCESS);
        ++received;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(sent, kThreads * kEach);
  EXPECT_EQ(received, kThreads * kEach);
  EXPECT_EQ(state(from), VIP_STATE_CONNECTED);
}

// VIs come and go while others use handles of theirs, old and new. A descriptor that was posted is
// the library's until its VI is gone, so a thread takes the next ones for each VI, and those of one
// VI again when it has seen two later ones.
TEST_F(Waits, HandlesOutliveTheirVis) {
  constexpr std::size_t kOfVi = 8, kOfThread = 4 * kOfVi;
  std::atomic<VIP_VI_HANDLE> current{a};
  std::atomic<bool> done{false};
  std::vector<std::thread> threads;
  for (std::size_t t = 0; t < 3; ++t)
    threads.emplace_back([&, t] {
      std::size_t vis = 0, posted = 0;
      for (VIP_VI_HANDLE before = nullptr; !done;) {
        const VIP_VI_HANDLE vi = current;
        if (vi != std::exchange(before, vi)) ++vis, posted = 0;
        VIP_DESCRIPTOR* d = nullptr;
        if (posted < kOfVi)
          VipPostRecv(vi, memory->message(t * kOfThread + vis % 4 * kOfVi + posted++, 0, 8),
                      memory->handle());
        VipRecvDone(vi, &d);
        VipRecvWait(vi, 1, &d);
        VipQueryVi(vi, nullptr, nullptr, nullptr, nullptr);
      }
    });
  for (int i = 0; i < 200; ++i) {
    const VIP_VI_HANDLE next = make_vi(i % 2 ? cq : nullptr, i % 3 ? cq : nullptr);
    const VIP_VI_HANDLE old = current.exchange(next);
    std::this_thread::sleep_for(milliseconds(1));
    disconnect(old);
    EXPECT_EQ(VipDestroyVi(old), VIP_SUCCESS);
  }
  done = true;
  for (std::thread& thread : threads) thread.join();
}

}  // namespace
}  // namespace viaduct::vipl::test
