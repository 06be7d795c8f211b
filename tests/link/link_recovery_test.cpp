// How long a lost frame is missed: from its transmission to its delivery, in measured round trips,
// beside a fixed 5 ms timer as others ship it.
#include <gtest/gtest.h>

#include <algorithm>
#include <iostream>
#include <random>
#include <set>

#include "tests/link/sim_world.hpp"
#include "tests/support/effort.hpp"

namespace viaduct::link::test {
namespace {

struct Losses {
  std::vector<double> all, tail;  // round trips from transmission to delivery
  Duration round_trip{0};
  std::uint64_t lost = 0;

  static double median(std::vector<double> v) {
    std::nth_element(v.begin(), v.begin() + static_cast<std::ptrdiff_t>(v.size() / 2), v.end());
    return v[v.size() / 2];
  }
};

// Two of them do not fit into one frame.
const std::string kOneFrame(1000, 'x');

// Sends bursts of one-frame messages; in each one frame is lost, every third time the last.
Losses lose_one_frame_each(std::uint64_t trials, const LinkConfig& config, Duration jitter) {
  sim::SimConfig net;
  net.latency = microseconds{10};
  net.jitter = jitter;
  World world(net);
  Node& a = world.add(config);
  Node& b = world.add(config);
  Losses losses;
  Time delivered_at{};
  std::uint32_t delivered = 0, victim = 0, sent = 0;
  b.sink.message = [&](const Incoming& m) {
    if (delivered++ == victim) delivered_at = m.now;
    return RxResult::consumed;
  };
  Time lost_at{};
  std::uint32_t data_frames = 0;
  bool armed = false;
  world.net.hook = [&](std::uint32_t port, std::vector<std::byte>& bytes) {
    const auto& header = *reinterpret_cast<const FrameHeader*>(bytes.data());
    if (port != 0 || (header.version_type & 15) != static_cast<int>(FrameType::data)) return true;
    if (!armed || data_frames++ != victim) return true;
    armed = false;
    lost_at = world.net.now();
    ++losses.lost;
    return false;
  };
  const PeerId peer = a.link->peer(b.address());
  std::mt19937 random(1);
  const auto burst = [&](std::uint32_t frames) {
    delivered = sent = 0;
    const auto feed = [&] {
      while (sent < frames && send_text(a, peer, kOneFrame, world.net.now()) == SendStatus::sent)
        ++sent;
      return sent == frames && delivered == frames && a.link->idle();
    };
    EXPECT_TRUE(world.run_until(feed, seconds{1}, microseconds{1}));
  };
  burst(200);  // the connection comes up, the round trip is measured, windows grow
  for (std::uint64_t i = 0; i < trials; ++i) {
    const std::uint32_t frames = 8 + random() % 24;
    const bool tail = i % 3 == 0;
    victim = tail ? frames - 1 : random() % (frames - 1);
    data_frames = 0;
    armed = true;
    burst(frames);
    const double missed = static_cast<double>((delivered_at - lost_at).count()) /
                          static_cast<double>(a.link->view(peer).round_trip.count());
    losses.all.push_back(missed);
    if (tail) losses.tail.push_back(missed);
  }
  losses.round_trip = a.link->view(peer).round_trip;
  return losses;
}

TEST(LinkRecovery, OneLostFrameIsBackWithinFourRoundTrips) {
  for (const Duration jitter : {Duration{0}, Duration{microseconds{2}}}) {
    constexpr std::uint64_t kTrials = viaduct::test::effort(1000);
    const Losses ours = lose_one_frame_each(kTrials, {}, jitter);
    LinkConfig fixed;
    fixed.fixed_timeout = milliseconds{5};
    const Losses theirs = lose_one_frame_each(kTrials, fixed, jitter);
    ASSERT_EQ(ours.lost, kTrials);
    ASSERT_EQ(theirs.lost, kTrials);
    std::cout << "jitter " << jitter.count() << " ns, measured round trip "
              << ours.round_trip.count() << " ns; a lost frame is delivered after, in round trips: "
              << "median " << Losses::median(ours.all) << ", of tail losses alone "
              << Losses::median(ours.tail) << "; with a fixed 5 ms timer: median "
              << Losses::median(theirs.all) << ", tail " << Losses::median(theirs.tail) << "\n";
    EXPECT_LT(Losses::median(ours.all), 4.0);
    EXPECT_LT(Losses::median(ours.tail), 4.0);
    EXPECT_GT(Losses::median(theirs.all), 50.0);
  }
}

// Several gaps at once are told apart in one acknowledgement and closed together.
TEST(LinkRecovery, ManyGapsInOneWindowCloseTogether) {
  sim::SimConfig net;
  net.latency = microseconds{10};
  World world(net);
  Node& a = world.add();
  Node& b = world.add();
  const PeerId peer = a.link->peer(b.address());
  const std::string full_frame(1400, 'x');
  std::uint32_t delivered = 0, sent = 0, lost = 0;
  b.sink.message = [&](const Incoming&) { return ++delivered, RxResult::consumed; };
  const auto send_all = [&](std::uint32_t count) {
    const std::uint32_t goal = delivered + count;
    sent = 0;
    return world.run_until(
        [&] {
          while (sent < count &&
                 send_text(a, peer, full_frame, world.net.now()) == SendStatus::sent)
            ++sent;
          return delivered == goal && a.link->idle();
        },
        seconds{1}, microseconds{1});
  };
  ASSERT_TRUE(send_all(500));
  std::set<std::uint32_t> seen;
  world.net.hook = [&](std::uint32_t port, std::vector<std::byte>& bytes) {
    const auto& header = *reinterpret_cast<const FrameHeader*>(bytes.data());
    if (port != 0 || (header.version_type & 15) != static_cast<int>(FrameType::data)) return true;
    if (!seen.insert(header.sequence).second || seen.size() > 40 || seen.size() % 4 != 2)
      return true;
    ++lost;
    return false;
  };
  const Time start = world.net.now();
  const auto before = a.link->counters()[Counter::retransmits];
  ASSERT_TRUE(send_all(48));
  EXPECT_EQ(lost, 10u);
  const auto again = a.link->counters()[Counter::retransmits] - before;
  EXPECT_GE(again, 10u);
  EXPECT_LE(again, 14u) << "frames that had arrived were sent again";
  EXPECT_LT((world.net.now() - start) / a.link->view(peer).round_trip, 8);
}

// A ping-pong whose every frame is sent again never measures: the timeout must stay long until a
// frame that was sent once has been answered.
TEST(LinkRecovery, ARoundTripThatRisesIsLearned) {
  World world;
  Node& a = world.add();
  Node& b = world.add();
  int answers = 0;
  a.sink.message = [&](const Incoming&) { return ++answers, RxResult::consumed; };
  b.sink.message = [&](const Incoming& m) {
    EXPECT_EQ(send_text(b, m.from, "answer", m.now), SendStatus::sent);
    return RxResult::consumed;
  };
  const PeerId peer = a.link->peer(b.address());
  const auto rounds = [&](int count) {
    for (const int goal = answers + count; answers < goal;) {
      const int before = answers;
      EXPECT_EQ(send_text(a, peer, "question", world.net.now()), SendStatus::sent);
      ASSERT_TRUE(world.run_until([&] { return answers > before; }, seconds{1}));
    }
  };
  const auto retransmits = [&] {
    return a.link->counters()[Counter::retransmits] + b.link->counters()[Counter::retransmits];
  };
  rounds(100);
  EXPECT_EQ(retransmits(), 0u);
  world.net.set_latency(microseconds{500});
  rounds(20);
  const auto learning = retransmits();
  rounds(100);
  EXPECT_EQ(retransmits(), learning);
  EXPECT_LT(learning, 40u);
  EXPECT_GT(a.link->view(peer).round_trip, milliseconds{1});
}

// A whole tail is lost, then its first probe too: one timeout leads to all of it, and is no reason
// to wait longer and longer.
TEST(LinkRecovery, ALostTailIsOneTimeoutNotMany) {
  World world;
  Node& a = world.add();
  Node& b = world.add();
  const PeerId peer = a.link->peer(b.address());
  int delivered = 0, lose = 0;
  b.sink.message = [&](const Incoming&) { return ++delivered, RxResult::consumed; };
  world.net.hook = [&](std::uint32_t port, std::vector<std::byte>& bytes) {
    const auto& header = *reinterpret_cast<const FrameHeader*>(bytes.data());
    const bool data = (header.version_type & 15) == static_cast<int>(FrameType::data);
    return port != 0 || !data || lose == 0 || lose-- == 0;
  };
  const auto round_trips = [&](int frames, int lost) {
    lose = lost;
    int sent = 0;
    const int goal = delivered + frames;
    const Time start = world.net.now();
    const auto feed = [&] {
      while (sent < frames && send_text(a, peer, kOneFrame, world.net.now()) == SendStatus::sent)
        ++sent;
      return delivered == goal && a.link->idle();
    };
    EXPECT_TRUE(world.run_until(feed, seconds{1}, microseconds{1}));
    return static_cast<double>((world.net.now() - start).count()) /
           static_cast<double>(a.link->view(peer).round_trip.count());
  };
  round_trips(500, 0);
  const double all = round_trips(16, 17);
  const double one = round_trips(1, 1);
  EXPECT_LT(all, 16 * 1.5 + 4);
  EXPECT_LT(one, 10.0);  // the tail took two timeouts: this one is four times as long
}

// An acknowledgement that finds the device full stays due until there is room.
TEST(LinkRecovery, AFullDeviceOnlyDelaysAnAcknowledgement) {
  sim::SimConfig net;
  net.latency = microseconds{50};
  World world(net);
  Node& a = world.add();
  Node& b = world.add();
  const PeerId peer = a.link->peer(b.address());
  int delivered = 0;
  b.sink.message = [&](const Incoming&) { return ++delivered, RxResult::consumed; };
  for (int i = 0; i < 50; ++i) {
    send_text(a, peer, "measure", world.net.now());
    ASSERT_TRUE(world.run_until([&] { return a.link->idle(); }, seconds{1}));
  }
  const auto before = a.link->counters()[Counter::probes];
  send_text(a, peer, "x", world.net.now());
  world.run(microseconds{40});
  b.port->set_transmit_burst(0);
  for (int i = 10; i < 42; ++i) {
    const auto nobody = Address::parse("02:00:00:00:01:" + std::to_string(i));
    b.link->connect(b.link->peer(*nobody), world.net.now());
  }
  world.run(microseconds{40});
  EXPECT_EQ(delivered, 51);
  b.port->set_transmit_burst(32);
  EXPECT_TRUE(world.run_until([&] { return a.link->idle(); }, seconds{1}));
  EXPECT_EQ(a.link->counters()[Counter::probes], before);
}

// The acknowledgement is lost, not the frame: nothing is delivered twice, the sender finds out.
// Whoever sleeps that long misses nothing: polled at arrivals and when it says only, a link gets
// everything across.
TEST(LinkRecovery, ALinkTellsWhenItHasWork) {
  sim::SimConfig net;
  net.faults.loss = 0.2;
  net.faults.seed = 7;
  World world(net);
  Node& a = world.add();
  Node& b = world.add();
  EXPECT_EQ(a.link->next_work(), Time::max());
  int delivered = 0;
  b.sink.message = [&](const Incoming&) {
    ++delivered;
    return RxResult::consumed;
  };
  const PeerId peer = a.link->peer(b.address());
  int sent = 0, idle_polls = 0;
  const Time end = world.net.now() + seconds{5};
  while (delivered < 500 && world.net.now() < end) {
    while (sent < 500 && send_text(a, peer, kOneFrame, world.net.now()) == SendStatus::sent) ++sent;
    const Time work = std::min(a.link->next_work(), b.link->next_work());
    idle_polls += !world.net.step(std::clamp(work, world.net.now(), end));
    world.poll();
  }
  EXPECT_EQ(delivered, 500);
  EXPECT_GT(a.link->counters()[Counter::probes], 0u) << "or nothing depended on it";
  EXPECT_LT(idle_polls, 20'000) << "not over and over without anything to do";
}

TEST(LinkRecovery, LostAcknowledgementsOnlyCostADuplicate) {
  World world;
  Node& a = world.add();
  Node& b = world.add();
  const PeerId peer = a.link->peer(b.address());
  int delivered = 0;
  b.sink.message = [&](const Incoming&) { return ++delivered, RxResult::consumed; };
  send_text(a, peer, "first", world.net.now());
  ASSERT_TRUE(world.run_until([&] { return a.link->idle(); }, seconds{1}));
  int dropped = 0;
  world.net.hook = [&](std::uint32_t port, std::vector<std::byte>&) {
    return port != 1 || dropped++ >= 3;
  };
  send_text(a, peer, "second", world.net.now());
  ASSERT_TRUE(world.run_until([&] { return a.link->idle(); }, seconds{1}));
  EXPECT_GE(dropped, 3);
  EXPECT_EQ(delivered, 2);
  EXPECT_GE(b.link->counters()[Counter::drop_duplicate], 1u);
}

}  // namespace
}  // namespace viaduct::link::test
