// Credits: no receiver is ever overrun, whoever sends; memory follows traffic, not peers.
#include <gtest/gtest.h>

#include <iostream>

#include "tests/link/sim_world.hpp"

namespace viaduct::link::test {
namespace {

// Many senders at full speed, a receiver with a small ring that takes nothing: everything stops,
// nothing is dropped for want of memory; then it takes, and everything arrives.
TEST(LinkCredit, ManySendersNeverOverrunOneReceiver) {
  constexpr int kSenders = 60, kMessages = 40;
  World world;
  LinkConfig config;
  Node& sink = world.add(config, {.pool = 1024, .receive_ring = 256});
  std::vector<int> got(kSenders, 0);
  bool busy = true;
  sink.sink.message = [&](const Incoming& m) {
    if (busy) return RxResult::backpressure;
    std::uint32_t from;
    std::memcpy(&from, m.bytes.data(), sizeof(from));
    ++got[from];
    return RxResult::consumed;
  };
  std::vector<int> sent(kSenders, 0);
  for (int i = 0; i < kSenders; ++i) world.add(config, {.pool = 256, .receive_ring = 64});
  const auto feed = [&] {
    for (std::uint32_t i = 0; i < kSenders; ++i) {
      Node& node = *world.nodes[i + 1];
      const PeerId peer = node.link->peer(sink.address());
      std::byte body[500]{};
      std::memcpy(body, &i, sizeof(i));
      while (sent[i] < kMessages &&
             node.link->try_send(peer, Lane::low, Order::ordered, kTestMessage, {}, body,
                                 Urgency::now, world.net.now()) == SendStatus::sent)
        ++sent[i];
    }
  };
  world.run_until([&] { return feed(), false; }, milliseconds{50}, microseconds{50});
  EXPECT_EQ(sink.port->overruns(), 0u);
  EXPECT_LE(sink.link->frames_held(), 256u);
  EXPECT_GT(sink.link->frames_held(), 10u);
  busy = false;
  EXPECT_TRUE(world.run_until(
      [&] {
        feed();
        return std::all_of(got.begin(), got.end(), [](int n) { return n == kMessages; });
      },
      seconds{2}, microseconds{50}));
  EXPECT_EQ(sink.port->overruns(), 0u);
  EXPECT_EQ(sink.link->counters()[Counter::drop_credit], 0u);
}

// Sends so many full frames, as fast as the receiver grants credit; how long until all are
// acknowledged.
Duration stream(World& world, Node& from, Node& to, int messages) {
  const PeerId peer = from.link->peer(to.address());
  const Time start = world.net.now();
  const std::string full(1400, 'x');
  int sent = 0;
  EXPECT_TRUE(world.run_until(
      [&] {
        while (sent < messages &&
               send_text(from, peer, full, world.net.now(), Lane::bulk) == SendStatus::sent)
          ++sent;
        return sent == messages && from.link->idle();
      },
      seconds{5}));
  return world.net.now() - start;
}

// Windows that one peer has opened come back when it falls silent and another needs them.
TEST(LinkCredit, IdlePeersGiveBackWhatTheyBorrowed) {
  World world;
  Node& sink = world.add({}, {.pool = 1024, .receive_ring = 128});
  const auto talk = [&](Node& node) { stream(world, node, sink, 500); };
  const auto window = [&](Node& node) {
    for (PeerId p : sink.link->peers())
      if (sink.link->view(p).address == node.address()) return sink.link->view(p).lanes[2].window;
    return 0u;
  };
  Node& first = world.add();
  Node& second = world.add();
  talk(first);
  EXPECT_EQ(window(first), 24u) << "half of what the lane has: 3/8 of the ring";
  const auto most = window(first);
  world.run(milliseconds{100});
  talk(second);
  EXPECT_GE(window(second), most / 2);
  EXPECT_LE(window(first), 2u);
  talk(first);  // whose lease has run out on its own side too
  EXPECT_EQ(sink.link->counters()[Counter::drop_credit], 0u);
  EXPECT_EQ(sink.port->overruns(), 0u);
}

// The first of them would take all there is, were it not for those who may come.
TEST(LinkCredit, SendersInTurnNeedNotWaitForEachOthersLeases) {
  constexpr std::size_t kSenders = 6;
  World world;
  Node& sink = world.add({}, {.pool = 2048, .receive_ring = 1024});
  for (std::size_t i = 0; i < kSenders; ++i) world.add();
  const auto time_of = [&](Node& node) { return stream(world, node, sink, 700); };
  const Duration first = time_of(*world.nodes[1]);
  for (int round = 0; round < 3; ++round)
    for (std::size_t i = 1; i <= kSenders; ++i)
      EXPECT_LE(time_of(*world.nodes[i]).count(), 2 * first.count())
          << "sender " << i << ", round " << round;
  EXPECT_EQ(sink.port->overruns(), 0u);
}

TEST(LinkCredit, MemoryFollowsTrafficNotPeers) {
  constexpr std::size_t kPeers = 1000;
  World world;
  Node& hub = world.add();
  for (std::size_t i = 0; i < kPeers; ++i) world.add({}, {.pool = 64, .receive_ring = 16});
  for (std::size_t i = 1; i <= kPeers; ++i)
    hub.link->connect(hub.link->peer(world.nodes[i]->address()), world.net.now());
  ASSERT_TRUE(world.run_until([&] { return hub.link->counters()[Counter::peers_up] == kPeers; },
                              seconds{2}, microseconds{50}));
  world.run(milliseconds{2}, microseconds{100});
  std::cout << "a connected idle peer: " << hub.link->memory_per_peer() << " bytes and "
            << hub.link->frames_held() << " frames for all " << kPeers
            << " together; the process: " << sizeof(SimLink)
            << " bytes a link, and the port's pool of " << hub.port->pool_size() << " frames\n";
  EXPECT_EQ(hub.link->frames_held(), 0u);
  EXPECT_EQ(hub.port->frames_in_use(), 0u);
  EXPECT_LT(hub.link->memory_per_peer(), 2048u);
  // Traffic to one of them takes frames, and gives them back.
  const PeerId peer = hub.link->peer(world.nodes[1]->address());
  for (int i = 0; i < 50; ++i)
    send_text(hub, peer, std::string(1000, 'x'), world.net.now(), Lane::bulk);
  EXPECT_GT(hub.link->frames_held(), 20u);
  ASSERT_TRUE(world.run_until([&] { return hub.link->idle(); }, seconds{1}, microseconds{20}));
  EXPECT_EQ(hub.port->frames_in_use(), 0u);
}

// A lane without credit that messages join at every poll asks for it all the same, and again when
// its probes are lost.
TEST(LinkCredit, ABusyLaneGoesOnAsking) {
  World world;
  Node& a = world.add();
  LinkConfig nothing_unasked;
  nothing_unasked.idle_window = 0;
  Node& b = world.add(nothing_unasked);
  int got = 0;
  b.sink.message = [&](const Incoming&) { return ++got, RxResult::consumed; };
  const PeerId peer = a.link->peer(b.address());
  a.link->connect(peer, world.net.now());
  ASSERT_TRUE(world.run_until([&] { return a.link->connected(peer); }, seconds{1}));
  int questions = 0;
  world.net.hook = [&](std::uint32_t port, std::vector<std::byte>& bytes) {
    const auto& header = *reinterpret_cast<const FrameHeader*>(bytes.data());
    return port != 0 || (header.version_type & 15) != static_cast<int>(FrameType::ack) ||
           ++questions > 3;
  };
  const Time start = world.net.now();
  const auto feed = [&] {
    EXPECT_EQ(send_text(a, peer, "x", world.net.now(), Lane::low, Order::ordered, Urgency::batch),
              SendStatus::sent);
    return questions == 1;
  };
  EXPECT_TRUE(world.run_until(feed, milliseconds{10}));
  EXPECT_LT(world.net.now() - start, microseconds{5}) << "the first question waited for a timer";
  EXPECT_TRUE(world.run_until([&] { return feed(), got != 0; }, milliseconds{10}));
  EXPECT_GT(questions, 3);
}

// Leased credit comes back, so it does not cost peers that connect meanwhile the base window, which
// an idle peer may always send.
TEST(LinkCredit, WhoConnectsWhileOthersBorrowGetsTheUsualWindow) {
  World world;
  Node& sink = world.add({}, {.pool = 1024, .receive_ring = 128});
  Node& first = world.add();
  Node& second = world.add();
  stream(world, first, sink, 500);
  stream(world, second, sink, 500);  // now more than half of the lane is leased
  Node& late = world.add();
  const PeerId peer = late.link->peer(sink.address());
  late.link->connect(peer, world.net.now());
  ASSERT_TRUE(world.run_until([&] { return late.link->connected(peer); }, seconds{1}));
  EXPECT_EQ(late.link->view(peer).lanes[2].credit, LinkConfig{}.idle_window);
}

// The credit in a frame is looked at after the answer to it has left. If the process loses its CPU
// in between, the answer has asked for credit, and when the process goes on, the lease of what was
// in the frame has run out. The lane asks again, rather than wait for a word of the peer that may
// never come.
TEST(LinkCredit, CreditThatExpiresBeforeItIsUsedIsAskedForAgain) {
  World world;
  LinkConfig nothing_unasked;
  nothing_unasked.idle_window = 0;
  nothing_unasked.dead_after = std::chrono::hours{1};
  Node& a = world.add(nothing_unasked);
  Node& b = world.add(nothing_unasked);
  const PeerId to_b = a.link->peer(b.address()), to_a = b.link->peer(a.address());
  int requests = 0, answers = 0;
  a.sink.message = [&](const Incoming&) { return ++requests, RxResult::consumed; };
  b.sink.message = [&](const Incoming& m) {  // the next request is what acknowledges the answer
    send_text(b, to_a, "request", m.now);
    return ++answers, RxResult::consumed;
  };
  send_text(b, to_a, "request", world.net.now());
  for (int round = 1; round < 50; ++round) {
    ASSERT_TRUE(world.run_until([&] { return requests == round; }, seconds{1}))
        << "stuck in round " << round;
    const auto others_go_on = [&](Duration time) {
      for (const Time end = world.net.now() + time; world.net.now() < end;) {
        world.net.step(std::min(world.net.now() + microseconds{2}, end));
        b.link->poll(world.net.now());
      }
    };
    others_go_on(microseconds{21});
    send_text(a, to_b, "answer", world.net.now());
    if (round % 2 == 0) others_go_on(milliseconds{25});
  }
  EXPECT_GT(a.link->counters()[Counter::credit_waits], 0u);
}

// Most of these peers find no unasked credit left, and still get through.
TEST(LinkCredit, LatecomersAskAndGet) {
  World world;
  Node& hub = world.add({}, {.pool = 1024, .receive_ring = 256});
  int got = 0;
  hub.sink.message = [&](const Incoming&) { return ++got, RxResult::consumed; };
  constexpr int kPeers = 100;
  for (int i = 0; i < kPeers; ++i) {
    Node& node = world.add({}, {.pool = 64, .receive_ring = 16});
    send_text(node, node.link->peer(hub.address()), "x", world.net.now());
  }
  EXPECT_TRUE(world.run_until([&] { return got == kPeers; }, seconds{5}, microseconds{20}));
  EXPECT_EQ(hub.port->overruns(), 0u);
}

}  // namespace
}  // namespace viaduct::link::test
