// Making connections when incarnations end and begin in the middle of it.
#include <gtest/gtest.h>

#include "tests/link/sim_world.hpp"

namespace viaduct::link::test {
namespace {

using Bytes = std::vector<std::byte>;

FrameType type_of(const Bytes& frame) {
  const auto& header = *reinterpret_cast<const FrameHeader*>(frame.data());
  return static_cast<FrameType>(header.version_type & 15);
}

bool has_cookie(const Bytes& frame) {
  Handshake h;
  if (type_of(frame) != FrameType::hello) return false;
  std::memcpy(&h, frame.data() + kFrameHeader, sizeof h);
  return h.cookie != 0;
}

struct LinkHandshake : ::testing::Test {
  World world;
  Node& a = world.add();
  Node& b = world.add();
  std::vector<std::string> got_a, got_b;
  std::vector<DownReason> down_a, down_b;

  LinkHandshake() {
    watch(a, got_a, down_a);
    watch(b, got_b, down_b);
  }
  static void watch(Node& node, std::vector<std::string>& got, std::vector<DownReason>& down) {
    node.sink.message = [&got](const Incoming& m) {
      got.emplace_back(reinterpret_cast<const char*>(m.bytes.data()), m.bytes.size());
      return RxResult::consumed;
    };
    node.sink.down = [&down](PeerId, const Address&, DownReason r) { down.push_back(r); };
  }
  void start_again(Node& node, std::uint64_t seed) {
    LinkConfig config;
    config.seed = seed;
    node.start(config);
  }
  // b's second hello reaches a, and b is dead before the welcome reaches it; b restarts.
  void leave_a_half_open() {
    b.link->connect(b.link->peer(a.address()), world.net.now());
    world.run_until([&] { return !a.link->peers().empty(); }, milliseconds{1});
    ASSERT_EQ(a.link->peers().size(), 1u);
    world.kill(b);
    start_again(b, 78);
    world.run(milliseconds{1});
  }
  bool run_until_idle(Duration span) {
    return world.run_until([this] { return a.link->idle() && b.link->idle(); }, span);
  }
};

// Whoever has been given a token, or knows the seed, can tell nobody else's.
TEST(LinkSecrets, DoNotComeFromTheSeed) {
  const auto first_hello = [] {
    World world;
    Node& a = world.add();
    Handshake told{};
    world.net.hook = [&told](std::uint32_t, Bytes& frame) {
      std::memcpy(&told, frame.data() + kFrameHeader, sizeof told);
      return true;
    };
    a.link->connect(a.link->peer(world.add().address()), world.net.now());
    return told;
  };
  const Handshake one = first_hello(), other = first_hello();
  EXPECT_EQ(one.sequence[0], other.sequence[0]) << "the same seed";
  EXPECT_NE(one.token, other.token);
  EXPECT_NE(one.seed, other.seed);
  EXPECT_NE(one.token, one.seed);
}

TEST_F(LinkHandshake, AHalfOpenConnectionOfADeadLifeDoesNotStandInTheWay) {
  leave_a_half_open();
  world.run(milliseconds{2500}, milliseconds{1});  // however near its end that one is
  const PeerId peer = a.link->peer(b.address());
  EXPECT_EQ(send_text(a, peer, "hello", world.net.now()), SendStatus::sent);
  EXPECT_TRUE(run_until_idle(milliseconds{200}));
  EXPECT_EQ(got_b, std::vector<std::string>{"hello"});
  EXPECT_TRUE(down_a.empty());
}

TEST_F(LinkHandshake, AHelloOfADeadLifeDoesNotEndOurOwnKnocking) {
  Bytes old_hello;
  world.net.hook = [&](std::uint32_t port, Bytes& bytes) {
    if (port == 0) return type_of(bytes) == FrameType::retry;
    if (!has_cookie(bytes)) return true;
    old_hello = bytes;
    return false;
  };
  b.link->connect(b.link->peer(a.address()), world.net.now());
  ASSERT_TRUE(world.run_until([&] { return !old_hello.empty(); }, milliseconds{10}));
  world.kill(b);
  start_again(b, 78);
  send_text(a, a.link->peer(b.address()), "hello", world.net.now());  // is lost
  world.net.hook = nullptr;
  world.net.inject(*b.port, old_hello);
  world.run(microseconds{10});
  ASSERT_EQ(a.link->view(a.link->peer(b.address())).state, PeerState::accept_sent);
  EXPECT_TRUE(run_until_idle(milliseconds{200}));
  EXPECT_EQ(got_b, std::vector<std::string>{"hello"});
  EXPECT_TRUE(down_a.empty());
}

// A peer that has only been named is not given up because its hello led to nothing.
TEST_F(LinkHandshake, AStrayHelloDoesNotEndAPeerThatNobodyAskedFor) {
  const PeerId peer = a.link->peer(b.address());
  leave_a_half_open();
  world.run(seconds{12}, milliseconds{1});
  EXPECT_TRUE(down_a.empty());
  EXPECT_EQ(a.link->peer(b.address()), peer);
  EXPECT_EQ(send_text(a, peer, "hello", world.net.now()), SendStatus::sent);
  EXPECT_TRUE(run_until_idle(milliseconds{200}));
  EXPECT_EQ(got_b, std::vector<std::string>{"hello"});
}

TEST_F(LinkHandshake, CrossingHellosMeasureNoRoundTrip) {
  const PeerId peer = a.link->peer(b.address());
  a.link->connect(peer, world.net.now());
  world.net.step(world.net.now() + microseconds{5});  // just before a's hello arrives
  ASSERT_TRUE(b.link->peers().empty());
  b.link->connect(b.link->peer(a.address()), world.net.now());
  ASSERT_TRUE(world.run_until([&] { return a.link->connected(peer); }, milliseconds{1}));
  const Duration measured = a.link->view(peer).round_trip;
  EXPECT_TRUE(measured == Duration{0} || measured >= microseconds{10}) << measured.count();
}

TEST_F(LinkHandshake, NobodyConnectsToItself) {
  EXPECT_FALSE(a.link->peer(a.address()));
  EXPECT_TRUE(a.link->peers().empty());
}

// A caller that computes for a while reads its welcome when the other side has forgotten it.
TEST_F(LinkHandshake, AWelcomeThatIsReadTooLateIsNoConnection) {
  LinkConfig patient;
  patient.seed = 79;
  patient.dead_after = std::chrono::hours{1};  // as MPI has it
  a.start(patient);
  const PeerId peer = a.link->peer(b.address());
  EXPECT_EQ(send_text(a, peer, "hello", world.net.now()), SendStatus::sent);
  while (b.link->peers().empty()) {
    world.net.step(world.net.now() + microseconds{20});
    if (b.link->peers().empty()) a.link->poll(world.net.now());
    b.link->poll(world.net.now());
  }
  for (int i = 0; i < 5000; ++i) {  // a does not poll
    world.net.step(world.net.now() + milliseconds{1});
    b.link->poll(world.net.now());
  }
  EXPECT_TRUE(b.link->peers().empty());
  EXPECT_TRUE(run_until_idle(milliseconds{200}));
  EXPECT_EQ(got_b, std::vector<std::string>{"hello"});
  EXPECT_TRUE(down_a.empty());
}

// Both knock, and the answer to our hello is late: the peer has connected, said goodbye and is
// gone. Messages of it that a handler has still to take keep it in the table.
TEST_F(LinkHandshake, AnAnswerAfterTheGoodbyeBeginsNothing) {
  Bytes late_retry;
  int hellos = 0;
  world.net.hook = [&](std::uint32_t port, Bytes& bytes) {
    if (port == 0) hellos += type_of(bytes) == FrameType::hello;
    if (port == 0 || type_of(bytes) != FrameType::retry) return true;
    late_retry = bytes;
    return false;
  };
  const PeerId peer = a.link->peer(b.address());
  a.link->connect(peer, world.net.now());
  b.link->connect(b.link->peer(a.address()), world.net.now());
  ASSERT_TRUE(world.run_until([&] { return a.link->connected(peer); }, milliseconds{10}));
  ASSERT_FALSE(late_retry.empty());
  bool busy = true;
  a.sink.message = [&](const Incoming&) {
    return busy ? RxResult::backpressure : RxResult::consumed;
  };
  send_text(b, b.link->peer(a.address()), "waits", world.net.now());
  world.run(milliseconds{1});
  b.link->disconnect(b.link->peer(a.address()), world.net.now());
  world.run(milliseconds{1});
  ASSERT_EQ(a.link->view(peer).state, PeerState::draining);
  hellos = 0;
  world.net.inject(*a.port, late_retry);
  world.run(microseconds{10});
  EXPECT_EQ(hellos, 0);
  busy = false;
  world.run(milliseconds{1});
  EXPECT_EQ(down_a, std::vector<DownReason>{DownReason::left});
}

// A user who connects anew as soon as it hears of the restart finds the new incarnation.
TEST_F(LinkHandshake, WhoeverConnectsAtOnceToARestartedPeerEndsNothing) {
  send_text(a, a.link->peer(b.address()), "before", world.net.now());
  ASSERT_TRUE(run_until_idle(milliseconds{10}));
  b.sink.down = [&](PeerId, const Address& address, DownReason r) {
    down_b.push_back(r);
    send_text(b, b.link->peer(address), "welcome back", world.net.now());
  };
  world.kill(a);
  start_again(a, 77);
  send_text(a, a.link->peer(b.address()), "after", world.net.now());
  world.run(milliseconds{100});
  EXPECT_EQ(down_b, std::vector{DownReason::restarted});
  EXPECT_TRUE(down_a.empty());
  EXPECT_EQ(got_b, (std::vector<std::string>{"before", "after"}));
  EXPECT_EQ(got_a, std::vector<std::string>{"welcome back"});
  EXPECT_EQ(b.link->peers().size(), 1u);
}

// A frame of the incarnation that got our first welcome does not confirm the incarnation that we
// have welcomed since.
TEST_F(LinkHandshake, AnEarlierLifeDoesNotSpeakForALaterOne) {
  Bytes ack;
  world.net.hook = [&](std::uint32_t port, Bytes& bytes) {
    if (port == 0) return true;
    if (type_of(bytes) == FrameType::ack) ack = bytes;
    return type_of(bytes) == FrameType::hello;
  };
  b.link->connect(b.link->peer(a.address()), world.net.now());
  ASSERT_TRUE(world.run_until([&] { return !ack.empty(); }, milliseconds{1}));
  world.kill(b);
  world.net.hook = [&](std::uint32_t port, Bytes& bytes) {  // no welcome
    return port != 0 || type_of(bytes) == FrameType::retry;
  };
  start_again(b, 78);
  send_text(b, b.link->peer(a.address()), "hello", world.net.now());
  world.run(microseconds{100});
  world.net.hook = nullptr;
  const auto wrong = a.link->counters()[Counter::drop_token];
  world.net.inject(*b.port, ack);
  world.run(microseconds{100});
  EXPECT_EQ(a.link->counters()[Counter::drop_token], wrong + 1);
  EXPECT_EQ(a.link->counters()[Counter::peers_up], 0u);
  EXPECT_TRUE(run_until_idle(milliseconds{200}));
  EXPECT_EQ(got_a, std::vector<std::string>{"hello"});
  EXPECT_TRUE(down_a.empty());
}

}  // namespace
}  // namespace viaduct::link::test
