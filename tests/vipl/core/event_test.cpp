// What the device has to say, and the threads of the library that hear it.
#include <signal.h>
#include <sys/resource.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <thread>

#include "libvipl/core/event_thread.hpp"
#include "libvipl/core/queues/cq.hpp"
#include "tests/vipl/core/node.hpp"

namespace viaduct::vipl::test {
namespace {

using namespace std::chrono_literals;
using Kind = vi::AsyncEvent::Kind;

class Events : public Core {
 protected:
  Events() {
    a = make_vi();
    b = make_vi();
    connect(a, b);
  }
  static void event(Kind kind, void* owner = nullptr) {
    FakeProvider::get().last_opened->async_event({kind, owner});
  }
  // The device fails it by itself.
  static void fail(VIP_VI_HANDLE vi) { Vi::find(vi)->queue_pair()->fail(); }
  static void expect_error_state(VIP_VI_HANDLE vi) {
    for (int i = 0; i < 500 && state(vi) == VIP_STATE_CONNECTED; ++i)
      std::this_thread::sleep_for(10ms);
    EXPECT_EQ(state(vi), VIP_STATE_ERROR);
  }

  Reports& reports = report_errors(nic);
  VIP_VI_HANDLE a = nullptr, b = nullptr;
};

TEST_F(Events, AQueuePairFailsByItself) {
  fail(b);
  event(Kind::queue_pair_error, Vi::find(b));
  const VIP_ERROR_DESCRIPTOR error = reports.get(1)[0];
  EXPECT_EQ(error.ErrorCode, VIP_ERROR_CONN_LOST);
  EXPECT_EQ(error.ViHandle, b);
  EXPECT_EQ(state(b), VIP_STATE_ERROR);
  event(Kind::queue_pair_error, Vi::find(b));
  reports.expect_only(1);
}

// The event may come after what it is about has been seen in a queue.
TEST_F(Events, AQueuePairFailsAndItsFlushIsSeenFirst) {
  post_receive(b, memory->message(0, 0, 8));
  fail(b);
  expect_receive_error(b, memory->descriptor(0), VIP_STATUS_DESC_FLUSHED_ERROR);
  EXPECT_EQ(state(b), VIP_STATE_ERROR);
  event(Kind::queue_pair_error, Vi::find(b));
  EXPECT_EQ(reports.get(1)[0].ErrorCode, VIP_ERROR_CONN_LOST);
}

// What failed in one queue is told to the other side although the flush of the other queue was seen
// first.
TEST_F(Events, TheCauseIsSeenAfterTheFlush) {
  Vi::find(a)->on_flushed();
  EXPECT_EQ(state(a), VIP_STATE_ERROR);
  Vi::find(a)->on_failed(CloseReason::host_silent);
  EXPECT_EQ(reports.get(1)[0].ErrorCode, VIP_ERROR_CONN_LOST);
}

// The device at the target does not say what the initiator wanted. The initiator does.
TEST_F(Events, WhatTheOtherSideMustNotItTellsItself) {
  for (const auto& [reason, code] :
       {std::pair(CloseReason::rdma_read_protection, VIP_ERROR_RDMAR_PROT),
        std::pair(CloseReason::rdma_write_protection, VIP_ERROR_RDMAW_PROT),
        std::pair(CloseReason::disconnected, VIP_ERROR_CONN_LOST)}) {
    fail(b);
    event(Kind::remote_access, Vi::find(b));
    expect_error_state(b);
    reports.expect_none();
    Vi::find(b)->on_connection_lost(reason);
    EXPECT_EQ(reports.get(1)[0].ErrorCode, code);
    reports.all.clear();
    disconnect(a);
    disconnect(b);
    connect(a, b);
  }
}

// Nobody is told twice, and not beside the descriptor that has the error.
TEST_F(Events, ADescriptorHasTheError) {
  VIP_DESCRIPTOR* const send = memory->send(0, 0, "x");
  post_send(a, send);  // there is no receive
  expect_send_error(a, send, VIP_STATUS_TRANSPORT_ERROR);
  event(Kind::queue_pair_error, Vi::find(a));
  reports.expect_none();
}

TEST_F(Events, OfAnEarlierConnection) {
  disconnect(a);
  disconnect(b);
  connect(a, b);
  event(Kind::remote_access, Vi::find(b));
  event(Kind::queue_pair_error, Vi::find(b));
  reports.expect_none();
  EXPECT_EQ(state(b), VIP_STATE_CONNECTED);
}

// No completion comes from a device that has failed.
TEST_F(Events, TheDeviceFails) {
  const VIP_VI_HANDLE idle = make_vi();
  post_receive(b, memory->message(0, 0, 8));
  Fabric::get().hold();
  post_send(a, memory->send(1, 0, "x"));
  event(Kind::device_error);
  VIP_DESCRIPTOR* d = nullptr;
  EXPECT_EQ(VipRecvWait(b, 10000, &d), VIP_DESCRIPTOR_ERROR);
  expect_error(d, memory->descriptor(0), VIP_STATUS_DESC_FLUSHED_ERROR);
  EXPECT_EQ(VipSendWait(a, 10000, &d), VIP_DESCRIPTOR_ERROR);
  expect_error(d, memory->descriptor(1), VIP_STATUS_DESC_FLUSHED_ERROR);
  EXPECT_EQ(state(a), VIP_STATE_ERROR);
  EXPECT_EQ(state(b), VIP_STATE_ERROR);
  EXPECT_EQ(state(idle), VIP_STATE_IDLE);
  const auto errors = reports.get(3);
  EXPECT_EQ(errors[0].ErrorCode, VIP_ERROR_CATASTROPHIC);
  EXPECT_EQ(errors[0].ResourceCode, VIP_RESOURCE_NIC);
  for (const std::size_t i : {1, 2}) EXPECT_EQ(errors[i].ErrorCode, VIP_ERROR_CONN_LOST);
  // What is posted now is not confused with what the device still had.
  post_receive(b, memory->message(2, 0, 8));
  expect_receive_error(b, memory->descriptor(2), VIP_STATUS_DESC_FLUSHED_ERROR);
  expect_receive_queue_empty(b);
  disconnect(b);
  post_receive(b, memory->message(3, 0, 8));
  EXPECT_EQ(VipRecvDone(b, &d), VIP_NOT_DONE);
}

TEST_F(Events, ACompletionQueueFails) {
  const VIP_CQ_HANDLE cq = make_cq(4);
  const VIP_VI_HANDLE with = make_vi(nullptr, cq), other = make_vi();
  connect(with, other);
  post_receive(with, memory->message(0, 0, 8));
  event(Kind::completion_queue_error, &Cq::find(cq)->completions());
  VIP_VI_HANDLE vi = nullptr;
  VIP_BOOLEAN receive = VIP_FALSE;
  EXPECT_EQ(VipCQWait(cq, 10000, &vi, &receive), VIP_SUCCESS);
  EXPECT_EQ(vi, with);
  expect_receive_error(with, memory->descriptor(0), VIP_STATUS_DESC_FLUSHED_ERROR);
  EXPECT_EQ(state(with), VIP_STATE_ERROR);
  EXPECT_EQ(state(other), VIP_STATE_CONNECTED);
  EXPECT_EQ(state(b), VIP_STATE_CONNECTED);
}

// A program that has blocked a signal to wait for it gets it.
TEST_F(Events, SignalsAreForTheProgramsThreads) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  const auto program = [] {
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGUSR1);
    VIP_NIC_HANDLE handle = nullptr;
    if (VipOpenNic("fake0", &handle) != VIP_SUCCESS) ::_exit(1);
    pthread_sigmask(SIG_BLOCK, &set, nullptr);
    std::this_thread::sleep_for(100ms);  // new threads begin with all signals blocked
    ::kill(::getpid(), SIGUSR1);
    int got = 0;
    sigwait(&set, &got);
    ::_exit(got == SIGUSR1 ? 0 : 2);
  };
  EXPECT_EXIT(program(), testing::ExitedWithCode(0), "");
}

// Opening a NIC leaves the signals of the thread that does as they were.
TEST_F(Events, SignalsStayAsTheyAre) {
  sigset_t before, after;
  pthread_sigmask(SIG_BLOCK, nullptr, &before);
  open();
  pthread_sigmask(SIG_BLOCK, nullptr, &after);
  for (int i = 1; i < SIGRTMIN; ++i)
    EXPECT_EQ(sigismember(&before, i), sigismember(&after, i)) << i;
}

// Waits until it is so many, and sees that no more come.
void expect_settles_at(const std::atomic<int>& number, int expected) {
  const auto end = Clock::now() + 10s;
  while (number < expected && Clock::now() < end) std::this_thread::sleep_for(1ms);
  std::this_thread::sleep_for(50ms);
  EXPECT_EQ(number, expected);
}

// The file descriptor of a device that is removed is in error for ever.
TEST(EventThread, ARemovedDeviceDoesNotKeepItBusy) {
  int ends[2];
  ASSERT_EQ(::pipe(ends), 0);
  ::close(ends[1]);
  std::atomic<int> calls{0};
  {
    EventThread thread({{ends[0], [&] { ++calls; }}});
    expect_settles_at(calls, 1);
  }
  EXPECT_EQ(calls, 1);
  ::close(ends[0]);
}

// It sleeps when nothing is due.
TEST(EventThread, TakesTurnsAsLongAsThereAreAny) {
  std::atomic<int> turns{0};
  EventThread thread({}, [&]() -> Deadline {
    if (++turns >= 3) return std::nullopt;
    return Clock::now() + 10ms;
  });
  std::this_thread::sleep_for(50ms);
  EXPECT_EQ(turns, 0);
  thread.wake();
  expect_settles_at(turns, 3);
  thread.wake();
  expect_settles_at(turns, 4);
}

}  // namespace
}  // namespace viaduct::vipl::test
