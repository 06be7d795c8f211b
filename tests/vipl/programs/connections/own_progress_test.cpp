// NICs that their program drives: no threads, blocking functions, sleeping, events of outcomes.
#include <poll.h>

#include <filesystem>
#include <random>
#include <thread>

#include "tests/vipl/programs/connections/own_nics.hpp"

namespace viaduct::vipl_test {
namespace {

std::size_t threads() {
  std::size_t n = 0;
  for ([[maybe_unused]] const auto& entry : std::filesystem::directory_iterator("/proc/self/task"))
    ++n;
  return n;
}

// The kernel removes a thread's entry a moment after the thread has been joined, also those of NICs
// that were closed before.
bool threads_fall_to(std::size_t count) {
  return eventually([&] { return threads() <= count; });
}

// One NIC that the program drives, one with threads.
class OwnProgress : public testing::Test {
 protected:
  OwnProgress() { EXPECT_VIP(VIP_SUCCESS, VipNicOwnProgress(a_, VIP_FALSE)); }

  static int descriptor(const Nic& nic) {
    int fd = -1;
    EXPECT_VIP(VIP_SUCCESS, VipNicDescriptor(nic, &fd));
    return fd;
  }
  // False: nothing woke it in time.
  static bool sleep_on(const Nic& nic, VIP_ULONG timeout = kSoon) {
    pollfd ready{descriptor(nic), POLLIN, 0};
    return ::poll(&ready, 1, static_cast<int>(timeout)) == 1;
  }
  // Sleeps until the condition holds, with nothing but the descriptor to wake it.
  bool sleep_until(VIP_CQ_HANDLE cq, const std::function<bool()>& condition) {
    while (!condition()) {
      const VIP_RETURN armed = VipNicArm(a_, &cq, cq != nullptr ? 1 : 0);
      if (armed == VIP_SUCCESS && !condition() && !sleep_on(a_)) return false;
      EXPECT_TRUE(armed == VIP_SUCCESS || armed == VIP_NOT_DONE) << name(armed);
      VipNicProgress(a_);
    }
    return true;
  }

  Nic a_{kNicNames[0]}, b_{kNicNames[1]};
};

TEST(OwnProgressThreads, NoThreadIsLeft) {
  Nic nic(kNicNames[0]);
  const std::size_t with_two = threads();
  EXPECT_VIP(VIP_SUCCESS, VipNicOwnProgress(nic, VIP_FALSE));
  EXPECT_TRUE(threads_fall_to(with_two - 2));
  EXPECT_EQ(VIP_TRUE, nic.attributes().ThreadSafe);  // as it was opened
  VIP_NIC_ATTRIBUTES now;
  EXPECT_VIP(VIP_SUCCESS, VipQueryNic(nic, &now));
  EXPECT_EQ(VIP_FALSE, now.ThreadSafe);
}

TEST_F(OwnNics, NoThreadComesLater) {
  const std::size_t before = threads();
  VipErrorCallback(a_, nullptr, [](VIP_PVOID, VIP_ERROR_DESCRIPTOR*) {});
  const Vi one(a_), two(b_);
  EXPECT_VIP(VIP_SUCCESS, ask(one, b_, "n1", "n2"));
  EXPECT_VIP(VIP_SUCCESS, ask(two, a_, "n2", "n1"));
  EXPECT_VIP(VIP_SUCCESS, outcome(one));
  EXPECT_VIP(VIP_SUCCESS, outcome(two));
  exchange(one, two);
  exchange(two, one);
  EXPECT_TRUE(threads_fall_to(before));
}

TEST_F(OwnProgress, OnlyRightAfterOpening) {
  EXPECT_VIP(VIP_INVALID_STATE, VipNicOwnProgress(a_, VIP_FALSE));
  {
    const Vi vi(b_);
    EXPECT_VIP(VIP_INVALID_STATE, VipNicOwnProgress(b_, VIP_FALSE));
  }
  {
    const Cq cq(b_, 4);
    EXPECT_VIP(VIP_INVALID_STATE, VipNicOwnProgress(b_, VIP_FALSE));
  }
  EXPECT_VIP(VIP_SUCCESS, VipNicOwnProgress(b_, VIP_FALSE));
}

TEST_F(OwnProgress, BadParameters) {
  const Cq mine(a_, 4), others(b_, 4);
  VIP_CQ_HANDLE cqs[] = {mine, others};
  int fd = -1;
  VIP_CONNECT_EVENT event;
  EXPECT_VIP(VIP_INVALID_PARAMETER, VipNicOwnProgress(no_handle(), VIP_FALSE));
  EXPECT_VIP(VIP_INVALID_PARAMETER, VipNicProgress(no_handle()));
  EXPECT_VIP(VIP_INVALID_PARAMETER, VipNicProgress(mine));
  EXPECT_VIP(VIP_INVALID_PARAMETER, VipNicDescriptor(no_handle(), &fd));
  EXPECT_VIP(VIP_INVALID_PARAMETER, VipNicDescriptor(a_, nullptr));
  EXPECT_VIP(VIP_INVALID_PARAMETER, VipNicArm(no_handle(), cqs, 1));
  EXPECT_VIP(VIP_INVALID_PARAMETER, VipNicArm(a_, nullptr, 1));
  EXPECT_VIP(VIP_INVALID_PARAMETER, VipNicArm(a_, cqs, 2));
  EXPECT_VIP(VIP_INVALID_PARAMETER, VipConnectEvent(no_handle(), &event));
  EXPECT_VIP(VIP_INVALID_PARAMETER, VipConnectEvent(a_, nullptr));
  EXPECT_VIP(VIP_SUCCESS, VipNicArm(a_, cqs, 1));
  EXPECT_VIP(VIP_SUCCESS, VipNicArm(a_, nullptr, 0));
  EXPECT_VIP(VIP_NOT_DONE, VipConnectEvent(a_, &event));
  // A NIC with threads.
  EXPECT_VIP(VIP_INVALID_STATE, VipNicProgress(b_));
  EXPECT_VIP(VIP_INVALID_STATE, VipNicDescriptor(b_, &fd));
  EXPECT_VIP(VIP_INVALID_STATE, VipNicArm(b_, &cqs[1], 1));
  EXPECT_VIP(VIP_INVALID_STATE, VipConnectEvent(b_, &event));
}

TEST_F(OwnProgress, BlockingFunctionsLook) {
  const Vi client(a_), server(b_);
  connect(client, server);  // VipConnectRequest of the NIC that is driven
  const Vi other_client(b_), other_server(a_);
  connect(other_client, other_server);  // VipConnectWait, VipConnectAccept
  const Memory out(b_, 1, 64), in(a_, 1, 64);
  ASSERT_VIP(VIP_SUCCESS, VipPostRecv(client, in.receive(0, 64), in.handle()));
  std::thread other([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds{kMoment});
    EXPECT_VIP(VIP_SUCCESS, VipPostSend(server, out.send(0, 4), out.handle()));
  });
  EXPECT_EQ(in.raw(0), next_received(client));
  other.join();
  EXPECT_EQ(out.raw(0), next_sent(server));
  // Times that pass.
  const Cq cq(a_, 4);
  VIP_VI_HANDLE vi;
  VIP_BOOLEAN receive;
  EXPECT_VIP(VIP_TIMEOUT, VipCQWait(cq, kMoment, &vi, &receive));
  const Vi lonely(a_);
  Address local(a_, fresh_discriminator()), remote(b_, "nobody");
  VIP_VI_ATTRIBUTES attributes;
  EXPECT_VIP(VIP_NO_MATCH, VipConnectRequest(lonely, local, remote, kSoon, &attributes));
  EXPECT_VIP(VIP_SUCCESS, VipConnectPeerRequest(lonely, local, remote, kMoment));
  EXPECT_VIP(VIP_TIMEOUT, VipConnectPeerWait(lonely, &attributes));
}

// Messages at random times from the other NIC, whose threads send them; none is slept through.
TEST_F(OwnProgress, NoWakeUpIsLost) {
  constexpr std::size_t kMessages = 400;
  const Memory out(b_, 1, 64), in(a_, 2, 64);
  const Cq cq(a_, 8);
  const Vi receiver(a_, vi_attributes(), nullptr, cq), sender(b_);
  connect(sender, receiver);
  for (std::size_t i = 0; i < 2; ++i)
    ASSERT_VIP(VIP_SUCCESS, VipPostRecv(receiver, in.receive(i, 64), in.handle()));
  std::atomic<std::size_t> received{0};
  std::thread other([&] {
    std::minstd_rand random(7);
    for (std::size_t i = 0; i < kMessages; ++i) {
      std::this_thread::sleep_for(std::chrono::microseconds{random() % 300});
      EXPECT_VIP(VIP_SUCCESS, VipPostSend(sender, out.send(0, 4), out.handle()));
      EXPECT_EQ(out.raw(0), next_sent(sender));
      if (!eventually([&] { return received > i; })) return;
    }
  });
  EXPECT_TRUE(sleep_until(cq, [&] {
    VIP_VI_HANDLE vi;
    VIP_BOOLEAN receive;
    while (VipCQDone(cq, &vi, &receive) == VIP_SUCCESS) {
      VIP_DESCRIPTOR* d = nullptr;
      EXPECT_VIP(VIP_SUCCESS, VipRecvDone(vi, &d));
      if (d == nullptr) return true;
      d->CS.Length = 64;
      EXPECT_VIP(VIP_SUCCESS, VipPostRecv(receiver, d, in.handle()));
      ++received;
    }
    return received == kMessages;
  }));
  other.join();
  EXPECT_EQ(kMessages, received);
}

TEST_F(OwnProgress, TheDescriptorWakesForConnections) {
  const Vi one(a_), two(b_);
  const std::string discriminator = fresh_discriminator();
  Address local(a_, discriminator), remote(b_, discriminator);
  VIP_VI_ATTRIBUTES attributes;
  std::thread other([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds{kMoment});
    EXPECT_VIP(VIP_SUCCESS, VipConnectPeerRequest(two, remote, local, kSoon));
    EXPECT_VIP(VIP_SUCCESS, VipConnectPeerWait(two, &attributes));
  });
  VIP_CONNECT_EVENT event{};
  EXPECT_VIP(VIP_SUCCESS, VipConnectPeerRequest(one, local, remote, kSoon));
  EXPECT_VIP(VIP_NOT_DONE, VipConnectEvent(a_, &event));
  EXPECT_TRUE(sleep_until(nullptr, [&] { return VipConnectEvent(a_, &event) == VIP_SUCCESS; }));
  EXPECT_VIP(VIP_SUCCESS, event.Outcome);
  other.join();
  // A timer: the end of an attempt.
  const Vi lonely(a_);
  EXPECT_VIP(VIP_SUCCESS, VipConnectPeerRequest(lonely, local, remote, 2 * kMoment));
  EXPECT_TRUE(sleep_until(nullptr, [&] { return VipConnectEvent(a_, &event) == VIP_SUCCESS; }));
  EXPECT_VIP(VIP_TIMEOUT, event.Outcome);
}

// Two handles of one device, each at a port of its own; that of the busy one is nobody else's.
TEST_F(OwnProgress, APortOfItsOwn) {
  Nic c(kNicNames[0]), busy(kNicNames[0]);
  const auto address = [](const Nic& nic) {
    const VIP_UINT8* const bytes = nic.attributes().LocalNicAddress;
    return std::vector<VIP_UINT8>(bytes, bytes + 6);
  };
  const auto common = address(c);
  EXPECT_VIP(VIP_SUCCESS, VipNicOwnProgress(c, VIP_TRUE));
  EXPECT_VIP(VIP_SUCCESS, VipNicOwnProgress(busy, VIP_TRUE));
  EXPECT_NE(common, address(c));
  EXPECT_NE(address(busy), address(c));
  EXPECT_TRUE(std::equal(common.begin(), common.begin() + 4, address(c).begin()));
  for (int i = 0; i < 5; ++i) {
    const Vi one(c), two(b_);
    const std::string discriminator = fresh_discriminator();
    Address local(c, discriminator), remote(b_, discriminator);
    EXPECT_VIP(VIP_SUCCESS, VipConnectPeerRequest(two, remote, local, kSoon));
    EXPECT_VIP(VIP_SUCCESS, VipConnectPeerRequest(one, local, remote, kSoon));
    VIP_VI_ATTRIBUTES attributes;
    EXPECT_VIP(VIP_SUCCESS, VipConnectPeerWait(one, &attributes));
    EXPECT_VIP(VIP_SUCCESS, VipConnectPeerWait(two, &attributes));
  }
}

TEST_F(OwnProgress, HandlersRunInProgress) {
  struct Heard {
    std::thread::id thread;
    int times = 0;
  } heard;
  VipErrorCallback(a_, &heard, [](VIP_PVOID context, VIP_ERROR_DESCRIPTOR* error) {
    auto& it = *static_cast<Heard*>(context);
    it.thread = std::this_thread::get_id();
    EXPECT_EQ(VIP_ERROR_CONN_LOST, error->ErrorCode);
    ++it.times;
  });
  const Vi one(a_), two(b_);
  connect(one, two);
  EXPECT_VIP(VIP_SUCCESS, VipDisconnect(two));
  EXPECT_EQ(0, heard.times);
  EXPECT_TRUE(sleep_until(nullptr, [&] { return heard.times != 0; }));
  EXPECT_EQ(1, heard.times);
  EXPECT_EQ(std::this_thread::get_id(), heard.thread);
}

// A handler that becomes due between two looks, of an entry that is there when it is registered.
TEST_F(OwnProgress, AHandlerThatIsDueWakes) {
  const Memory out(b_, 1, 64), in(a_, 1, 64);
  const Cq cq(a_, 4);
  const Vi receiver(a_, vi_attributes(), nullptr, cq), sender(b_);
  connect(sender, receiver);
  ASSERT_VIP(VIP_SUCCESS, VipPostRecv(receiver, in.receive(0, 64), in.handle()));
  ASSERT_VIP(VIP_SUCCESS, VipPostSend(sender, out.send(0, 4), out.handle()));
  EXPECT_EQ(out.raw(0), next_sent(sender));
  VIP_CQ_HANDLE handle = cq;
  EXPECT_TRUE(eventually([&] { return VipNicArm(a_, &handle, 1) == VIP_NOT_DONE; }));
  EXPECT_TRUE(
      eventually([&] { return VipNicArm(a_, nullptr, 0) == VIP_SUCCESS && !sleep_on(a_, 0); }));
  int calls = 0;
  EXPECT_VIP(VIP_SUCCESS, VipCQNotify(cq, &calls, [](VIP_PVOID context, auto, auto, auto) {
               ++*static_cast<int*>(context);
             }));
  EXPECT_TRUE(sleep_on(a_, 0));
  EXPECT_EQ(0, calls);
  VipNicProgress(a_);
  EXPECT_EQ(1, calls);
}

// What a handler has noted is no reason to sleep for a program that looked before.
TEST_F(OwnProgress, NoSleepAfterAHandler) {
  int calls = 0;
  VipErrorCallback(a_, &calls,
                   [](VIP_PVOID context, VIP_ERROR_DESCRIPTOR*) { ++*static_cast<int*>(context); });
  const Vi one(a_), two(b_);
  connect(one, two);
  EXPECT_VIP(VIP_SUCCESS, VipDisconnect(two));
  VIP_RETURN armed = VIP_SUCCESS;
  EXPECT_TRUE(eventually([&] {
    armed = VipNicArm(a_, nullptr, 0);
    return calls != 0;
  }));
  EXPECT_VIP(VIP_NOT_DONE, armed);
}

// ---- outcomes ----

using NicEvents = OwnNics;

TEST_F(NicEvents, SayWhatAndWhom) {
  VIP_VI_ATTRIBUTES with_writes = vi_attributes();
  with_writes.EnableRdmaWrite = VIP_TRUE;
  const Vi one(a_, with_writes), two(b_);
  EXPECT_VIP(VIP_SUCCESS, ask(one, b_, "a's", "b's"));
  EXPECT_EQ(VIP_STATE_CONNECT_PENDING, one.state());
  EXPECT_VIP(VIP_SUCCESS, ask(two, a_, "b's", "a's"));
  ASSERT_TRUE(turn_until([&] { return outcomes_.size() == 2; }));
  VIP_CONNECT_EVENT& event = outcomes_[two].at(0);
  EXPECT_VIP(VIP_SUCCESS, event.Outcome);
  EXPECT_EQ(VIP_TRUE, event.RemoteViAttribs.EnableRdmaWrite);
  EXPECT_EQ(3, event.LocalAddr.Address.DiscriminatorLen);
  EXPECT_EQ(6, event.RemoteAddr.Address.HostAddressLen);
  EXPECT_EQ(0, std::memcmp("a's", event.RemoteAddr.Address.HostAddress + 6, 3));
  EXPECT_TRUE(asked_.empty());
  exchange(one, two);
  // Told once, by whatever call.
  VIP_VI_ATTRIBUTES attributes;
  EXPECT_VIP(VIP_INVALID_STATE, VipConnectPeerDone(one, &attributes));
}

TEST_F(NicEvents, DoneTakesTheOutcomeToo) {
  const Vi one(a_), two(b_);
  EXPECT_VIP(VIP_SUCCESS, ask(one, b_, "d", "d"));
  EXPECT_VIP(VIP_SUCCESS, ask(two, a_, "d", "d"));
  VIP_VI_ATTRIBUTES attributes;
  EXPECT_TRUE(eventually([&] {
    VipNicProgress(a_);
    VipNicProgress(b_);
    return VipConnectPeerDone(one, &attributes) == VIP_SUCCESS;
  }));
  EXPECT_VIP(VIP_SUCCESS, outcome(two));
  EXPECT_TRUE(outcomes_.empty());
}

TEST_F(NicEvents, EndsThatAreNone) {
  const Vi late(a_), called_off(a_), put_off(a_), other(b_);
  EXPECT_VIP(VIP_SUCCESS, ask(late, b_, "1", "1", kMoment));
  EXPECT_VIP(VIP_SUCCESS, ask(called_off, b_, "2", "2"));
  turn();
  turn();
  EXPECT_VIP(VIP_SUCCESS, VipDisconnect(called_off));
  EXPECT_VIP(VIP_SUCCESS, ask(put_off, b_, "3", "3"));
  EXPECT_VIP(VIP_SUCCESS, VipDisconnect(put_off));  // before anything was done
  EXPECT_EQ(VIP_STATE_IDLE, put_off.state());
  EXPECT_VIP(VIP_TIMEOUT, outcome(late));
  EXPECT_EQ(VIP_STATE_IDLE, late.state());
  turn_for_a_moment();
  EXPECT_TRUE(outcomes_.empty());
}

// What is posted while the VI waits for its queue pair.
TEST_F(NicEvents, ReceivesArePostedWhilePutOff) {
  const Vi one(a_), two(b_);
  const Memory in(a_, 1, 64), out(b_, 1, 64);
  EXPECT_VIP(VIP_SUCCESS, ask(one, b_, "3", "3"));
  ASSERT_VIP(VIP_SUCCESS, VipPostRecv(one, in.receive(0, 64), in.handle()));
  EXPECT_VIP(VIP_SUCCESS, ask(two, a_, "3", "3"));
  EXPECT_VIP(VIP_SUCCESS, outcome(one));
  EXPECT_VIP(VIP_SUCCESS, outcome(two));
  ASSERT_VIP(VIP_SUCCESS, VipPostSend(two, out.send(0, 4), out.handle()));
  EXPECT_EQ(in.raw(0), next_received(one));
  EXPECT_EQ(out.raw(0), next_sent(two));
}

// A port of a process's own, which is closed when the process ends.
TEST_F(NicEvents, NobodyListensAtTheAddress) {
  auto gone = std::make_unique<Nic>(kNicNames[1]);
  ASSERT_VIP(VIP_SUCCESS, VipNicOwnProgress(*gone, VIP_TRUE));
  Address local(a_, "x"), remote(*gone, "y");
  gone.reset();
  const Vi vi(a_);
  ASSERT_VIP(VIP_SUCCESS, VipConnectPeerRequest(vi, local, remote, 500));
  EXPECT_VIP(VIP_NO_MATCH, outcome(vi));
}

TEST_F(NicEvents, AttributesThatDiffer) {
  VIP_VI_ATTRIBUTES shorter = vi_attributes();
  shorter.MaxTransferSize = 1000;
  const Vi one(a_), two(b_, shorter);
  EXPECT_VIP(VIP_SUCCESS, ask(one, b_, "m", "m"));
  EXPECT_VIP(VIP_SUCCESS, ask(two, a_, "m", "m"));
  EXPECT_VIP(VIP_INVALID_MTU, outcome(one));
  EXPECT_VIP(VIP_INVALID_MTU, outcome(two));
}

// Each of many, whichever is first, and none twice.
TEST_F(NicEvents, OfManyPendingVis) {
  constexpr std::size_t kVis = 24;
  std::vector<std::unique_ptr<Vi>> ones, twos;
  for (std::size_t i = 0; i < kVis; ++i) {
    ones.push_back(std::make_unique<Vi>(a_));
    twos.push_back(std::make_unique<Vi>(b_));
  }
  for (std::size_t i = 0; i < kVis; ++i)
    ASSERT_VIP(VIP_SUCCESS, ask(*ones[i], b_, "many" + std::to_string(i), "x" + std::to_string(i)));
  for (std::size_t i = kVis; i-- > 0;)
    ASSERT_VIP(VIP_SUCCESS, ask(*twos[i], a_, "x" + std::to_string(i), "many" + std::to_string(i)));
  ASSERT_TRUE(turn_until([&] { return outcomes_.size() == 2 * kVis; }));
  for (const auto& [vi, events] : outcomes_) {
    ASSERT_EQ(1u, events.size());
    EXPECT_VIP(VIP_SUCCESS, events[0].Outcome);
  }
  exchange(*ones[0], *twos[0]);
  exchange(*twos[kVis - 1], *ones[kVis - 1]);
}

// ---- lost connections ----

// What the handler of a NIC's errors was told, by its program's thread only.
class Lost {
 public:
  explicit Lost(const Nic& nic) : nic_(nic) {
    VipErrorCallback(nic_, this, [](VIP_PVOID context, VIP_ERROR_DESCRIPTOR* error) {
      auto& lost = *static_cast<Lost*>(context);
      EXPECT_EQ(lost.thread_, std::this_thread::get_id());
      EXPECT_EQ(VIP_ERROR_CONN_LOST, error->ErrorCode);
      EXPECT_EQ(VIP_RESOURCE_VI, error->ResourceCode);
      lost.vis.push_back(error->ViHandle);
    });
  }
  ~Lost() { VipErrorCallback(nic_, nullptr, nullptr); }
  std::vector<VIP_VI_HANDLE> vis;

 private:
  const VIP_NIC_HANDLE nic_;
  const std::thread::id thread_ = std::this_thread::get_id();
};

TEST_F(NicEvents, ALostConnectionIsReported) {
  const Lost lost(a_);
  const Vi one(a_), two(b_), another(a_), stays(b_);
  for (const auto& [left, right] : {std::pair(&one, &two), std::pair(&another, &stays)}) {
    const std::string discriminator = fresh_discriminator();
    ASSERT_VIP(VIP_SUCCESS, ask(*left, b_, discriminator, discriminator));
    ASSERT_VIP(VIP_SUCCESS, ask(*right, a_, discriminator, discriminator));
    EXPECT_VIP(VIP_SUCCESS, outcome(*left));
    EXPECT_VIP(VIP_SUCCESS, outcome(*right));
  }
  EXPECT_VIP(VIP_SUCCESS, VipDisconnect(two));
  EXPECT_TRUE(turn_until([&] { return !lost.vis.empty(); }));
  EXPECT_EQ(VIP_STATE_ERROR, one.state());
  turn_for_a_moment();
  EXPECT_EQ(std::vector<VIP_VI_HANDLE>{one}, lost.vis);
  EXPECT_TRUE(outcomes_.empty());
  EXPECT_EQ(VIP_STATE_CONNECTED, another.state());
  // Once it is idle it can be connected again.
  EXPECT_VIP(VIP_SUCCESS, VipDisconnect(one));
  ASSERT_VIP(VIP_SUCCESS, ask(one, b_, "again", "again"));
  ASSERT_VIP(VIP_SUCCESS, ask(two, a_, "again", "again"));
  EXPECT_VIP(VIP_SUCCESS, outcome(one));
  EXPECT_VIP(VIP_SUCCESS, outcome(two));
  exchange(one, two);
}

TEST_F(NicEvents, LostBeforeItsOutcomeIsTaken) {
  const Lost lost(a_);
  const Vi one(a_), two(b_);
  ASSERT_VIP(VIP_SUCCESS, ask(one, b_, "l", "l"));
  ASSERT_VIP(VIP_SUCCESS, ask(two, a_, "l", "l"));
  VIP_VI_ATTRIBUTES attributes;
  EXPECT_TRUE(eventually([&] {
    VipNicProgress(a_);
    VipNicProgress(b_);
    return VipConnectPeerDone(two, &attributes) == VIP_SUCCESS;
  }));
  EXPECT_VIP(VIP_SUCCESS, VipDisconnect(two));
  EXPECT_TRUE(eventually([&] {
    VipNicProgress(a_);
    return !lost.vis.empty();
  }));
  EXPECT_EQ(std::vector<VIP_VI_HANDLE>{one}, lost.vis);
  EXPECT_VIP(VIP_SUCCESS, outcome(one));
  EXPECT_EQ(VIP_STATE_ERROR, one.state());
}

// The NIC is closed while requests wait for their turn, for an answer, and to be told.
TEST_F(NicEvents, ClosedWithRequestsUnderWay) {
  Nic c(kNicNames[0]);
  EXPECT_VIP(VIP_SUCCESS, VipNicOwnProgress(c, VIP_FALSE));
  Vi asks(c), is_put_off(c), is_told(c);
  const Vi other(b_);
  EXPECT_VIP(VIP_SUCCESS, ask(is_told, b_, "t", "t"));
  EXPECT_VIP(VIP_SUCCESS, ask(other, c, "t", "t"));
  EXPECT_VIP(VIP_SUCCESS, ask(asks, b_, "q", "q"));
  EXPECT_TRUE(eventually([&] {
    VipNicProgress(a_);
    VipNicProgress(b_);
    return VipNicProgress(c) == VIP_SUCCESS;
  }));
  EXPECT_VIP(VIP_SUCCESS, ask(is_put_off, b_, "p", "p"));
  for (Vi* vi : {&asks, &is_put_off, &is_told}) vi->forget();
}

}  // namespace
}  // namespace viaduct::vipl_test
