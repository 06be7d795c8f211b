// The peer-to-peer model of connecting.
#include <thread>

#include "tests/vipl/programs/support/bed.hpp"

namespace viaduct::vipl_test {

namespace {

class Peers : public PairTest {
 protected:
  // Both ends use the same discriminator, as programs do.
  VIP_RETURN ask(const Vi& vi, const Nic& other, const std::string& discriminator,
                 VIP_ULONG timeout = kSoon) {
    Address local(vi.nic(), discriminator), remote(other, discriminator);
    return VipConnectPeerRequest(vi, local, remote, timeout);
  }
  VIP_RETURN wait(const Vi& vi) { return VipConnectPeerWait(vi, &attributes_); }
  VIP_RETURN poll(const Vi& vi) { return VipConnectPeerDone(vi, &attributes_); }
  // By polling.
  VIP_RETURN outcome(const Vi& vi) {
    VIP_RETURN code = VIP_NOT_DONE;
    eventually([&] {
      code = poll(vi);
      return code != VIP_NOT_DONE;
    });
    return code;
  }

  void exchange(const Vi& from, const Vi& to) {
    const Memory out(from.nic(), 1, 64), in(to.nic(), 1, 64);
    out.fill(0, "peer");
    ASSERT_VIP(VIP_SUCCESS, VipPostRecv(to, in.receive(0, 64), in.handle()));
    ASSERT_VIP(VIP_SUCCESS, VipPostSend(from, out.send(0, 4), out.handle()));
    EXPECT_EQ(out.raw(0), next_sent(from));
    EXPECT_EQ(in.raw(0), next_received(to));
    EXPECT_EQ("peer", in.text(0, 4));
  }

  VIP_VI_ATTRIBUTES attributes_{};
};

TEST_F(Peers, OneAfterTheOther) {
  VIP_VI_ATTRIBUTES with_writes = vi_attributes();
  with_writes.EnableRdmaWrite = VIP_TRUE;
  for (const bool a_first : {true, false}) {
    const Vi one(a_, with_writes), two(b_);
    const std::string discriminator = fresh_discriminator();
    const auto begin = [&](bool a) {
      return a ? ask(one, b_, discriminator) : ask(two, a_, discriminator);
    };
    ASSERT_VIP(VIP_SUCCESS, begin(a_first));
    EXPECT_EQ(VIP_STATE_CONNECT_PENDING, (a_first ? one : two).state());
    EXPECT_VIP(VIP_NOT_DONE, poll(a_first ? one : two));
    ASSERT_VIP(VIP_SUCCESS, begin(!a_first));
    EXPECT_VIP(VIP_SUCCESS, wait(one));
    EXPECT_EQ(VIP_FALSE, attributes_.EnableRdmaWrite);
    EXPECT_VIP(VIP_SUCCESS, wait(two));
    EXPECT_EQ(VIP_TRUE, attributes_.EnableRdmaWrite);
    EXPECT_EQ(VIP_SERVICE_RELIABLE_DELIVERY, attributes_.ReliabilityLevel);
    exchange(one, two);
    exchange(two, one);
  }
}

TEST_F(Peers, AtTheSameTime) {
  for (int round = 0; round < 20; ++round) {
    const Vi one(a_), two(b_);
    const std::string discriminator = fresh_discriminator();
    std::thread other([&] {
      EXPECT_VIP(VIP_SUCCESS, ask(two, a_, discriminator));
      VIP_VI_ATTRIBUTES attributes;
      EXPECT_VIP(VIP_SUCCESS, VipConnectPeerWait(two, &attributes));
    });
    EXPECT_VIP(VIP_SUCCESS, ask(one, b_, discriminator));
    EXPECT_VIP(VIP_SUCCESS, wait(one));
    other.join();
    exchange(one, two);
  }
}

TEST_F(Peers, BothOnOneNic) {
  const Vi one(a_), two(a_);
  const std::string discriminator = fresh_discriminator();
  // Equal addresses: whichever asks, the other is meant, never the VI itself.
  EXPECT_VIP(VIP_SUCCESS, ask(one, a_, discriminator));
  EXPECT_VIP(VIP_NOT_DONE, poll(one));
  EXPECT_VIP(VIP_SUCCESS, ask(two, a_, discriminator));
  EXPECT_VIP(VIP_SUCCESS, wait(two));
  EXPECT_VIP(VIP_SUCCESS, wait(one));
  exchange(one, two);
}

TEST_F(Peers, DoneIsSaidOnce) {
  const Vi one(a_), two(b_);
  const std::string discriminator = fresh_discriminator();
  EXPECT_VIP(VIP_SUCCESS, ask(one, b_, discriminator));
  EXPECT_VIP(VIP_SUCCESS, ask(two, a_, discriminator));
  EXPECT_VIP(VIP_SUCCESS, outcome(one));
  EXPECT_VIP(VIP_SUCCESS, outcome(two));
  EXPECT_VIP(VIP_INVALID_STATE, poll(one));
  EXPECT_VIP(VIP_INVALID_STATE, wait(one));
}

// The time runs from the request on, whoever waits when.
TEST_F(Peers, Timeout) {
  const Vi one(a_), two(a_);
  const auto start = std::chrono::steady_clock::now();
  const auto passed = [&] {
    return std::chrono::steady_clock::now() - start >= std::chrono::milliseconds{300};
  };
  EXPECT_VIP(VIP_SUCCESS, ask(one, b_, fresh_discriminator(), 300));
  EXPECT_VIP(VIP_SUCCESS, ask(two, b_, fresh_discriminator(), 300));
  EXPECT_VIP(VIP_TIMEOUT, wait(one));
  EXPECT_TRUE(passed());
  EXPECT_VIP(VIP_TIMEOUT, outcome(two));
  EXPECT_EQ(VIP_STATE_IDLE, one.state());
  EXPECT_VIP(VIP_INVALID_STATE, wait(one));
}

TEST_F(Peers, BadParametersAndStates) {
  const Vi one(a_), connected(a_), other(b_);
  const std::string discriminator = fresh_discriminator();
  Address local(a_, discriminator), remote(b_, discriminator);
  EXPECT_VIP(VIP_INVALID_PARAMETER, VipConnectPeerRequest(one, local, remote, 0));
  EXPECT_VIP(VIP_INVALID_PARAMETER, VipConnectPeerRequest(one, local, nullptr, kSoon));
  EXPECT_VIP(VIP_INVALID_PARAMETER, VipConnectPeerRequest(one, nullptr, remote, kSoon));
  EXPECT_VIP(VIP_INVALID_PARAMETER, VipConnectPeerRequest(no_handle(), local, remote, kSoon));
  EXPECT_VIP(VIP_INVALID_PARAMETER, VipConnectPeerDone(no_handle(), &attributes_));
  EXPECT_VIP(VIP_INVALID_PARAMETER, VipConnectPeerWait(no_handle(), &attributes_));
  EXPECT_VIP(VIP_INVALID_STATE, poll(one));
  EXPECT_VIP(VIP_INVALID_STATE, wait(one));
  connect(connected, other);
  EXPECT_VIP(VIP_INVALID_STATE, ask(connected, b_, discriminator));
  EXPECT_VIP(VIP_SUCCESS, ask(one, b_, discriminator));
  EXPECT_VIP(VIP_INVALID_STATE, ask(one, b_, discriminator));  // already pending
}

TEST_F(Peers, AttributesMustBeEqual) {
  VIP_VI_ATTRIBUTES shorter = vi_attributes();
  shorter.MaxTransferSize = 1000;
  VIP_VI_ATTRIBUTES better = vi_attributes();
  better.QoS = &better;
  const struct {
    VIP_VI_ATTRIBUTES attributes;
    VIP_RETURN code;
  } cases[] = {{vi_attributes(VIP_SERVICE_UNRELIABLE), VIP_INVALID_RELIABILITY_LEVEL},
               {shorter, VIP_INVALID_MTU},
               {better, VIP_INVALID_QOS}};
  for (const auto& c : cases) {
    const Vi one(a_), two(b_, c.attributes);
    const std::string discriminator = fresh_discriminator();
    EXPECT_VIP(VIP_SUCCESS, ask(one, b_, discriminator));
    EXPECT_VIP(VIP_SUCCESS, ask(two, a_, discriminator));
    EXPECT_VIP(c.code, wait(one));
    EXPECT_VIP(c.code, wait(two));
    EXPECT_EQ(VIP_STATE_IDLE, one.state());
  }
}

// Local(A) = Remote(B) and Remote(A) = Local(B), also when the discriminators differ.
TEST_F(Peers, BothAddressesMustMatch) {
  const Vi one(a_), two(b_), stranger(b_);
  Address a(a_, "a's"), b(b_, "b's"), else_a(a_, "another");
  EXPECT_VIP(VIP_SUCCESS, VipConnectPeerRequest(one, a, b, kSoon));
  EXPECT_VIP(VIP_SUCCESS, VipConnectPeerRequest(stranger, b, else_a, 500));
  EXPECT_VIP(VIP_TIMEOUT, wait(stranger));
  EXPECT_VIP(VIP_NOT_DONE, poll(one));
  EXPECT_VIP(VIP_SUCCESS, VipConnectPeerRequest(two, b, a, kSoon));
  EXPECT_VIP(VIP_SUCCESS, wait(two));
  EXPECT_VIP(VIP_SUCCESS, wait(one));
}

TEST_F(Peers, NeverMeetsAClientOrAServer) {
  const Vi peer(b_), client(a_);
  const std::string discriminator = fresh_discriminator();
  EXPECT_VIP(VIP_SUCCESS, ask(peer, a_, discriminator, 1000));
  Address local(a_, discriminator), remote(b_, discriminator), caller;
  EXPECT_VIP(VIP_NO_MATCH, VipConnectRequest(client, local, remote, kSoon, &attributes_));
  VIP_CONN_HANDLE connection;
  EXPECT_VIP(VIP_TIMEOUT, VipConnectWait(a_, local, kMoment, caller, &attributes_, &connection));
  EXPECT_VIP(VIP_TIMEOUT, wait(peer));
}

// ARMCI posts all requests, then waits for them one by one.
TEST_F(Peers, ManyPendingAtOnce) {
  constexpr std::size_t kVis = 32;
  std::vector<std::unique_ptr<Vi>> ones, twos;
  const std::string stem = fresh_discriminator() + ".";
  for (std::size_t i = 0; i < kVis; ++i) {
    ones.push_back(std::make_unique<Vi>(a_));
    ASSERT_VIP(VIP_SUCCESS, ask(*ones.back(), b_, stem + std::to_string(i)));
  }
  for (std::size_t i = kVis; i-- > 0;) {
    twos.push_back(std::make_unique<Vi>(b_));
    ASSERT_VIP(VIP_SUCCESS, ask(*twos.back(), a_, stem + std::to_string(i)));
  }
  for (const auto& vi : ones) ASSERT_VIP(VIP_SUCCESS, wait(*vi));
  for (const auto& vi : twos) ASSERT_VIP(VIP_SUCCESS, wait(*vi));
  exchange(*ones[0], *twos[kVis - 1]);
  exchange(*twos[0], *ones[kVis - 1]);
}

TEST_F(Peers, DisconnectCallsARequestOff) {
  const Vi one(a_), two(b_), three(b_);
  const std::string discriminator = fresh_discriminator();
  EXPECT_VIP(VIP_SUCCESS, ask(one, b_, discriminator));
  std::thread other([&] { EXPECT_VIP(VIP_INVALID_STATE, VipConnectPeerWait(one, &attributes_)); });
  std::this_thread::sleep_for(std::chrono::milliseconds{kMoment});
  EXPECT_VIP(VIP_SUCCESS, VipDisconnect(one));
  other.join();
  EXPECT_EQ(VIP_STATE_IDLE, one.state());
  EXPECT_VIP(VIP_SUCCESS, ask(two, a_, discriminator, 300));
  EXPECT_VIP(VIP_TIMEOUT, wait(two));
  // And it can ask again.
  EXPECT_VIP(VIP_SUCCESS, ask(one, b_, discriminator));
  EXPECT_VIP(VIP_SUCCESS, ask(three, a_, discriminator));
  EXPECT_VIP(VIP_SUCCESS, wait(one));
  EXPECT_VIP(VIP_SUCCESS, wait(three));
}

}  // namespace

}  // namespace viaduct::vipl_test
