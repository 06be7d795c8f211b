// VIs, CQs and NICs that come and go while other threads use them, handlers of what is gone, and
// processes that fork.
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <chrono>
#include <future>
#include <thread>

#include "libvipl/core/queues/cq.hpp"
#include "tests/vipl/core/node.hpp"

namespace viaduct::vipl::test {
namespace {

using namespace std::chrono_literals;

// An address of a NIC here.
class Address {
 public:
  Address(VIP_NIC_HANDLE nic, std::string_view discriminator) {
    VIP_NIC_ATTRIBUTES attributes{};
    VipQueryNic(nic, &attributes);
    address_.HostAddressLen = attributes.NicAddressLen;
    address_.DiscriminatorLen = static_cast<VIP_UINT16>(discriminator.size());
    std::memcpy(address_.HostAddress, attributes.LocalNicAddress, attributes.NicAddressLen);
    discriminator.copy(reinterpret_cast<char*>(address_.HostAddress) + attributes.NicAddressLen,
                       discriminator.size());
  }
  VIP_NET_ADDRESS* get() { return &address_; }

 private:
  union {
    VIP_NET_ADDRESS address_;
    char room_[64]{};
  };
};

class Lifetime : public Core {
 protected:
  // A VI of another NIC handle is the client.
  VIP_VI_HANDLE make_client() {
    if (other == nullptr) other = open();
    VIP_VI_ATTRIBUTES attributes = vi_attributes();
    VIP_VI_HANDLE vi = nullptr;
    EXPECT_EQ(VipCreateVi(other, &attributes, nullptr, nullptr, &vi), VIP_SUCCESS);
    return vi;
  }
  static VIP_RETURN request(VIP_NIC_HANDLE from, VIP_VI_HANDLE client, VIP_NIC_HANDLE to) {
    Address local(from, "client"), remote(to, "server");
    for (;;) {
      const VIP_RETURN result =
          VipConnectRequest(client, local.get(), remote.get(), 10000, nullptr);
      if (result != VIP_NO_MATCH) return result;
    }
  }
  VIP_CONN_HANDLE wait_for_request() {
    Address here(nic, "server");
    VIP_CONN_HANDLE connection = nullptr;
    EXPECT_EQ(VipConnectWait(nic, here.get(), 10000, nullptr, nullptr, &connection), VIP_SUCCESS);
    return connection;
  }

  // Of a VI of `nic`, which accepts, and one of make_client().
  void connect_by_request(VIP_VI_HANDLE server, VIP_VI_HANDLE client) {
    auto requested = std::async(std::launch::async, [&] { return request(other, client, nic); });
    ASSERT_EQ(VipConnectAccept(wait_for_request(), server), VIP_SUCCESS);
    ASSERT_EQ(requested.get(), VIP_SUCCESS);
  }

  // Threads ask for connections of VIs that another makes and destroys.
  template <class Ask>
  void ask_while_vis_come_and_go(Ask ask) {
    std::atomic<VIP_VI_HANDLE> current{nullptr};
    std::atomic<bool> end{false};
    std::vector<std::thread> threads;
    for (int i = 0; i < 3; ++i)
      threads.emplace_back([&] {
        Address local(nic, "local"), remote(nic, "nobody");
        while (!end) ask(current, local.get(), remote.get());
      });
    int made = 0;
    for (const auto stop = Clock::now() + 1s; Clock::now() < stop;) {
      const VIP_VI_HANDLE vi = make_vi();
      current = vi;
      std::this_thread::sleep_for(std::chrono::microseconds(made++ % 7 * 30));
      bool destroyed = false;
      for (int i = 0; i < 1000 && !destroyed; ++i) {
        VipDisconnect(vi);
        destroyed = VipDestroyVi(vi) == VIP_SUCCESS;
      }
      EXPECT_TRUE(destroyed);
    }
    end = true;
    for (std::thread& thread : threads) thread.join();
  }

  VIP_NIC_HANDLE other = nullptr;
};

// ---- connecting against disconnecting, destroying and closing ----

TEST_F(Lifetime, RequestsOfVisThatComeAndGo) {
  ask_while_vis_come_and_go([](VIP_VI_HANDLE vi, auto* local, auto* remote) {
    VipConnectRequest(vi, local, remote, 50, nullptr);
  });
}

TEST_F(Lifetime, PeerRequestsOfVisThatComeAndGo) {
  ask_while_vis_come_and_go([](VIP_VI_HANDLE vi, auto* local, auto* remote) {
    VipConnectPeerRequest(vi, local, remote, 50);
    VipConnectPeerDone(vi, nullptr);
  });
}

// While the manager does something else, two threads call functions about one VI: nothing has
// happened to it before one of them has its turn, and then both know of the other.
TEST_F(Lifetime, ARequestAndDestroyingAtATime) {
  Address local(nic, "one"), remote(nic, "two");
  for (int i = 0; i < 10; ++i) {
    const VIP_VI_HANDLE vi = make_vi(), another = make_vi();
    std::promise<void> taken, released;
    std::thread busy([&] {
      Nic::find(nic)->manager().disconnect(*Vi::find(another), [&] {
        taken.set_value();
        released.get_future().wait();
        return VIP_SUCCESS;
      });
    });
    taken.get_future().wait();
    auto requested = std::async(std::launch::async, [&] {
      return VipConnectPeerRequest(vi, local.get(), remote.get(), 10000);
    });
    auto destroyed = std::async(std::launch::async, [&] { return VipDestroyVi(vi); });
    std::this_thread::sleep_for(20ms);
    EXPECT_EQ(state(vi), VIP_STATE_IDLE);
    released.set_value();
    busy.join();
    if (requested.get() == VIP_SUCCESS) {
      EXPECT_EQ(destroyed.get(), VIP_INVALID_STATE);
      EXPECT_EQ(VipConnectPeerDone(vi, nullptr), VIP_NOT_DONE);
      EXPECT_EQ(VipDisconnect(vi), VIP_SUCCESS);
      EXPECT_EQ(VipDestroyVi(vi), VIP_SUCCESS);
    } else {
      EXPECT_EQ(destroyed.get(), VIP_SUCCESS);
    }
  }
}

// What VipDestroyVi refuses stays as it is: the attempt goes on.
TEST_F(Lifetime, AnAttemptThatDestroyingMeets) {
  const VIP_VI_HANDLE vi = make_vi();
  Address local(nic, "one"), remote(nic, "two");
  ASSERT_EQ(VipConnectPeerRequest(vi, local.get(), remote.get(), 10000), VIP_SUCCESS);
  EXPECT_EQ(VipDestroyVi(vi), VIP_INVALID_STATE);
  EXPECT_EQ(VipConnectPeerDone(vi, nullptr), VIP_NOT_DONE);
  EXPECT_EQ(VipDisconnect(vi), VIP_SUCCESS);
  EXPECT_EQ(VipConnectPeerDone(vi, nullptr), VIP_INVALID_STATE);
  EXPECT_EQ(VipDestroyVi(vi), VIP_SUCCESS);
}

TEST_F(Lifetime, RequestsOfANicThatCloses) {
  VIP_VI_ATTRIBUTES attributes = vi_attributes();
  int round = 0;
  for (const auto stop = Clock::now() + 1s; Clock::now() < stop; ++round) {
    VIP_NIC_HANDLE closed = nullptr;
    ASSERT_EQ(VipOpenNic("fake0", &closed), VIP_SUCCESS);
    std::vector<std::thread> threads;
    for (int i = 0; i < 4; ++i) {
      VIP_VI_HANDLE vi = nullptr;
      ASSERT_EQ(VipCreateVi(closed, &attributes, nullptr, nullptr, &vi), VIP_SUCCESS);
      threads.emplace_back([this, vi] {
        Address local(nic, "local"), remote(nic, "nobody");
        while (VipConnectRequest(vi, local.get(), remote.get(), 50, nullptr) !=
               VIP_INVALID_PARAMETER) {
        }
      });
    }
    std::this_thread::sleep_for(std::chrono::microseconds(round % 50 * 20));
    EXPECT_EQ(VipCloseNic(closed), VIP_SUCCESS);
    for (std::thread& thread : threads) thread.join();
  }
}

// A thread polls a send that failed in the middle of another's VipDisconnect; the event thread is
// late. The connection that is made next has nothing to do with that.
TEST_F(Lifetime, AFailureOfTheOldConnection) {
  const VIP_VI_HANDLE a = make_vi(), b = make_client(), b2 = make_client();
  connect_by_request(a, b);
  auto second = std::async(std::launch::async, [&] { return request(other, b2, nic); });
  const VIP_CONN_HANDLE connection = wait_for_request();
  // The event thread waits for a lock.
  Completions& completions = Cq::find(make_cq(4))->completions();
  std::unique_lock late(completions.mutex());
  {
    const std::lock_guard lock(Fabric::get().mutex);
    static_cast<vi::fake::FakeDevice&>(Nic::find(nic)->device()).completion_event(&completions);
  }
  std::this_thread::sleep_for(50ms);
  std::unique_lock polling(Vi::find(a)->send_queue().completions().mutex());
  auto disconnected = std::async(std::launch::async, [&] { return VipDisconnect(a); });
  std::this_thread::sleep_for(50ms);
  Vi::find(a)->on_failed(CloseReason::transport);
  polling.unlock();
  EXPECT_EQ(disconnected.get(), VIP_SUCCESS);
  Vi::find(a)->on_failed(CloseReason::transport);  // later still
  auto accepted = std::async(std::launch::async, [&] { return VipConnectAccept(connection, a); });
  std::this_thread::sleep_for(100ms);
  late.unlock();
  EXPECT_EQ(accepted.get(), VIP_SUCCESS);
  EXPECT_EQ(second.get(), VIP_SUCCESS);
  std::this_thread::sleep_for(100ms);
  EXPECT_EQ(state(a), VIP_STATE_CONNECTED);
  EXPECT_EQ(state(b2), VIP_STATE_CONNECTED);
}

// A peer that starts over after its connection had failed already.
TEST_F(Lifetime, AnotherAttemptAfterABrokenOne) {
  Reports& reports = report_errors(nic);
  const VIP_VI_HANDLE a = make_vi(), b = make_vi();
  Vi& vi = *Vi::find(a);
  ASSERT_EQ(vi.begin_pending(a), VIP_SUCCESS);
  for (std::size_t i = 1; i <= 3; ++i) {
    (void)vi.card();
    ASSERT_TRUE(vi.establish(Vi::find(b)->card()));
    vi.on_failed(CloseReason::host_silent);
    EXPECT_EQ(reports.get(i).size(), i);
    vi.on_attempt_failed(true);
  }
  EXPECT_EQ(VipDisconnect(a), VIP_SUCCESS);
}

// The device has no queue pair left for another attempt.
TEST_F(Lifetime, AnotherAttemptWithoutAQueuePair) {
  const VIP_VI_HANDLE a = make_vi(), b = make_vi();
  Vi& vi = *Vi::find(a);
  ASSERT_EQ(vi.begin_pending(a), VIP_SUCCESS);
  Fabric::get().unable_to_prepare = true;
  Fabric::get().refusals = 1;
  vi.on_attempt_failed(true);
  Fabric::get().unable_to_prepare = false;
  Fabric::get().refusals = 0;
  (void)vi.card();
  EXPECT_FALSE(vi.establish(Vi::find(b)->card()));
  vi.on_attempt_failed(false);
  EXPECT_EQ(vi.begin_pending(a), VIP_SUCCESS) << "there is one again";
  vi.on_attempt_failed(false);
}

// ---- what the other side is told ----

class Told : public Lifetime {
 protected:
  Told() { connect_anew(); }
  void connect_anew(VIP_CQ_HANDLE cq = nullptr) {
    a = make_vi(cq, cq);
    b = make_client();
    connect_by_request(a, b);
  }
  void expect_told(VIP_ERROR_CODE code) {
    const auto errors = theirs.get(1);
    EXPECT_EQ(errors[0].ErrorCode, code);
    EXPECT_EQ(errors[0].ViHandle, b);
    EXPECT_EQ(state(b), VIP_STATE_ERROR);
    theirs.expect_only(1);
    theirs.all.clear();
  }

  Reports &theirs = report_errors(other = open()), &ours = report_errors(nic);
  VIP_VI_HANDLE a = nullptr, b = nullptr;
};

// Nobody looks at the queue in which the send has failed.
TEST_F(Told, AMessageMetNoReceive) {
  VIP_DESCRIPTOR* const send = memory->send(1, 0, "x");
  post_send(a, send);
  for (const auto end = Clock::now() + 10s; Clock::now() < end && state(a) == VIP_STATE_CONNECTED;)
    std::this_thread::sleep_for(1ms);
  EXPECT_EQ(state(a), VIP_STATE_ERROR);
  expect_told(VIP_ERROR_RECVQ_EMPTY);
  expect_send_error(a, send, VIP_STATUS_TRANSPORT_ERROR);
  ours.expect_none();
}

TEST_F(Told, AWriteWasNotAllowed) {
  const VIP_CQ_HANDLE cq = make_cq(8);
  connect_anew(cq);
  VIP_DESCRIPTOR* const write =
      memory->rdma(1, VIP_CONTROL_OP_RDMAWRITE, 0, 8, memory->data(), memory->handle());
  VIP_DESCRIPTOR* const nothing = memory->rdma(0, VIP_CONTROL_OP_RDMAWRITE, 0, 0, nullptr, 0);
  post_send(a, nothing);
  post_send(a, write);  // that memory is of another NIC handle
  post_receive(a, memory->message(2, 0, 10));
  expect_told(VIP_ERROR_RDMAW_PROT);
  // What the library has taken from the device is there for the program in the same order.
  for (const VIP_BOOLEAN receive : {VIP_FALSE, VIP_FALSE, VIP_TRUE}) {
    VIP_VI_HANDLE vi = nullptr;
    VIP_BOOLEAN of_receives = VIP_FALSE;
    ASSERT_EQ(VipCQDone(cq, &vi, &of_receives), VIP_SUCCESS);
    EXPECT_EQ(vi, a);
    EXPECT_EQ(of_receives, receive);
  }
  expect_sent(a, nothing);
  expect_send_error(a, write, VIP_STATUS_RDMA_PROT_ERROR);
  expect_receive_error(a, memory->descriptor(2), VIP_STATUS_DESC_FLUSHED_ERROR);
}

// The program looks at the other queue, and then it may even disconnect.
TEST_F(Told, TheAnswerIsFlushed) {
  for (const bool disconnects : {false, true}) {
    post_receive(a, memory->message(0, 0, 10));
    post_send(a, memory->send(1, 0, "x"));
    VIP_DESCRIPTOR* d = nullptr;
    EXPECT_EQ(VipRecvWait(a, 10000, &d), VIP_DESCRIPTOR_ERROR);
    expect_error(d, memory->descriptor(0), VIP_STATUS_DESC_FLUSHED_ERROR);
    if (disconnects) {
      EXPECT_EQ(VipDisconnect(a), VIP_SUCCESS);
    }
    expect_told(VIP_ERROR_RECVQ_EMPTY);
    expect_send_error(a, memory->descriptor(1), VIP_STATUS_TRANSPORT_ERROR);
    if (!disconnects) connect_anew();
  }
}

TEST_F(Told, WhoSendsDisconnectsAtOnce) {
  for (int round = 0; round < 3; ++round) {
    VIP_DESCRIPTOR* const send = memory->send(1, 0, "x");
    post_send(a, send);
    EXPECT_EQ(VipDisconnect(a), VIP_SUCCESS);
    expect_told(VIP_ERROR_RECVQ_EMPTY);
    expect_send_error(a, send, VIP_STATUS_TRANSPORT_ERROR);
    ours.expect_none();
    connect_anew();
  }
}

// A server that adopts what the caller has can accept.
TEST_F(Told, TheCallersQualityOfService) {
  VIP_VI_ATTRIBUTES attributes = vi_attributes();
  for (const VIP_QOS quality : {VIP_QOS{nullptr}, VIP_QOS{&attributes}}) {
    attributes.QoS = quality;
    VIP_VI_HANDLE client = nullptr;
    ASSERT_EQ(VipCreateVi(other, &attributes, nullptr, nullptr, &client), VIP_SUCCESS);
    Address here(nic, "server");
    auto requested = std::async(std::launch::async, [&] { return request(other, client, nic); });
    VIP_CONN_HANDLE connection = nullptr;
    VIP_VI_ATTRIBUTES told{};
    ASSERT_EQ(VipConnectWait(nic, here.get(), 10000, nullptr, &told, &connection), VIP_SUCCESS);
    EXPECT_EQ(told.QoS != nullptr, quality != nullptr);
    const VIP_VI_HANDLE server = make_vi(nullptr, nullptr, told);
    const VIP_RETURN accepted = VipConnectAccept(connection, server);
    EXPECT_EQ(accepted, VIP_SUCCESS);
    if (accepted != VIP_SUCCESS) VipConnectReject(connection);
    EXPECT_EQ(requested.get(), accepted == VIP_SUCCESS ? VIP_SUCCESS : VIP_REJECT);
  }
}

// ---- making against closing ----

// A VI is being made, with a CQ that goes meanwhile, because the NIC is closed.
TEST_F(Lifetime, AViOfANicThatCloses) {
  // The next VI will be in the same place, whose locks are there for ever.
  VIP_VI_ATTRIBUTES attributes = vi_attributes();
  const VIP_VI_HANDLE before = make_vi();
  WorkQueue& queue = Vi::find(before)->receive_queue();
  ASSERT_EQ(VipDestroyVi(before), VIP_SUCCESS);
  const VIP_NIC_HANDLE closed = open();
  VIP_CQ_HANDLE cq = nullptr;
  ASSERT_EQ(VipCreateCQ(closed, 8, &cq), VIP_SUCCESS);
  std::unique_lock late(queue.post_mutex());
  auto made = std::async(std::launch::async, [&] {
    VIP_VI_HANDLE vi = nullptr;
    return VipCreateVi(closed, &attributes, cq, cq, &vi);
  });
  std::this_thread::sleep_for(50ms);
  auto ended = std::async(std::launch::async, [&] { return VipCloseNic(closed); });
  ASSERT_EQ(ended.wait_for(10s), std::future_status::ready);
  EXPECT_EQ(ended.get(), VIP_SUCCESS);
  late.unlock();
  EXPECT_EQ(made.get(), VIP_ERROR_RESOURCE);
  const VIP_CQ_HANDLE next = make_cq(8);
  EXPECT_EQ(VipDestroyCQ(next), VIP_SUCCESS) << "nothing is attached to it";
}

// ---- handlers ----

struct Calls {
  std::atomic<int> made{0};
  std::atomic<bool> slow{true};
  void one() {
    ++made;
    if (slow) std::this_thread::sleep_for(100ms);
  }
  static void of_queue(VIP_PVOID context, VIP_NIC_HANDLE, VIP_VI_HANDLE, VIP_DESCRIPTOR*) {
    static_cast<Calls*>(context)->one();
  }
  static void of_cq(VIP_PVOID context, VIP_NIC_HANDLE, VIP_VI_HANDLE, VIP_BOOLEAN) {
    static_cast<Calls*>(context)->one();
  }
};

TEST_F(Lifetime, HandlersOfAViThatIsDestroyed) {
  Calls calls;
  const VIP_VI_HANDLE vi = make_vi(), stays = make_vi();
  for (std::size_t i = 0; i < 5; ++i) {
    post_send(vi, memory->send(i, 0, "x"));
    ASSERT_EQ(VipSendNotify(vi, &calls, &Calls::of_queue), VIP_SUCCESS);
  }
  Calls others;
  post_send(stays, memory->send(5, 0, "x"));
  ASSERT_EQ(VipSendNotify(stays, &others, &Calls::of_queue), VIP_SUCCESS);
  EXPECT_EQ(VipDestroyVi(vi), VIP_SUCCESS);
  const int then = calls.made;
  for (int i = 0; i < 500 && others.made == 0; ++i) std::this_thread::sleep_for(10ms);
  EXPECT_EQ(others.made, 1);
  EXPECT_LE(calls.made, then + 1) << "one may have been on its way";
}

TEST_F(Lifetime, HandlersOfACqThatIsDestroyed) {
  Calls calls;
  const VIP_CQ_HANDLE cq = make_cq(8);
  const VIP_VI_HANDLE vi = make_vi(cq, nullptr);
  for (std::size_t i = 0; i < 5; ++i) {
    post_send(vi, memory->send(i, 0, "x"));
    ASSERT_EQ(VipCQNotify(cq, &calls, &Calls::of_cq), VIP_SUCCESS);
  }
  EXPECT_EQ(VipDestroyVi(vi), VIP_SUCCESS);
  EXPECT_EQ(VipDestroyCQ(cq), VIP_SUCCESS);
  const int then = calls.made;
  std::this_thread::sleep_for(300ms);
  EXPECT_LE(calls.made, then + 1) << "one may have been on its way";
}

TEST_F(Lifetime, HandlersOfANicThatIsClosed) {
  Calls calls;
  VIP_NIC_HANDLE closed = nullptr;
  ASSERT_EQ(VipOpenNic("fake0", &closed), VIP_SUCCESS);
  VIP_VI_ATTRIBUTES attributes = vi_attributes();
  VIP_VI_HANDLE vi = nullptr;
  ASSERT_EQ(VipCreateVi(closed, &attributes, nullptr, nullptr, &vi), VIP_SUCCESS);
  const Memory its_memory(closed, nullptr);
  for (std::size_t i = 0; i < 10; ++i) {
    ASSERT_EQ(VipPostSend(vi, its_memory.send(i, 0, "x"), its_memory.handle()), VIP_SUCCESS);
    ASSERT_EQ(VipSendNotify(vi, &calls, &Calls::of_queue), VIP_SUCCESS);
  }
  const std::shared_ptr<Nic> a_thread_is_inside = Nic::find(closed);
  EXPECT_EQ(VipCloseNic(closed), VIP_SUCCESS);
  const int then = calls.made;
  std::this_thread::sleep_for(250ms);
  EXPECT_EQ(calls.made, then);
}

// ---- fork() ----

// A process that is killed is noticed although a child of it lives on.
TEST_F(Lifetime, AKilledProcessThatHasForked) {
#ifdef __SANITIZE_THREAD__
  GTEST_SKIP() << "ThreadSanitizer has no threads in children of processes with threads";
#endif
  Reports& reports = report_errors(nic);
  const VIP_VI_HANDLE a = make_vi();
  int grandchild[2];
  ASSERT_EQ(::pipe(grandchild), 0);
  const pid_t child = ::fork();
  if (child == 0) {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    const VIP_NIC_HANDLE own = open();
    VIP_VI_ATTRIBUTES attributes = vi_attributes();
    VIP_VI_HANDLE vi = nullptr;
    VipCreateVi(own, &attributes, nullptr, nullptr, &vi);
    if (request(own, vi, own) != VIP_SUCCESS) ::_exit(1);
    const pid_t pid = ::fork();
    if (pid == 0) {
      ::alarm(60);
      for (;;) ::pause();
    }
    [[maybe_unused]] const auto n = ::write(grandchild[1], &pid, sizeof pid);
    for (;;) ::pause();
  }
  ASSERT_GT(child, 0);
  ASSERT_EQ(VipConnectAccept(wait_for_request(), a), VIP_SUCCESS);
  pid_t pid = 0;
  ASSERT_EQ(::read(grandchild[0], &pid, sizeof pid), static_cast<ssize_t>(sizeof pid));
  ::kill(child, SIGKILL);
  ::waitpid(child, nullptr, 0);
  EXPECT_EQ(reports.get(1)[0].ErrorCode, VIP_ERROR_CONN_LOST);
  EXPECT_EQ(state(a), VIP_STATE_ERROR);
  ::kill(pid, SIGKILL);
  ::close(grandchild[0]);
  ::close(grandchild[1]);
}

// A child that cleans up what is its parent's does no harm.
TEST_F(Lifetime, HandlesOfTheParent) {
  const VIP_VI_HANDLE a = make_vi(), b = make_client(), idle = make_vi(), c = make_client();
  const VIP_CQ_HANDLE cq = make_cq(4);
  connect_by_request(a, b);
  auto waiting = std::async(std::launch::async, [&] { return request(other, c, nic); });
  const VIP_CONN_HANDLE connection = wait_for_request();
  VIP_VI_ATTRIBUTES attributes = vi_attributes();
  Calls calls;
  const auto child = [&] {
    const std::array results{VipDisconnect(a),
                             VipDestroyVi(a),
                             VipQueryVi(a, nullptr, nullptr, nullptr, nullptr),
                             VipSetViAttributes(idle, &attributes),
                             VipSendNotify(a, &calls, &Calls::of_queue),
                             VipRecvNotify(a, &calls, &Calls::of_queue),
                             VipCQNotify(cq, &calls, &Calls::of_cq),
                             VipResizeCQ(cq, 8),
                             VipDestroyCQ(cq),
                             VipConnectReject(connection),
                             VipConnectAccept(connection, idle),
                             VipCloseNic(nic)};
    for (std::size_t i = 0; i < results.size(); ++i)
      if (results[i] != VIP_INVALID_PARAMETER) ::_exit(static_cast<int>(i) + 1);
    ::_exit(0);
  };
  EXPECT_EXIT(child(), testing::ExitedWithCode(0), "");
  std::this_thread::sleep_for(50ms);
  EXPECT_EQ(state(a), VIP_STATE_CONNECTED);
  EXPECT_EQ(state(b), VIP_STATE_CONNECTED);
  EXPECT_EQ(VipConnectAccept(connection, idle), VIP_SUCCESS);
  EXPECT_EQ(waiting.get(), VIP_SUCCESS);
}

}  // namespace
}  // namespace viaduct::vipl::test
