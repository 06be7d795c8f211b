// The parts of a flow on their own: serial numbers, the round trip, timers, credit and bitmaps.
#include <gtest/gtest.h>

#include <map>
#include <random>

#include "drivers/base/deadline_heap.hpp"
#include "drivers/link/rtt.hpp"
#include "drivers/link/rx_lane.hpp"
#include "drivers/link/tx_lane.hpp"
#include "drivers/sim/sim_network.hpp"

namespace viaduct::link {
namespace {

using std::chrono::microseconds;
using Send = TxLane<sim::SimPort>;
using Receive = RxLane<sim::SimPort>;
constexpr Time at(std::int64_t us) {
  return Time{microseconds{us}};
}

TEST(Sequence, WrapsAround) {
  EXPECT_TRUE(sequence_before(1, 2));
  EXPECT_FALSE(sequence_before(2, 2));
  EXPECT_TRUE(sequence_before(0xffffffff, 0));
  EXPECT_FALSE(sequence_before(0, 0xffffffff));
}

TEST(Rtt, FollowsTheSamplesAndNeverFallsBelowOneAndAHalf) {
  RttEstimator rtt;
  EXPECT_FALSE(rtt.measured());
  EXPECT_EQ(rtt.timeout(microseconds{5}), std::chrono::milliseconds{1});
  for (int i = 0; i < 100; ++i) rtt.sample(microseconds{20});
  EXPECT_EQ(rtt.smoothed(), microseconds{20});
  EXPECT_EQ(rtt.timeout(microseconds{5}), microseconds{30});
  EXPECT_EQ(rtt.timeout(microseconds{50}), microseconds{50});
  for (int i = 0; i < 100; ++i) rtt.sample(microseconds{i % 2 ? 10 : 40});
  EXPECT_GT(rtt.timeout(microseconds{5}), microseconds{60});
  EXPECT_EQ(rtt.minimum(), microseconds{10});
  RttEstimator zero;
  zero.sample(Duration{0});
  EXPECT_TRUE(zero.measured());
}

struct Timed {
  Time timer_at{};
  std::uint32_t timer_position = base::kNotQueued;
};

TEST(Timers, FireInOrderWhateverIsSetAndRemoved) {
  base::DeadlineHeap<Timed> queue;
  std::vector<Timed> items(200);
  std::mt19937 random(1);
  std::map<Timed*, Time> model;
  for (int step = 0; step < 5000; ++step) {
    Timed* item = &items[random() % items.size()];
    const Time when = at(static_cast<std::int64_t>(random() % 1000));
    if (random() % 4 == 0) {
      queue.remove(item);
      model.erase(item);
    } else {
      queue.set_no_later(item, when);
      const auto known = model.find(item);
      if (known == model.end() || when < known->second) model[item] = when;
    }
  }
  Time last = at(-1);
  while (!model.empty()) {
    ASSERT_TRUE(queue.due(at(1000)));
    Timed* item = queue.pop();
    ASSERT_TRUE(model.contains(item));
    EXPECT_EQ(item->timer_at, model[item]);
    EXPECT_GE(item->timer_at, last);
    last = item->timer_at;
    model.erase(item);
  }
  EXPECT_FALSE(queue.due(at(1000)));
}

// Against a plain model, from every starting point near the wrap-around.
TEST(RxLane, KnowsWhatHasArrived) {
  std::mt19937 random(2);
  for (std::uint32_t first : {0u, 1000u, 0xffffffffu, 0xfffffff0u, 0xfffffe01u}) {
    Receive flow;
    flow.start(first, 256);
    std::vector<bool> arrived(4000, false);
    std::uint32_t expected = 0;
    for (int step = 0; step < 20000 && expected < 3000; ++step) {
      const std::uint32_t offset = expected + random() % 300;
      const auto kind = flow.classify(first + offset);
      const std::uint32_t limit = flow.limit() - first;
      if (offset >= limit)
        ASSERT_EQ(kind, Receive::Arrival::beyond_credit);
      else if (arrived[offset])
        ASSERT_EQ(kind, Receive::Arrival::duplicate);
      else
        ASSERT_EQ(kind,
                  offset == expected ? Receive::Arrival::in_order : Receive::Arrival::out_of_order);
      if (kind == Receive::Arrival::duplicate || kind == Receive::Arrival::beyond_credit) continue;
      flow.arrived(first + offset, at(step));
      flow.consume(kMaxWindow);
      arrived[offset] = true;
      while (arrived[expected]) ++expected;
      ASSERT_EQ(flow.expected(), first + expected);
      std::uint64_t words[kBitmapWords];
      const std::uint8_t n = flow.bitmap(words);
      ASSERT_LE(n, kBitmapWords);
      const Acknowledgement ack{flow.expected(), flow.limit(), {words, n}};
      for (std::uint32_t i = 1; i < kMaxWindow; ++i)
        ASSERT_EQ(ack.has(first + expected + i), expected + i < 4000 && arrived[expected + i]);
      ASSERT_TRUE(n == 0 || words[n - 1] != 0);
    }
    EXPECT_GE(expected, 500u);
  }
}

TEST(RxLane, CreditGrowsShrinksAndComesBack) {
  Receive flow;
  flow.start(10, 2);
  EXPECT_EQ(flow.limit(), 12u);
  flow.grow(6, at(0));
  EXPECT_EQ(flow.limit(), 18u);
  for (std::uint32_t s = 10; s < 14; ++s) {
    flow.arrived(s, at(0));
    EXPECT_EQ(flow.consume(4), 1u);  // others wait: no new credit until the window is 4
  }
  EXPECT_EQ(flow.window(), 4u);
  EXPECT_EQ(flow.limit(), 18u);
  EXPECT_EQ(flow.reclaim(at(1000)), 0u) << "too early";
  EXPECT_EQ(flow.reclaim(at(11000)), 2u);
  EXPECT_EQ(flow.limit(), 16u);
}

// Whatever tells the peer of credit starts its lease, and so the receiver's.
TEST(RxLane, CreditThatAnyFrameToldOfIsGoodForAWholeLease) {
  Receive flow;
  flow.start(10, 2);
  flow.grow(6, at(0));
  flow.on_ack_sent(at(9000));
  EXPECT_EQ(flow.reclaim(at(11000)), 0u);
  EXPECT_EQ(flow.reclaim(at(19000)), 6u);
}

// A peer takes a limit further ahead than a bitmap reaches for a forgery.
TEST(RxLane, CreditNeverReachesFurtherPastAGapThanABitmap) {
  Receive flow;
  flow.start(0, 2);
  flow.grow(kMaxWindow - 2, at(0));
  for (std::uint32_t s = 1; s < kMaxWindow; ++s) {
    flow.arrived(s, at(0));
    flow.consume(kMaxWindow);
    ASSERT_LE(flow.limit(), kMaxWindow);
  }
  EXPECT_EQ(flow.reclaim(at(11000)), kMaxWindow - 2);
  EXPECT_LE(flow.limit(), kMaxWindow);
}

// While the user takes his time over frames beyond a gap, the lease is reclaimed; then the gap
// closes, and more has arrived than may be sent.
TEST(RxLane, CreditIsNeverLessThanNone) {
  Receive flow;
  flow.start(0, 2);
  flow.grow(6, at(0));
  EXPECT_EQ(flow.credit(), 8u);
  flow.arrived(3, at(0));
  flow.consume(kMaxWindow);  // unordered
  EXPECT_EQ(flow.credit(), 9u);
  EXPECT_EQ(flow.reclaim(at(11000)), 6u);
  EXPECT_EQ(flow.credit(), 3u);
  for (const std::uint32_t s : {0, 1, 2}) flow.arrived(s, at(11000));  // nobody takes them
  EXPECT_EQ(flow.expected(), 4u);
  EXPECT_EQ(flow.credit(), 0u);
  flow.consume(kMaxWindow);
  flow.consume(kMaxWindow);
  EXPECT_EQ(flow.credit(), 1u);
}

// Two frames that pass one are reordering, three are its loss.
TEST(TxLane, ThreeLaterFramesMakeALoss) {
  sim::SimNetwork net;
  sim::SimPort& port = net.add_port();
  Send flow;
  flow.start(10);
  flow.grant(8);
  for (int i = 0; i < 6; ++i) flow.on_transmitted(port.allocate(), at(0));
  RttEstimator rtt;
  for (const std::uint64_t arrived : {1u, 3u, 7u}) {  // 11, then 12, then 13
    const std::uint64_t words[1] = {arrived};
    flow.acknowledge({10, 18, words}, at(10), rtt);
    EXPECT_EQ(flow.lost(flow.in_flight().front(), microseconds{100}), arrived == 7);
  }
  flow.clear([](sim::SimFrame* f) { sim::SimPort::release(f); });
}

TEST(TxLane, CreditOnLoanRunsOut) {
  Send flow;
  flow.start(5);
  flow.grant(2);
  EXPECT_EQ(flow.credit(), 2u);
  RttEstimator rtt;
  flow.acknowledge({5, 100, {}}, at(0), rtt);
  EXPECT_EQ(flow.credit(), 95u);
  flow.expire_credit(at(1900));
  EXPECT_EQ(flow.credit(), 95u);
  flow.expire_credit(at(2100));
  EXPECT_EQ(flow.credit(), 2u);
}

TEST(TxLane, ImplausibleAcknowledgements) {
  Send flow;
  flow.start(0xfffffffe);
  flow.grant(8);
  EXPECT_TRUE(flow.plausible({0xfffffffe, 2, {}}));
  EXPECT_FALSE(flow.plausible({0xffffffff, 2, {}})) << "never sent";
  EXPECT_FALSE(flow.plausible({0xfffffffe, 0xfffffffe + kMaxWindow + 1, {}}));
  const std::uint64_t zero[1] = {0}, one[1] = {1};
  EXPECT_FALSE(flow.plausible({0xfffffffe, 2, zero}));
  EXPECT_FALSE(flow.plausible({0xfffffffe, 2, one}));
}

}  // namespace
}  // namespace viaduct::link
