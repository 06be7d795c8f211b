// What a user of one link may rely on, case by case.
#include "drivers/link/link.hpp"

#include <gtest/gtest.h>

#include "tests/link/sim_world.hpp"

namespace viaduct::link::test {
namespace {

struct LinkTest : ::testing::Test {
  World world;
  Node& a = world.add();
  Node& b = world.add();
  std::vector<std::string> got;

  LinkTest() {
    b.sink.message = [this](const Incoming& m) {
      got.emplace_back(reinterpret_cast<const char*>(m.bytes.data()), m.bytes.size());
      return RxResult::consumed;
    };
  }
  PeerId connected() {
    const PeerId peer = a.link->peer(b.address());
    a.link->connect(peer, world.net.now());
    EXPECT_TRUE(world.run_until(
        [&] {
          return a.link->connected(peer) && !b.link->peers().empty() &&
                 b.link->connected(b.link->peers()[0]);
        },
        seconds{1}));
    return peer;
  }
  bool run_until_idle(Duration span = seconds{2}) {
    return world.run_until([this] { return a.link->idle() && b.link->idle(); }, span);
  }
};

TEST_F(LinkTest, ConnectsOnFirstUse) {
  int up = 0;
  a.sink.up = [&](PeerId, const Address& address) {
    ++up;
    EXPECT_EQ(address, b.address());
  };
  const PeerId peer = a.link->peer(b.address());
  EXPECT_EQ(a.link->counters()[Counter::frames_sent], 0u);
  EXPECT_EQ(send_text(a, peer, "hello", world.net.now()), SendStatus::sent);
  ASSERT_TRUE(run_until_idle());
  EXPECT_EQ(got, std::vector<std::string>{"hello"});
  EXPECT_EQ(up, 1);
  EXPECT_EQ(a.link->peer(b.address()), peer);
}

TEST_F(LinkTest, BothSidesMayConnectAtOnce) {
  int received_by_a = 0;
  a.sink.message = [&](const Incoming&) { return ++received_by_a, RxResult::consumed; };
  const PeerId to_b = a.link->peer(b.address());
  const PeerId to_a = b.link->peer(a.address());
  send_text(a, to_b, "from a", world.net.now());
  send_text(b, to_a, "from b", world.net.now());
  ASSERT_TRUE(run_until_idle());
  EXPECT_EQ(got.size(), 1u);
  EXPECT_EQ(received_by_a, 1);
  EXPECT_EQ(a.link->peers().size(), 1u);
  EXPECT_EQ(b.link->peers().size(), 1u);
}

// A handler may send with a later time than the poll has that calls it, after it has read the clock
// anew. What arrived in that poll still counts as heard of when the poll began.
TEST_F(LinkTest, APollKeepsItsTimeWhateverTimeAHandlerSendsWith) {
  const PeerId peer = connected();
  const PeerId back = b.link->peers()[0];
  int questions = 0;
  b.sink.message = [&](const Incoming& m) {
    ++questions;
    EXPECT_EQ(send_text(b, back, "answer", m.now + milliseconds{1}), SendStatus::sent);
    return RxResult::consumed;
  };
  for (int i = 0; i < 2; ++i) send_text(a, peer, "question", world.net.now());
  const Time now = world.net.now() + milliseconds{1};
  while (world.net.now() < now) world.net.step(now);
  b.link->poll(now);
  EXPECT_EQ(questions, 2);
  EXPECT_EQ(b.link->last_heard(back), now);
}

TEST_F(LinkTest, MessagesThatQueueUpShareAFrame) {
  const PeerId peer = connected();
  const auto before = a.link->counters()[Counter::frames_sent];
  for (int i = 0; i < 20; ++i)
    send_text(a, peer, "batch", world.net.now(), Lane::low, Order::ordered, Urgency::batch);
  ASSERT_TRUE(run_until_idle());
  EXPECT_EQ(got.size(), 20u);
  EXPECT_EQ(a.link->counters()[Counter::frames_sent] - before, 1u);
}

TEST_F(LinkTest, UrgentMessagesLeaveBeforeTheCallReturns) {
  const PeerId peer = connected();
  const auto before = a.link->counters()[Counter::frames_sent];
  send_text(a, peer, "now", world.net.now());
  EXPECT_EQ(a.link->counters()[Counter::frames_sent] - before, 1u);
}

TEST_F(LinkTest, UrgentMessagesShareFramesWhileSomeAreUnacknowledged) {
  const PeerId peer = connected();
  for (int round = 0; round < 8; ++round) {  // until there is credit for a burst
    for (int i = 0; i < 64; ++i) send_text(a, peer, "first", world.net.now());
    ASSERT_TRUE(run_until_idle());
  }
  got.clear();
  const std::uint64_t before = a.link->counters()[Counter::frames_sent];
  for (int i = 0; i < 64; ++i)
    ASSERT_EQ(send_text(a, peer, std::to_string(i), world.net.now()), SendStatus::sent);
  EXPECT_EQ(a.link->counters()[Counter::frames_sent], before + kMaxAlone);
  a.link->poll(world.net.now());  // nothing has arrived yet: it does not wait for that
  EXPECT_EQ(a.link->counters()[Counter::frames_sent], before + kMaxAlone + 1);
  ASSERT_TRUE(run_until_idle());
  ASSERT_EQ(got.size(), 64u);
  for (int i = 0; i < 64; ++i) EXPECT_EQ(got[static_cast<std::size_t>(i)], std::to_string(i));
}

TEST_F(LinkTest, SizesUpToTheLimitArriveAndLargerOnesAreRefused) {
  const PeerId peer = connected();
  const std::size_t most = a.link->max_message(peer);
  EXPECT_EQ(most, 1500 - kLinkHeader - kMessageHeader);
  const std::string full(most, 'x');
  EXPECT_EQ(send_text(a, peer, full, world.net.now()), SendStatus::sent);
  EXPECT_EQ(send_text(a, peer, full + "x", world.net.now()), SendStatus::too_big);
  EXPECT_EQ(send_text(a, peer, "", world.net.now()), SendStatus::sent);
  ASSERT_TRUE(run_until_idle());
  EXPECT_EQ(got, (std::vector<std::string>{full, ""}));
}

TEST_F(LinkTest, BeforeTheMtuIsKnownLargeMessagesMustWait) {
  const PeerId peer = a.link->peer(b.address());
  const std::string large(1000, 'x');
  EXPECT_EQ(send_text(a, peer, large, world.net.now()), SendStatus::try_again);
  ASSERT_TRUE(world.run_until([&] { return a.link->connected(peer); }, seconds{1}));
  EXPECT_EQ(send_text(a, peer, large, world.net.now()), SendStatus::sent);
}

TEST_F(LinkTest, ABusySinkPushesBackAndLosesNothing) {
  const PeerId peer = connected();
  bool busy = true;
  std::vector<std::string> taken;
  b.sink.message = [&](const Incoming& m) {
    if (busy) return RxResult::backpressure;
    taken.emplace_back(reinterpret_cast<const char*>(m.bytes.data()), m.bytes.size());
    return RxResult::consumed;
  };
  int sent = 0;
  for (; sent < 100000; ++sent) {
    if (send_text(a, peer, std::to_string(sent), world.net.now()) != SendStatus::sent) break;
    if (sent % 10 == 0) world.run(microseconds{20});
  }
  EXPECT_LT(sent, 100000) << "no back-pressure";
  EXPECT_LE(b.link->frames_held(), b.link->config().max_window);
  busy = false;
  ASSERT_TRUE(run_until_idle());
  ASSERT_EQ(taken.size(), static_cast<std::size_t>(sent));
  for (int i = 0; i < sent; ++i) EXPECT_EQ(taken[static_cast<std::size_t>(i)], std::to_string(i));
}

// Low and bulk are never drained; high still moves, for as long as anybody likes.
TEST_F(LinkTest, UndrainedLanesNeverStopHigh) {
  const PeerId peer = connected();
  int high = 0;
  b.sink.message = [&](const Incoming& m) {
    if (m.lane != Lane::high) return RxResult::backpressure;
    ++high;
    return RxResult::consumed;
  };
  int sent = 0;
  const std::string large(1400, 'x');
  const auto feed = [&] {
    for (Lane lane : {Lane::low, Lane::bulk})
      for (int i = 0; i < 4; ++i)
        send_text(a, peer, large, world.net.now(), lane, Order::unordered, Urgency::batch);
    if (sent == high && sent < 20000 &&
        send_text(a, peer, "h", world.net.now(), Lane::high) == SendStatus::sent)
      ++sent;
    return high == 20000;
  };
  ASSERT_TRUE(world.run_until(feed, seconds{20}));
  EXPECT_EQ(a.link->view(peer).lanes[0].backlog, 0u);
  EXPECT_GT(a.link->view(peer).lanes[1].backlog, 0u);
  EXPECT_GT(a.link->view(peer).lanes[2].backlog, 0u);
}

TEST_F(LinkTest, UnorderedMessagesPassAGap) {
  const PeerId peer = connected();
  int frames = 0;
  world.net.hook = [&](std::uint32_t port, std::vector<std::byte>&) {
    return port != 0 || frames++ != 0;  // the first is lost
  };
  for (const char* text : {"1", "2", "3"})
    send_text(a, peer, text, world.net.now(), Lane::bulk, Order::unordered);
  ASSERT_TRUE(run_until_idle());
  EXPECT_EQ(got, (std::vector<std::string>{"2", "3", "1"}));
}

TEST_F(LinkTest, ASilentPeerIsReportedOnceAndItsMemoryFreed) {
  const PeerId peer = connected();
  std::vector<DownReason> reasons;
  a.sink.down = [&](PeerId p, const Address&, DownReason r) {
    EXPECT_EQ(p, peer);
    reasons.push_back(r);
  };
  world.kill(b);
  for (int i = 0; i < 20; ++i) send_text(a, peer, "lost", world.net.now());
  EXPECT_TRUE(world.run_until([&] { return !reasons.empty(); }, seconds{10}, milliseconds{1}));
  world.run(seconds{10}, milliseconds{1});
  EXPECT_EQ(reasons, std::vector{DownReason::silent});
  EXPECT_EQ(a.link->frames_held(), 0u);
  EXPECT_EQ(a.port->frames_in_use(), 0u);
  EXPECT_TRUE(a.link->peers().empty());
  EXPECT_EQ(send_text(a, peer, "late", world.net.now()), SendStatus::peer_down);
}

// As memif does when the other end is killed.
TEST_F(LinkTest, APeerBehindADeviceThatTakesNothingIsGivenUpToo) {
  int down = 0;
  a.sink.down = [&](PeerId, const Address&, DownReason reason) {
    ++down;
    EXPECT_EQ(reason, DownReason::silent);
  };
  const PeerId peer = connected();
  a.port->set_transmit_burst(0);
  for (int i = 0; i < 100; ++i) send_text(a, peer, std::string(1000, 'x'), world.net.now());
  EXPECT_TRUE(world.run_until([&] { return down != 0; }, seconds{12}, milliseconds{1}));
  world.run(seconds{1}, milliseconds{1});
  EXPECT_EQ(down, 1);
}

TEST_F(LinkTest, AnIdlePeerThatDiesIsNoticedToo) {
  connected();
  int down = 0;
  a.sink.down = [&](PeerId, const Address&, DownReason) { ++down; };
  world.run(seconds{30}, milliseconds{1});
  EXPECT_EQ(down, 0) << "a live idle peer was given up";
  world.kill(b);
  world.run(seconds{8}, milliseconds{1});
  EXPECT_EQ(down, 1);
}

TEST_F(LinkTest, APauseOfOurOwnIsNotThePeersSilence) {
  connected();
  int down = 0;
  a.sink.down = [&](PeerId, const Address&, DownReason) { ++down; };
  b.sink.down = a.sink.down;
  // a computes for a long time without polling, b as well: nobody is dead.
  world.net.step(world.net.now() + seconds{60});
  world.run(seconds{1});
  EXPECT_EQ(down, 0);
}

TEST_F(LinkTest, AGoodbyeIsHeardAtOnce) {
  const PeerId peer = connected();
  std::vector<DownReason> reasons;
  b.sink.down = [&](PeerId, const Address&, DownReason r) { reasons.push_back(r); };
  a.link->disconnect(peer, world.net.now());
  world.run(milliseconds{1});
  EXPECT_EQ(reasons, std::vector{DownReason::left});
}

// What was acknowledged is delivered, however long a receive handler is busy, before the peer
// is gone.
TEST_F(LinkTest, WhatABusySinkHasYetToTakeOutlivesAGoodbye) {
  const PeerId peer = connected();
  const PeerId back = b.link->peers()[0];
  bool busy = true;
  std::vector<std::string> told;
  b.sink.message = [&](const Incoming& m) {
    if (busy) return RxResult::backpressure;
    told.emplace_back(reinterpret_cast<const char*>(m.bytes.data()), m.bytes.size());
    return RxResult::consumed;
  };
  b.sink.down = [&](PeerId p, const Address&, DownReason r) {
    EXPECT_EQ(p, back);
    EXPECT_EQ(r, DownReason::left);
    told.emplace_back("left");
  };
  send_text(b, back, "still unacknowledged", world.net.now());
  for (const char* text : {"1", "2"}) send_text(a, peer, text, world.net.now());
  ASSERT_TRUE(world.run_until([&] { return a.link->idle(peer); }, seconds{1}));
  a.link->disconnect(peer, world.net.now());
  world.run(milliseconds{1});
  EXPECT_TRUE(told.empty());
  EXPECT_FALSE(b.link->connected(back));
  EXPECT_TRUE(b.link->idle(back));
  EXPECT_EQ(send_text(b, back, "too late", world.net.now()), SendStatus::peer_down);
  EXPECT_TRUE(b.link->secure(back, Lane::high));
  // It may connect again meanwhile.
  send_text(a, a.link->peer(b.address()), "3", world.net.now());
  world.run(seconds{20}, milliseconds{1});
  EXPECT_TRUE(told.empty());
  busy = false;
  ASSERT_TRUE(run_until_idle());
  world.run(milliseconds{1});
  EXPECT_EQ(told, (std::vector<std::string>{"1", "2", "left", "3"}));
  EXPECT_EQ(b.port->frames_in_use(), 0u);
  EXPECT_EQ(b.link->peers().size(), 1u);
}

// The upkeep of a delivered frame waits for the next poll: by then its peer may have ended.
TEST_F(LinkTest, AGoodbyeRightBehindAMessageLosesNothing) {
  const PeerId peer = connected();
  world.run(milliseconds{1});
  int delivered = 0, down = 0;
  b.sink.message = [&](const Incoming&) {
    ++delivered;
    return RxResult::consumed;
  };
  b.sink.down = [&](PeerId, const Address&, DownReason) { ++down; };
  EXPECT_EQ(send_text(a, peer, "last words", world.net.now()), SendStatus::sent);
  a.link->disconnect(peer, world.net.now());
  while (world.net.step(world.net.now() + microseconds{20})) continue;
  b.link->poll(world.net.now());
  EXPECT_EQ(delivered, 1);
  EXPECT_EQ(down, 1);
  b.link->poll(world.net.now());
  EXPECT_EQ(b.port->frames_in_use(), 0u);
}

// A poll that comes late finds the answer and an overdue timer at once.
TEST_F(LinkTest, WhatIsAcknowledgedAlreadyIsNotProbedFor) {
  const PeerId peer = connected();
  b.sink.message = [&](const Incoming& m) {
    EXPECT_EQ(send_text(b, m.from, "answer", m.now), SendStatus::sent);
    return RxResult::consumed;
  };
  for (int i = 0; i < 10; ++i) {
    EXPECT_EQ(send_text(a, peer, "question", world.net.now()), SendStatus::sent);
    const Time late = world.net.now() + milliseconds{5};
    while (world.net.now() < late) {
      world.net.step(late);
      b.link->poll(world.net.now());
    }
    a.link->poll(world.net.now());
    a.link->poll(world.net.now());
  }
  EXPECT_EQ(a.link->counters()[Counter::probes], 0u);
}

TEST_F(LinkTest, ADeliveredFrameIsFreedWithTheLink) {
  const PeerId peer = connected();
  world.run(milliseconds{1});
  EXPECT_EQ(send_text(a, peer, "nobody polls again", world.net.now()), SendStatus::sent);
  while (world.net.step(world.net.now() + microseconds{20})) continue;
  b.link->poll(world.net.now());
  b.link.reset();
  EXPECT_EQ(b.port->frames_in_use(), 0u);
}

TEST_F(LinkTest, ARestartedPeerConnectsAgainAndTheOldLifeIsOver) {
  const PeerId peer = connected();
  const PeerId old_life_at_b = b.link->peers()[0];
  (void)old_life_at_b;
  std::vector<DownReason> reasons;
  b.sink.down = [&](PeerId, const Address&, DownReason r) { reasons.push_back(r); };
  send_text(a, peer, "before", world.net.now());
  ASSERT_TRUE(run_until_idle());
  world.kill(a);
  LinkConfig config;
  config.seed = 77;
  a.start(config);
  send_text(a, a.link->peer(b.address()), "after", world.net.now());
  ASSERT_TRUE(run_until_idle());
  EXPECT_EQ(got, (std::vector<std::string>{"before", "after"}));
  EXPECT_EQ(reasons, std::vector{DownReason::restarted});
  EXPECT_EQ(b.link->peers().size(), 1u);
}

TEST_F(LinkTest, NobodyAtTheAddressIsRefusedInBoundedTime) {
  std::vector<DownReason> reasons;
  a.sink.down = [&](PeerId, const Address&, DownReason r) { reasons.push_back(r); };
  const PeerId peer = a.link->peer(*Address::parse("02:00:00:00:00:99"));
  send_text(a, peer, "anybody?", world.net.now());
  world.run(seconds{10}, milliseconds{1});
  EXPECT_EQ(reasons, std::vector{DownReason::refused});
  EXPECT_EQ(a.port->frames_in_use(), 0u);
}

TEST_F(LinkTest, AnotherJobIsRefused) {
  LinkConfig config;
  config.seed = 5;
  config.job_key = 1;
  Node& c = world.add(config);
  std::vector<DownReason> reasons;
  c.sink.down = [&](PeerId, const Address&, DownReason r) { reasons.push_back(r); };
  send_text(c, c.link->peer(b.address()), "psst", world.net.now());
  world.run(seconds{10}, milliseconds{1});
  EXPECT_EQ(reasons, std::vector{DownReason::refused});
  EXPECT_GT(b.link->counters()[Counter::drop_job], 0u);
  EXPECT_TRUE(got.empty());
}

TEST(LinkMtu, TheSmallerOfTwoMtusIsUsed) {
  World world;
  Node& a = world.add({}, {.mtu = 9000});
  Node& b = world.add({}, {.mtu = 2000});
  const PeerId peer = a.link->peer(b.address());
  a.link->connect(peer, world.net.now());
  ASSERT_TRUE(world.run_until([&] { return a.link->connected(peer); }, seconds{1}));
  EXPECT_EQ(a.link->max_message(peer), 2000 - kLinkHeader - kMessageHeader);
}

TEST(LinkMtu, APathThatSwallowsFullFramesIsUsedWithSmallerOnes) {
  for (const std::size_t passes : {4000u, 1500u, 1492u, 1300u, 576u}) {
    sim::SimConfig net;
    net.path_mtu = passes;
    World world(net);
    Node& a = world.add({}, {.mtu = 9000});
    Node& b = world.add({}, {.mtu = 9000});
    const PeerId peer = a.link->peer(b.address());
    a.link->connect(peer, world.net.now());
    ASSERT_TRUE(
        world.run_until([&] { return a.link->connected(peer); }, seconds{3}, microseconds{100}));
    const std::size_t mtu = a.link->view(peer).mtu;
    EXPECT_LE(mtu, passes);
    EXPECT_GE(mtu, passes == 1492 || passes == 1300 ? 1280 : passes);
    EXPECT_GT(a.link->counters()[Counter::path_mtu_lowered], 0u);
    int got = 0;
    for (Node* node : {&a, &b})
      node->sink.message = [&](const Incoming&) { return ++got, RxResult::consumed; };
    const std::string message(a.link->max_message(peer), 'x');
    EXPECT_EQ(send_text(a, peer, message, world.net.now()), SendStatus::sent);
    ASSERT_TRUE(world.run_until([&] { return got == 1; }, milliseconds{10}));
    EXPECT_EQ(send_text(b, b.link->peers()[0], message, world.net.now()), SendStatus::sent);
    ASSERT_TRUE(world.run_until([&] { return got == 2; }, milliseconds{10}));
  }
}

// Each may find that out for itself.
TEST(LinkMtu, BothMayCallOverAPathThatSwallowsFullFrames) {
  sim::SimConfig net;
  net.path_mtu = 1500;
  World world(net);
  Node& a = world.add({}, {.mtu = 9000});
  Node& b = world.add({}, {.mtu = 9000});
  const PeerId to_b = a.link->peer(b.address()), to_a = b.link->peer(a.address());
  a.link->connect(to_b, world.net.now());
  world.run(milliseconds{40});
  b.link->connect(to_a, world.net.now());
  ASSERT_TRUE(world.run_until([&] { return a.link->connected(to_b) && b.link->connected(to_a); },
                              seconds{3}, microseconds{100}));
  EXPECT_EQ(a.link->view(to_b).mtu, 1500u);
  EXPECT_EQ(b.link->view(to_a).mtu, 1500u);
}

// A peer that does not poll answers nothing: that says nothing of sizes.
TEST(LinkMtu, ABusyPeerIsNotTakenForANarrowPath) {
  World world;
  Node& a = world.add({}, {.mtu = 9000});
  Node& b = world.add({}, {.mtu = 9000});
  const PeerId peer = a.link->peer(b.address());
  a.link->connect(peer, world.net.now());
  for (int i = 0; i < 40; ++i) {  // it polls once in 100 ms
    for (int k = 0; k < 50; ++k) {
      world.net.step(world.net.now() + milliseconds{2});
      a.link->poll(world.net.now());
    }
    b.link->poll(world.net.now());
  }
  ASSERT_TRUE(a.link->connected(peer));
  EXPECT_EQ(a.link->view(peer).mtu, 9000u);
}

TEST(LinkMtu, APathForNoUsableSizeIsAnErrorNotAStall) {
  sim::SimConfig net;
  net.path_mtu = 500;
  World world(net);
  Node& a = world.add({}, {.mtu = 9000});
  Node& b = world.add({}, {.mtu = 9000});
  std::vector<DownReason> reasons;
  a.sink.down = [&](PeerId, const Address&, DownReason r) { reasons.push_back(r); };
  send_text(a, a.link->peer(b.address()), "x", world.net.now());
  world.run(seconds{3}, microseconds{100});
  EXPECT_EQ(reasons, std::vector{DownReason::path_mtu});
}

TEST(LinkSetup, ImpossibleSettingsAreRefusedWithTheReason) {
  sim::SimNetwork net;
  sim::SimPort& port = net.add_port();
  LinkConfig config;
  config.max_window = kMaxWindow + 1;
  EXPECT_THROW(Link<sim::SimPort>(port, config), base::SetupError);
  config = {};
  config.max_peers = 0;
  EXPECT_THROW(Link<sim::SimPort>(port, config), base::SetupError);
  sim::SimPort& narrow = net.add_port({.mtu = 500});
  EXPECT_THROW(Link<sim::SimPort>(narrow, {}), base::SetupError);
}

TEST(LinkChecksum, GoesOnlyWhereBothSidesDoWithout) {
  for (const bool b_checks : {false, true}) {
    World world;
    LinkConfig without;
    without.checksum = false;
    without.seed = 3;
    Node& a = world.add(without);
    LinkConfig other = without;
    other.checksum = b_checks;
    other.seed = 4;
    Node& b = world.add(other);
    bool zero = true;
    world.net.hook = [&](std::uint32_t, std::vector<std::byte>& bytes) {
      const auto& header = *reinterpret_cast<const FrameHeader*>(bytes.data());
      if ((header.version_type & 15) == static_cast<int>(FrameType::data))
        zero = zero && header.checksum == 0;
      return true;
    };
    const PeerId peer = a.link->peer(b.address());
    a.link->connect(peer, world.net.now());
    ASSERT_TRUE(world.run_until([&] { return a.link->connected(peer); }, seconds{1}));
    send_text(a, peer, "x", world.net.now());
    ASSERT_TRUE(world.run_until([&] { return a.link->idle(); }, seconds{1}));
    EXPECT_EQ(zero, !b_checks);
  }
}

}  // namespace
}  // namespace viaduct::link::test
