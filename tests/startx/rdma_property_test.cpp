// Thousands of random transfers among random nodes in a network that does everything wrong: each
// arrives whole, in its own place, exactly once, and nobody waits for ever. A failure names its
// seed.
#include <gtest/gtest.h>

#include <random>

#include "tests/startx/bed.hpp"
#include "tests/support/effort.hpp"

namespace viaduct::startx {
namespace {

using link::PeerId;

struct Plan {
  std::size_t from, to;
  std::uint32_t tag;
  std::uint64_t offset_from, offset_to, length;
  bool anybody;
  bool posted = false, requested = false;
};

class Scenario {
 public:
  Scenario(std::uint32_t seed, std::size_t max_open) : random_(seed), bed_(config(max_open)) {
    std::vector<std::uint64_t> top(bed_.size());
    const std::size_t count = 1 + pick(24);
    for (std::size_t i = 0; i < count; ++i) {
      Plan p{};
      p.from = pick(bed_.size());
      p.to = (p.from + 1 + pick(bed_.size() - 1)) % bed_.size();
      p.length = pick(4) == 0 ? pick(3) : pick(15000);
      p.offset_from = top[p.from];
      p.offset_to = top[p.to] + p.length;
      if (p.from == p.to) continue;
      top[p.from] += p.length;
      top[p.to] = p.offset_to + p.length;
      // A tag of its own lets anybody send it; a shared one needs the sender's name to be told
      // apart.
      p.anybody = pick(2) == 0;
      p.tag = p.anybody ? 100 + static_cast<std::uint32_t>(i) : static_cast<std::uint32_t>(pick(2));
      bed_[p.from].fill(p.offset_from, p.length, static_cast<std::uint32_t>(i));
      plans_.push_back(p);
    }
  }

  void run() {
    std::size_t completed = 0;
    const bool all = bed_.run(
        [&] {
          act();
          for (std::size_t n = 0; n < bed_.size(); ++n)
            for (const Completion& c : bed_[n].completions()) {
              EXPECT_EQ(c.status, RdmaStatus::ok);
              ++completed;
            }
          return completed == 2 * plans_.size();
        },
        std::chrono::seconds{10});
    ASSERT_TRUE(all) << completed << " of " << 2 * plans_.size();
    for (std::size_t i = 0; i < plans_.size(); ++i)
      EXPECT_TRUE(bed_[plans_[i].to].holds(plans_[i].offset_to, plans_[i].length,
                                           static_cast<std::uint32_t>(i)))
          << "transfer " << i;
    for (std::size_t n = 0; n < bed_.size(); ++n) {
      EXPECT_EQ(bed_[n].count(Counter::rdma_drop_right), 0u);
      EXPECT_EQ(bed_[n].count(Counter::rdma_drop_range), 0u);
      EXPECT_EQ(bed_[n].count(Counter::rdma_drop_control), 0u);
      EXPECT_TRUE(bed_[n].rdma().deregister(bed_[n].region));
    }
  }
  const base::FaultCounts& faults() const { return bed_.net.faults(); }
  std::uint64_t pauses() const { return bed_.schedule.pauses(); }

 private:
  BedConfig config(std::size_t max_open) {
    BedConfig c;
    c.nodes = 2 + pick(4);
    c.driver.memory = 1 << 19;
    c.net.faults = {.loss = 0.01 * static_cast<double>(pick(15)),
                    .duplicate = 0.01 * static_cast<double>(pick(6)),
                    .reorder = 0.01 * static_cast<double>(pick(20)),
                    .corrupt = 0.01 * static_cast<double>(pick(4)),
                    .truncate = 0.01 * static_cast<double>(pick(3)),
                    .seed = random_()};
    c.port.mtu = std::array{576, 1500, 9000}[pick(3)];
    c.port.pool = 3000;
    c.port.receive_ring = 512;
    c.driver.niu.queue_depth = 16;
    c.driver.niu.rdma.max_open = max_open;
    // Either tables so small that everybody is told no_room and busy all the time, and then all use
    // them in one order (or they would wait for each other's entries), or room for any order.
    in_order_ = pick(2) == 0;
    c.driver.niu.rdma.max_posted = in_order_ ? max_open + pick(4) : 32;
    // Sequence numbers start just before they wrap in half of the runs.
    if (pick(2) == 0) c.link.first_sequence = 0xfffffff0u;
    if (pick(3) == 0) {  // nodes lose their CPU, and no keepalive sets right what got stuck
      c.pauses = {.probability = 0.002, .seed = random_()};
      c.link.dead_after = std::chrono::hours{1};
    }
    return c;
  }
  // Posts and asks for some of what is left, in the order that each pair and tag demands.
  void act() {
    for (std::size_t i = 0; i < plans_.size(); ++i) {
      Plan& p = plans_[i];
      bool may_post = !p.posted && pick(3) == 0, may_request = !p.requested && pick(3) == 0;
      for (std::size_t j = 0; j < i; ++j) {
        const Plan& q = plans_[j];
        const bool same = q.from == p.from && q.to == p.to && q.tag == p.tag;
        if (same || (in_order_ && q.to == p.to)) may_post = may_post && q.posted;
        if (same || (in_order_ && q.from == p.from)) may_request = may_request && q.requested;
      }
      if (may_post)
        p.posted = started(bed_[p.to].rdma().post(p.anybody ? PeerId{} : bed_.peer(p.to, p.from),
                                                  p.tag, bed_[p.to].bytes(p.offset_to, p.length)));
      if (may_request)
        p.requested = started(bed_[p.from].rdma().request(
            bed_.peer(p.from, p.to), p.tag, bed_[p.from].bytes(p.offset_from, p.length),
            bed_.now(p.from)));
    }
  }
  static bool started(const Started& s) {
    EXPECT_TRUE(s.status == RdmaStatus::ok || s.status == RdmaStatus::no_room);
    return s.status == RdmaStatus::ok;
  }
  std::size_t pick(std::size_t below) { return random_() % below; }

  std::mt19937 random_;
  bool in_order_ = false;
  Bed bed_;
  std::vector<Plan> plans_;
};

class RdmaProperty : public ::testing::TestWithParam<std::size_t> {};

TEST_P(RdmaProperty, EveryTransferArrivesWholeInAnyWeather) {
  std::uint64_t lost = 0, reordered = 0, corrupted = 0, pauses = 0;
  for (std::uint32_t seed = 1; seed <= test::effort(300); ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Scenario scenario(seed, GetParam());
    scenario.run();
    if (::testing::Test::HasFailure()) return;
    lost += scenario.faults().lost;
    reordered += scenario.faults().reordered;
    corrupted += scenario.faults().corrupted;
    pauses += scenario.pauses();
  }
  EXPECT_GT(lost, test::effort(1000));
  EXPECT_GT(reordered, test::effort(1000));
  EXPECT_GT(corrupted, test::effort(100));
  EXPECT_GT(pauses, test::effort(100));
}

INSTANTIATE_TEST_SUITE_P(MaxOpen, RdmaProperty, ::testing::Values(1, 2, 16));

// Everybody sends to everybody, and rings of three, with one open transfer each: the patterns that
// deadlock an engine which serves one transfer at a time.
TEST(RdmaPatterns, RingsAndAllToAllComeToAnEnd) {
  for (const bool ring : {true, false})
    for (std::size_t nodes = 2; nodes <= 6; ++nodes) {
      SCOPED_TRACE((ring ? "ring of " : "all to all of ") + std::to_string(nodes));
      BedConfig config;
      config.nodes = nodes;
      config.driver.niu.rdma.max_open = 1;
      Bed bed(config);
      std::size_t expected = 0, completed = 0;
      for (std::size_t from = 0; from < nodes; ++from)
        for (std::size_t to = 0; to < nodes; ++to) {
          if (from == to || (ring && to != (from + 1) % nodes)) continue;
          for (std::uint32_t n = 0; n < 3; ++n) {
            const auto tag = static_cast<std::uint32_t>(from);
            bed[to].rdma().post({}, tag, bed[to].bytes(0, 20000));
            bed[from].rdma().request(bed.peer(from, to), tag, bed[from].bytes(50000, 20000),
                                     bed.now());
            expected += 2;
          }
        }
      EXPECT_TRUE(bed.run([&] {
        for (std::size_t n = 0; n < nodes; ++n) completed += bed[n].completions().size();
        return completed == expected;
      })) << completed
          << " of " << expected;
    }
}

// One of several peers dies somewhere in the middle: its transfers end, the others' are untouched.
TEST(RdmaPatterns, ADeathHurtsNobodyElse) {
  for (std::uint32_t seed = 1; seed <= test::effort(60); ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    std::mt19937 random(seed);
    BedConfig config;
    config.nodes = 4;
    config.link.dead_after = std::chrono::milliseconds{50};
    config.net.faults = {.loss = 0.02, .reorder = 0.05, .seed = seed};
    config.driver.niu.rdma.max_open = 1 + seed % 4;
    Bed bed(config);
    for (std::size_t i = 0; i < 4; ++i)
      for (std::size_t j = 0; j < 4; ++j) {
        if (i == j) continue;
        bed[i].fill(100000 * j, 30000, static_cast<std::uint32_t>(10 * i + j));
        bed[i].rdma().post(bed.peer(i, j), 1, bed[i].bytes(500000 + 100000 * j, 30000));
        bed[i].rdma().request(bed.peer(i, j), 1, bed[i].bytes(100000 * j, 30000), bed.now());
      }
    bed.run_for(std::chrono::microseconds{random() % 400});
    link::PeerId victim[3];
    for (std::size_t n = 0; n < 3; ++n) victim[n] = bed.peer(n, 3);
    bed.vanish(3);
    std::size_t completed[4] = {};
    EXPECT_TRUE(bed.run([&] {
      for (std::size_t n = 0; n < 4; ++n)
        for (const Completion& c : bed[n].completions()) {
          ++completed[n];
          if (n != 3 && c.peer != victim[n]) {
            EXPECT_EQ(c.status, RdmaStatus::ok);
          }
        }
      return std::all_of(std::begin(completed), std::end(completed),
                         [](std::size_t n) { return n == 6; });
    }));
    for (std::size_t i = 0; i < 3; ++i) {
      EXPECT_TRUE(bed[i].rdma().deregister(bed[i].region));
      for (std::size_t j = 0; j < 3; ++j)
        if (i != j) {
          EXPECT_TRUE(
              bed[i].holds(500000 + 100000 * j, 30000, static_cast<std::uint32_t>(10 * j + i)));
        }
    }
    if (::testing::Test::HasFailure()) return;
  }
}

}  // namespace
}  // namespace viaduct::startx
