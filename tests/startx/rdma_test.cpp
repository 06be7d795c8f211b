// RDMA between well-behaved peers: matching, lengths, turns, limits, death.
#include "drivers/startx_emul/rdma.hpp"

#include <gtest/gtest.h>

#include "tests/startx/bed.hpp"

namespace viaduct::startx {
namespace {

using link::PeerId;
using std::chrono::milliseconds;
using std::chrono::seconds;

// Runs until `count` completions have come at one node, and returns them.
std::vector<Completion> wait(Bed& bed, SimNode& node, std::size_t count) {
  std::vector<Completion> all;
  bed.run([&] {
    for (const Completion& c : node.completions()) all.push_back(c);
    return all.size() >= count;
  });
  EXPECT_EQ(all.size(), count);
  return all;
}

class RdmaSizes : public ::testing::TestWithParam<std::uint64_t> {};

TEST_P(RdmaSizes, ATransferArrivesWholeAndBothSidesKnow) {
  const std::uint64_t size = GetParam();
  BedConfig config;
  config.driver.memory = 2 << 20;
  Bed bed(config);
  bed[0].fill(64, size, 1);
  const Started post = bed[1].rdma().post(bed.peer(1, 0), 5, bed[1].bytes(128, size));
  const Started sent = bed[0].rdma().request(bed.peer(0, 1), 5, bed[0].bytes(64, size), bed.now());
  ASSERT_EQ(post.status, RdmaStatus::ok);
  ASSERT_EQ(sent.status, RdmaStatus::ok);
  const auto received = wait(bed, bed[1], 1);
  const auto done = wait(bed, bed[0], 1);
  EXPECT_EQ(received[0].transfer, post.transfer);
  EXPECT_TRUE(received[0].receiving);
  EXPECT_EQ(received[0].status, RdmaStatus::ok);
  EXPECT_EQ(received[0].peer, bed.peer(1, 0));
  EXPECT_EQ(received[0].length, size);
  EXPECT_EQ(done[0].transfer, sent.transfer);
  EXPECT_FALSE(done[0].receiving);
  EXPECT_EQ(done[0].length, size);
  EXPECT_TRUE(bed[1].holds(128, size, 1));
  EXPECT_EQ(bed[1].memory[127], std::byte{0});
  EXPECT_EQ(bed[1].memory[128 + size], std::byte{0});
  EXPECT_EQ(bed[1].count(Counter::rdma_bytes_received), size);
}

INSTANTIATE_TEST_SUITE_P(Sizes, RdmaSizes,
                         ::testing::Values(0, 1, 7, 552, 1452, 1453, 65536, 1 << 20));

TEST(Rdma, ARequestWaitsForItsPost) {
  Bed bed;
  bed[0].fill(0, 5000, 2);
  bed[0].rdma().request(bed.peer(0, 1), 9, bed[0].bytes(0, 5000), bed.now());
  ASSERT_TRUE(bed.run([&] { return bed[1].count(Counter::rdma_requests_received) == 1; }));
  bed.run_for(milliseconds{1});
  EXPECT_EQ(bed[1].count(Counter::rdma_grants_sent), 0u);
  bed[1].rdma().post({}, 8, bed[1].bytes(0, 5000));  // another tag: no match
  bed[1].rdma().post({}, 9, bed[1].bytes(10000, 5000));
  EXPECT_EQ(wait(bed, bed[1], 1)[0].status, RdmaStatus::ok);
  EXPECT_TRUE(bed[1].holds(10000, 5000, 2));
}

TEST(Rdma, PostsAndRequestsOfOneTagMeetInOrder) {
  for (const bool posts_first : {true, false}) {
    BedConfig config;
    config.nodes = 3;
    Bed bed(config);
    // Node 2 receives: one post for node 1 only, others for anybody. Node 0 sends three.
    std::vector<TransferId> posts;
    const auto post = [&] {
      posts.push_back(bed[2].rdma().post({}, 1, bed[2].bytes(0, 100)).transfer);
      posts.push_back(bed[2].rdma().post(bed.peer(2, 1), 1, bed[2].bytes(100, 100)).transfer);
      posts.push_back(bed[2].rdma().post({}, 1, bed[2].bytes(200, 100)).transfer);
      posts.push_back(bed[2].rdma().post(bed.peer(2, 0), 1, bed[2].bytes(300, 100)).transfer);
    };
    const auto request = [&] {
      for (std::uint32_t i = 0; i < 3; ++i) {
        bed[0].fill(100 * i, 100, i);
        bed[0].rdma().request(bed.peer(0, 2), 1, bed[0].bytes(100 * i, 100), bed.now());
      }
      bed.run([&] { return bed[2].count(Counter::rdma_requests_received) == 3; });
    };
    if (posts_first) post();
    request();
    if (!posts_first) post();
    wait(bed, bed[2], 3);
    EXPECT_TRUE(bed[2].holds(0, 100, 0));
    EXPECT_TRUE(bed[2].holds(200, 100, 1));
    EXPECT_TRUE(bed[2].holds(300, 100, 2));
    bed[1].fill(0, 100, 9);
    bed[1].rdma().request(bed.peer(1, 2), 1, bed[1].bytes(0, 100), bed.now());
    EXPECT_EQ(wait(bed, bed[2], 1)[0].transfer, posts[1]);
    EXPECT_TRUE(bed[2].holds(100, 100, 9));
  }
}

TEST(Rdma, AShortTransferIntoALongPostTellsItsLength) {
  Bed bed;
  bed[0].fill(0, 3000, 4);
  bed[1].rdma().post({}, 1, bed[1].bytes(0, 10000));
  bed[0].rdma().request(bed.peer(0, 1), 1, bed[0].bytes(0, 3000), bed.now());
  EXPECT_EQ(wait(bed, bed[1], 1)[0].length, 3000u);
  EXPECT_TRUE(bed[1].holds(0, 3000, 4));
  EXPECT_EQ(bed[1].memory[3000], std::byte{0});
}

TEST(Rdma, ATooLongRequestIsRefusedOnBothSides) {
  for (const bool post_first : {true, false}) {
    Bed bed;
    bed[0].fill(0, 101, 4);
    if (post_first) bed[1].rdma().post({}, 1, bed[1].bytes(0, 100));
    bed[0].rdma().request(bed.peer(0, 1), 1, bed[0].bytes(0, 101), bed.now());
    bed.run([&] { return bed[1].count(Counter::rdma_requests_received) == 1; });
    if (!post_first) bed[1].rdma().post({}, 1, bed[1].bytes(0, 100));
    EXPECT_EQ(wait(bed, bed[0], 1)[0].status, RdmaStatus::too_long);
    EXPECT_EQ(wait(bed, bed[1], 1)[0].status, RdmaStatus::too_long);
    EXPECT_EQ(bed[1].memory[0], std::byte{0});
    EXPECT_EQ(bed[1].count(Counter::rdma_refusals_sent), 1u);
    EXPECT_TRUE(bed[0].rdma().deregister(bed[0].region));
    EXPECT_TRUE(bed[1].rdma().deregister(bed[1].region));
  }
}

TEST(Rdma, RangesOutsideTheRegionAreRefused) {
  Bed bed;
  const auto to = bed.peer(0, 1);
  const std::uint64_t size = bed[0].memory.size(), most = ~std::uint64_t{0};
  for (const RegionBytes bad :
       {RegionBytes{{}, 0, 1}, RegionBytes{{999}, 0, 1}, RegionBytes{bed[0].region, 0, size + 1},
        RegionBytes{bed[0].region, size, 1}, RegionBytes{bed[0].region, 1, most},
        RegionBytes{bed[0].region, most, 1}, RegionBytes{bed[0].region, most, most},
        RegionBytes{bed[0].region, size + 1, 0}}) {
    Right right;
    EXPECT_EQ(bed[0].rdma().post({}, 1, bad).status, RdmaStatus::bad_region);
    EXPECT_EQ(bed[0].rdma().request(to, 1, bad, bed.now()).status, RdmaStatus::bad_region);
    EXPECT_EQ(bed[0].rdma().grant(to, bad, right).status, RdmaStatus::bad_region);
    EXPECT_EQ(bed[0].rdma().write(to, {0, 0, most}, bad, bed.now()).status, RdmaStatus::bad_region);
  }
  EXPECT_EQ(bed[0].rdma().post({}, 1, bed[0].bytes(size, 0)).status, RdmaStatus::ok);
}

TEST(Rdma, ARegionInUseStaysAndItsNameIsNeverReused) {
  Bed bed;
  SimNode& node = bed[1];
  EXPECT_EQ(node.rdma().post({}, 1, node.bytes(0, 10)).status, RdmaStatus::ok);
  EXPECT_FALSE(node.rdma().deregister(node.region));
  bed[0].rdma().request(bed.peer(0, 1), 1, bed[0].bytes(0, 10), bed.now());
  wait(bed, node, 1);
  const RegionId old = node.region;
  EXPECT_TRUE(node.rdma().deregister(old));
  EXPECT_FALSE(node.rdma().deregister(old));
  const RegionId fresh = node.rdma().register_memory(node.memory);
  EXPECT_NE(fresh, old);
  EXPECT_EQ(node.rdma().post({}, 1, {old, 0, 10}).status, RdmaStatus::bad_region);
  EXPECT_EQ(node.rdma().post({}, 1, {fresh, 0, 10}).status, RdmaStatus::ok);
}

TEST(Rdma, RegionsAreLimited) {
  BedConfig config;
  config.driver.niu.rdma.max_regions = 3;
  Bed bed(config);
  EXPECT_TRUE(bed[0].rdma().register_memory(bed[0].memory).value);
  const RegionId last = bed[0].rdma().register_memory(bed[0].memory);
  EXPECT_EQ(bed[0].rdma().register_memory(bed[0].memory), RegionId{});
  EXPECT_TRUE(bed[0].rdma().deregister(last));
  EXPECT_TRUE(bed[0].rdma().register_memory(bed[0].memory).value);
}

TEST(Rdma, APostThatNobodyMetCanBeCancelled) {
  Bed bed;
  const Started post = bed[1].rdma().post({}, 1, bed[1].bytes(0, 10));
  EXPECT_TRUE(bed[1].rdma().cancel(post.transfer));
  EXPECT_FALSE(bed[1].rdma().cancel(post.transfer));
  EXPECT_TRUE(bed[1].rdma().deregister(bed[1].region));
  bed[0].rdma().request(bed.peer(0, 1), 1, bed[0].bytes(0, 10), bed.now());
  ASSERT_TRUE(bed.run([&] { return bed[1].count(Counter::rdma_requests_received) == 1; }));
  EXPECT_TRUE(bed[1].completions().empty());
  EXPECT_EQ(bed[1].count(Counter::rdma_grants_sent), 0u);
}

TEST(Rdma, TablesAreBoundedAndPushBack) {
  BedConfig config;
  config.driver.niu.rdma.max_posted = 4;
  config.driver.niu.rdma.max_open = 4;
  config.nodes = 3;
  Bed bed(config);
  for (int i = 0; i < 4; ++i)
    ASSERT_EQ(bed[1].rdma().post({}, 99, bed[1].bytes(0, 1)).status, RdmaStatus::ok);
  EXPECT_EQ(bed[1].rdma().post({}, 99, bed[1].bytes(0, 1)).status, RdmaStatus::no_room);

  // Six requests for node 2, which remembers four; the other two wait on the way, in order.
  for (const std::uint32_t from : {0u, 1u})
    for (std::uint32_t i = 0; i < 3; ++i) {
      bed[from].fill(100 * i, 100, 10 * from + i);
      ASSERT_EQ(bed[from]
                    .rdma()
                    .request(bed.peer(from, 2), 1, bed[from].bytes(100 * i, 100), bed.now())
                    .status,
                RdmaStatus::ok);
    }
  bed.run_for(milliseconds{2});
  EXPECT_EQ(bed[2].count(Counter::rdma_requests_received), 4u);
  EXPECT_GT(bed[2].count(Counter::rdma_requests_busy), 0u);

  std::uint64_t offset = 0;
  for (const std::uint32_t from : {1u, 0u})
    for (std::uint32_t i = 0; i < 3; ++i, offset += 100) {
      ASSERT_EQ(bed[2].rdma().post(bed.peer(2, from), 1, bed[2].bytes(offset, 100)).status,
                RdmaStatus::ok);
      ASSERT_EQ(wait(bed, bed[2], 1)[0].status, RdmaStatus::ok);
      EXPECT_TRUE(bed[2].holds(offset, 100, 10 * from + i)) << from << i;
    }
}

TEST(Rdma, RightsMayTravelInMessagesOfTheUsersOwn) {
  Bed bed;
  bed[0].fill(0, 20000, 6);
  Right right;
  const Started granted = bed[1].rdma().grant(bed.peer(1, 0), bed[1].bytes(0, 30000), right);
  ASSERT_EQ(granted.status, RdmaStatus::ok);
  EXPECT_EQ(right.length, 30000u);
  EXPECT_EQ(
      bed[0]
          .rdma()
          .write(bed.peer(0, 1), {right.slot, right.key, 100}, bed[0].bytes(0, 101), bed.now())
          .status,
      RdmaStatus::too_long);
  ASSERT_EQ(bed[0].rdma().write(bed.peer(0, 1), right, bed[0].bytes(0, 20000), bed.now()).status,
            RdmaStatus::ok);
  EXPECT_EQ(wait(bed, bed[1], 1)[0].length, 20000u);  // shorter than the right: that is fine
  EXPECT_EQ(wait(bed, bed[0], 1)[0].length, 20000u);
  EXPECT_TRUE(bed[1].holds(0, 20000, 6));
  // A right is good for once.
  bed[0].rdma().write(bed.peer(0, 1), right, bed[0].bytes(0, 10), bed.now());
  EXPECT_EQ(wait(bed, bed[0], 1)[0].status, RdmaStatus::no_right);
  EXPECT_EQ(bed[1].count(Counter::rdma_drop_right), 1u);
  // An empty write completes too.
  ASSERT_EQ(bed[1].rdma().grant(bed.peer(1, 0), bed[1].bytes(0, 5), right).status, RdmaStatus::ok);
  bed[0].rdma().write(bed.peer(0, 1), right, bed[0].bytes(0, 0), bed.now());
  EXPECT_EQ(wait(bed, bed[1], 1)[0].length, 0u);
}

TEST(Rdma, ARevokedRightIsWorthNothing) {
  Bed bed;
  Right right;
  bed[0].fill(0, 100, 1);
  const Started grant = bed[1].rdma().grant(bed.peer(1, 0), bed[1].bytes(0, 100), right);
  ASSERT_EQ(grant.status, RdmaStatus::ok);
  EXPECT_FALSE(bed[1].rdma().deregister(bed[1].region));
  EXPECT_TRUE(bed[1].rdma().revoke(grant.transfer));
  EXPECT_FALSE(bed[1].rdma().revoke(grant.transfer));
  ASSERT_EQ(bed[0].rdma().write(bed.peer(0, 1), right, bed[0].bytes(0, 100), bed.now()).status,
            RdmaStatus::ok);
  EXPECT_EQ(wait(bed, bed[0], 1)[0].status, RdmaStatus::no_right);
  EXPECT_EQ(bed[1].count(Counter::rdma_drop_right), 1u);
  EXPECT_EQ(bed[1].memory[0], std::byte{0});
  EXPECT_TRUE(bed[1].completions().empty());
  for (std::size_t i : {0, 1})
    EXPECT_TRUE(bed[i].rdma().deregister(bed[i].region)) << "nothing uses it any more";
}

TEST(Rdma, ARightThatIsRevokedHalfWayEndsTheWrite) {
  Bed bed;
  Right right;
  const Started grant = bed[1].rdma().grant(bed.peer(1, 0), bed[1].bytes(0, 500'000), right);
  bed[0].fill(0, 500'000, 1);
  bed[0].rdma().write(bed.peer(0, 1), right, bed[0].bytes(0, 500'000), bed.now());
  ASSERT_TRUE(bed.run([&] { return bed[1].count(Counter::rdma_bytes_received) > 100'000; }));
  ASSERT_TRUE(bed[1].rdma().revoke(grant.transfer));
  EXPECT_EQ(wait(bed, bed[0], 1)[0].status, RdmaStatus::no_right);
  EXPECT_TRUE(bed[1].completions().empty());
  EXPECT_FALSE(bed[1].holds(0, 500'000, 1));
}

TEST(Rdma, OfTwoWritesWithOneRightOneIsRefused) {
  for (const std::uint64_t length : {0, 100, 1400, 200'000}) {
    Bed bed;
    Right right;
    bed[0].fill(0, length, 1);
    bed[0].fill(length, length, 2);
    ASSERT_EQ(bed[1].rdma().grant(bed.peer(1, 0), bed[1].bytes(0, length), right).status,
              RdmaStatus::ok);
    TransferId writes[2];
    for (std::uint64_t i : {0, 1})
      writes[i] = bed[0]
                      .rdma()
                      .write(bed.peer(0, 1), right, bed[0].bytes(i * length, length), bed.now())
                      .transfer;
    const auto ends = wait(bed, bed[0], 2);
    ASSERT_NE(ends[0].status, ends[1].status) << length;
    const Completion& done = ends[ends[0].status == RdmaStatus::ok ? 0 : 1];
    const Completion& refused = ends[ends[0].status == RdmaStatus::ok ? 1 : 0];
    EXPECT_EQ(done.status, RdmaStatus::ok);
    EXPECT_EQ(refused.status, RdmaStatus::no_right);
    EXPECT_TRUE(bed[1].holds(0, length, done.transfer == writes[0] ? 1 : 2)) << length;
    EXPECT_EQ(wait(bed, bed[1], 1)[0].length, length);
  }
}

// With max_open = 1 what the peer asks for waits for a write to it, also for one that is refused.
TEST(Rdma, ARefusedWriteLetsThePeerHaveItsTurn) {
  BedConfig config;
  config.driver.niu.rdma.max_open = 1;
  Bed bed(config);
  const Right none{5, 6, 100};
  ASSERT_EQ(bed[0].rdma().write(bed.peer(0, 1), none, bed[0].bytes(0, 100), bed.now()).status,
            RdmaStatus::ok);
  bed[0].rdma().post({}, 1, bed[0].bytes(200, 100));
  bed[1].rdma().request(bed.peer(1, 0), 1, bed[1].bytes(0, 100), bed.now());
  EXPECT_EQ(wait(bed, bed[1], 1)[0].status, RdmaStatus::ok);
  EXPECT_EQ(wait(bed, bed[0], 2)[0].status, RdmaStatus::no_right);
}

// The refusal waits for room in the high lane.
TEST(Rdma, ARefusalIsNotLost) {
  BedConfig config;
  config.driver.niu.queue_depth = 16;
  Bed bed(config);
  const auto flood = [&] {
    return bed[1].niu.try_send(bed.peer(1, 0), Priority::high, packet(1), bed.now());
  };
  ASSERT_TRUE(bed.run([&] {
    while (flood() == link::SendStatus::sent) continue;
    return bed[0].count(Counter::receive_queue_full) > 10;
  }));
  bed.run_for(milliseconds{1});
  while (flood() == link::SendStatus::sent) continue;
  ASSERT_EQ(
      bed[0].rdma().write(bed.peer(0, 1), Right{5, 6, 100}, bed[0].bytes(0, 100), bed.now()).status,
      RdmaStatus::ok);
  bed.run([&] { return flood(), false; }, milliseconds{1});
  EXPECT_EQ(bed[1].count(Counter::rdma_drop_right), 0u);
  Completion c{};
  EXPECT_TRUE(bed.run([&] {
    while (bed[0].niu.peek(Priority::high)) bed[0].niu.pop(Priority::high);
    return bed[0].rdma().next_completion(c);
  }));
  EXPECT_EQ(c.status, RdmaStatus::no_right);
  EXPECT_EQ(bed[1].count(Counter::rdma_drop_right), 1u);
}

TEST(Rdma, OnlyGrantsThatAreNotCompleteCanBeRevoked) {
  Bed bed;
  EXPECT_FALSE(bed[1].rdma().revoke({}));
  const Started post = bed[1].rdma().post({}, 1, bed[1].bytes(0, 100));
  EXPECT_FALSE(bed[1].rdma().revoke(post.transfer));
  Right right;
  const Started grant = bed[1].rdma().grant(bed.peer(1, 0), bed[1].bytes(0, 100), right);
  bed[0].rdma().write(bed.peer(0, 1), right, bed[0].bytes(0, 100), bed.now());
  EXPECT_FALSE(bed[0].rdma().idle());
  ASSERT_EQ(wait(bed, bed[1], 1)[0].status, RdmaStatus::ok);
  EXPECT_FALSE(bed[1].rdma().revoke(grant.transfer));
  EXPECT_TRUE(bed[0].rdma().idle() && bed[1].rdma().idle());
}

// Its place goes to somebody who waits.
TEST(Rdma, ARevokedRightMakesRoom) {
  BedConfig config;
  config.driver.niu.rdma.max_open = 1;
  Bed bed(config);
  Right right;
  const Started grant = bed[1].rdma().grant(bed.peer(1, 0), bed[1].bytes(0, 100), right);
  bed[1].rdma().post({}, 1, bed[1].bytes(200, 100));
  bed[0].rdma().request(bed.peer(0, 1), 1, bed[0].bytes(0, 100), bed.now());
  bed.run_for(milliseconds{1});
  EXPECT_EQ(bed[1].count(Counter::rdma_grants_sent), 0u);
  ASSERT_TRUE(bed[1].rdma().revoke(grant.transfer));
  EXPECT_EQ(wait(bed, bed[1], 1)[0].status, RdmaStatus::ok);
}

TEST(Rdma, GrantsAreLimitedByMaxOpen) {
  BedConfig config;
  config.driver.niu.rdma.max_open = 2;
  Bed bed(config);
  Right right;
  EXPECT_EQ(bed[1].rdma().grant(bed.peer(1, 0), bed[1].bytes(0, 1), right).status, RdmaStatus::ok);
  EXPECT_EQ(bed[1].rdma().grant(bed.peer(1, 0), bed[1].bytes(0, 1), right).status, RdmaStatus::ok);
  EXPECT_EQ(bed[1].rdma().grant(bed.peer(1, 0), bed[1].bytes(0, 1), right).status,
            RdmaStatus::no_room);
}

TEST(Rdma, ManyTransfersFromSeveralPeersAtOnceShareFairly) {
  BedConfig config;
  config.nodes = 5;
  config.driver.memory = 2 << 20;
  Bed bed(config);
  constexpr std::size_t kEach = 4, kSize = 60000;
  for (std::size_t from = 1; from < 5; ++from)
    for (std::size_t i = 0; i < kEach; ++i) {
      const std::size_t n = (from - 1) * kEach + i;
      bed[from].fill(i * kSize, kSize, static_cast<std::uint32_t>(n));
      bed[0].rdma().post(bed.peer(0, from), static_cast<std::uint32_t>(i),
                         bed[0].bytes(n * kSize, kSize));
      bed[from].rdma().request(bed.peer(from, 0), static_cast<std::uint32_t>(i),
                               bed[from].bytes(i * kSize, kSize), bed.now());
    }
  // Nobody is through before everybody has started: all sixteen are open together.
  ASSERT_TRUE(bed.run([&] { return bed[0].count(Counter::rdma_grants_sent) == 16; }));
  EXPECT_EQ(bed[0].count(Counter::rdma_receives_completed), 0u);
  EXPECT_EQ(wait(bed, bed[0], 16).size(), 16u);
  for (std::size_t n = 0; n < 16; ++n)
    EXPECT_TRUE(bed[0].holds(n * kSize, kSize, static_cast<std::uint32_t>(n))) << n;
}

TEST(Rdma, MaxOpenIsKeptAndTheOthersGetTheirTurn) {
  BedConfig config;
  config.nodes = 6;
  config.driver.niu.rdma.max_open = 2;
  Bed bed(config);
  for (std::size_t from = 1; from < 6; ++from) {
    bed[0].rdma().post({}, 1, bed[0].bytes(from * 30000, 30000));
    bed[from].rdma().request(bed.peer(from, 0), 1, bed[from].bytes(0, 30000), bed.now());
  }
  std::size_t completed = 0;
  EXPECT_TRUE(bed.run([&] {
    const auto open =
        bed[0].count(Counter::rdma_grants_sent) - bed[0].count(Counter::rdma_receives_completed);
    EXPECT_LE(open, 2u);
    completed += bed[0].completions().size();
    return completed == 5;
  }));
}

// Two nodes ask each other at the same time and only one transfer may be open: the lower address
// sends first, whoever posts first.
TEST(Rdma, HeadToHeadTheLowerAddressSendsFirst) {
  for (const bool lower_asks_first : {true, false}) {
    BedConfig config;
    config.driver.niu.rdma.max_open = 1;
    Bed bed(config);
    ASSERT_LT(bed[0].port.address(), bed[1].port.address());
    const std::uint64_t size = 300000;
    bed[0].fill(0, size, 1);
    bed[1].fill(0, size, 2);
    // Connect first, so that both requests cross on the way.
    bed.peer(1, 0);
    bed[0].link.connect(bed.peer(0, 1), bed.now());
    ASSERT_TRUE(bed.run([&] { return bed[1].link.connected(bed.peer(1, 0)); }));
    for (std::size_t i : {0, 1})
      bed[i].rdma().post(bed.peer(i, 1 - i), 1, bed[i].bytes(size, size));
    for (std::size_t n : {0, 1}) {
      const std::size_t i = lower_asks_first ? n : 1 - n;
      bed[i].rdma().request(bed.peer(i, 1 - i), 1, bed[i].bytes(0, size), bed.now());
    }
    // While the lower one's bytes are on the way, not one comes back.
    std::size_t completed = 0;
    EXPECT_TRUE(bed.run([&] {
      if (bed[1].count(Counter::rdma_receives_completed) == 0) {
        EXPECT_EQ(bed[1].count(Counter::rdma_data_sent), 0u);
      }
      for (std::size_t i : {0, 1})
        for (const Completion& c : bed[i].completions()) {
          EXPECT_EQ(c.status, RdmaStatus::ok);
          ++completed;
        }
      return completed == 4;
    }));
    EXPECT_TRUE(bed[1].holds(size, size, 1));
    EXPECT_TRUE(bed[0].holds(size, size, 2));
  }
}

TEST(Rdma, TakingTurnsStarvesNobody) {
  BedConfig config;
  config.driver.niu.rdma.max_open = 1;
  Bed bed(config);
  constexpr int kEach = 20;
  int done[2] = {}, most_ahead = 0;
  for (std::size_t i : {0, 1})
    for (int n = 0; n < kEach; ++n) {
      bed[i].rdma().post({}, 1, bed[i].bytes(0, 5000));
      bed[i].rdma().request(bed.peer(i, 1 - i), 1, bed[i].bytes(5000, 5000), bed.now());
    }
  EXPECT_TRUE(bed.run([&] {
    for (std::size_t i : {0, 1})
      for (const Completion& c : bed[i].completions()) done[i] += c.receiving;
    most_ahead = std::max(most_ahead, std::abs(done[0] - done[1]));
    return done[0] == kEach && done[1] == kEach;
  }));
  EXPECT_LE(most_ahead, 3);
}

// What one waits for with max_open = 1 must never close a circle, even when the user of one side
// posts only after its own transfer is over.
TEST(Rdma, NobodyWaitsForAPostThatComesLater) {
  for (const std::size_t late : {0u, 1u}) {
    BedConfig config;
    config.driver.niu.rdma.max_open = 1;
    Bed bed(config);
    const std::size_t other = 1 - late;
    bed[other].rdma().post({}, 1, bed[other].bytes(0, 1000));
    for (std::size_t i : {0, 1})
      bed[i].rdma().request(bed.peer(i, 1 - i), 1, bed[i].bytes(5000, 1000), bed.now());
    std::size_t completed = 0;
    bool posted = false;
    EXPECT_TRUE(bed.run([&] {
      for (std::size_t i : {0, 1})
        for (const Completion& c : bed[i].completions()) {
          ++completed;
          if (i == late && !c.receiving && !posted) {
            posted = true;
            bed[late].rdma().post({}, 1, bed[late].bytes(0, 1000));
          }
        }
      return completed == 4;
    })) << late;
  }
}

TEST(Rdma, PeerDeathCompletesEverythingOfThatPeerOnBothSides) {
  BedConfig config;
  config.nodes = 3;
  config.link.dead_after = milliseconds{20};
  config.driver.niu.rdma.max_open = 2;
  Bed bed(config);
  const std::uint64_t size = 400000;
  // Node 0 and node 1 are in the middle of transfers both ways; more are asked for and posted.
  for (std::size_t i : {0, 1}) {
    const auto other = bed.peer(i, 1 - i);
    bed[i].rdma().post(other, 1, bed[i].bytes(0, size));
    bed[i].rdma().request(other, 1, bed[i].bytes(size, size), bed.now());
    bed[i].rdma().request(other, 77, bed[i].bytes(0, 10), bed.now());  // nobody posts
    bed[i].rdma().post(other, 78, bed[i].bytes(0, 10));                // nobody asks
  }
  const Started anybody = bed[0].rdma().post({}, 5, bed[0].bytes(0, 10));
  ASSERT_TRUE(bed.run([&] {
    return bed[0].count(Counter::rdma_bytes_received) > 10000 &&
           bed[1].count(Counter::rdma_bytes_received) > 10000 &&
           bed[0].count(Counter::rdma_requests_received) == 2;
  }));
  bed.net.partition(bed[0].port, bed[1].port);
  for (std::size_t i : {0, 1}) {
    const auto all = wait(bed, bed[i], 4);
    for (const Completion& c : all) EXPECT_EQ(c.status, RdmaStatus::peer_down);
  }
  // The post for anybody stays and is of use; the dead one's requests are forgotten.
  EXPECT_TRUE(bed[0].completions().empty());
  bed[0].rdma().post({}, 77, bed[0].bytes(0, 10));
  EXPECT_EQ(bed[0].count(Counter::rdma_grants_sent), 1u);
  ASSERT_EQ(bed[2].rdma().request(bed.peer(2, 0), 5, bed[2].bytes(0, 10), bed.now()).status,
            RdmaStatus::ok);
  EXPECT_EQ(wait(bed, bed[0], 1)[0].transfer, anybody.transfer);
  bed.run_for(milliseconds{1});
  EXPECT_EQ(bed[0].count(Counter::rdma_grants_sent), 2u);
}

TEST(Rdma, NothingStartsWithADeadPeer) {
  BedConfig config;
  config.link.dead_after = milliseconds{20};
  Bed bed(config);
  const auto dead = bed.peer(0, 1);
  bed.vanish(1);
  bed[0].rdma().request(dead, 1, bed[0].bytes(0, 10), bed.now());
  EXPECT_EQ(wait(bed, bed[0], 1)[0].status, RdmaStatus::peer_down);
  Right right;
  for (const PeerId peer : {dead, PeerId{12345}}) {
    EXPECT_EQ(bed[0].rdma().post(peer, 1, bed[0].bytes(0, 1)).status, RdmaStatus::peer_down);
    EXPECT_EQ(bed[0].rdma().request(peer, 1, bed[0].bytes(0, 1), bed.now()).status,
              RdmaStatus::peer_down);
    EXPECT_EQ(bed[0].rdma().grant(peer, bed[0].bytes(0, 1), right).status, RdmaStatus::peer_down);
    EXPECT_EQ(bed[0].rdma().write(peer, {0, 0, 9}, bed[0].bytes(0, 1), bed.now()).status,
              RdmaStatus::peer_down);
  }
  EXPECT_TRUE(bed[0].rdma().deregister(bed[0].region));
}

// The tables are used over and over without a leak: more transfers than max_posted, many times.
TEST(Rdma, TransfersAreReusedAndNamesAreNot) {
  BedConfig config;
  config.driver.niu.rdma.max_posted = 2;
  config.driver.niu.rdma.max_open = 2;
  Bed bed(config);
  TransferId last;
  for (int i = 0; i < 500; ++i) {
    const Started post = bed[1].rdma().post({}, 1, bed[1].bytes(0, 100));
    ASSERT_EQ(post.status, RdmaStatus::ok) << i;
    EXPECT_NE(post.transfer, last);
    last = post.transfer;
    ASSERT_EQ(bed[0].rdma().request(bed.peer(0, 1), 1, bed[0].bytes(0, 100), bed.now()).status,
              RdmaStatus::ok);
    ASSERT_TRUE(bed.run([&] {
      return bed[0].count(Counter::rdma_sends_completed) == static_cast<std::uint64_t>(i + 1);
    }));
    EXPECT_EQ(bed[0].completions().size() + bed[1].completions().size(), 2u);
  }
}

TEST(Rdma, LongTransfersDoNotDelayHighPriorityPackets) {
  BedConfig config;
  config.driver.memory = 8 << 20;
  Bed bed(config);
  bed[1].rdma().post({}, 1, bed[1].bytes(0, 8 << 20));
  bed[0].rdma().request(bed.peer(0, 1), 1, bed[0].bytes(0, 8 << 20), bed.now());
  ASSERT_TRUE(bed.run([&] { return bed[1].count(Counter::rdma_bytes_received) > 100000; }));
  for (std::uint32_t tag = 0; tag < 20; ++tag) {
    const link::Time start = bed.now();
    ASSERT_EQ(bed[0].niu.try_send(bed.peer(0, 1), Priority::high, packet(tag), bed.now()),
              link::SendStatus::sent);
    ASSERT_TRUE(bed.run([&] { return bed[1].niu.peek(Priority::high) != nullptr; }));
    bed[1].niu.pop(Priority::high);
    EXPECT_LT(bed.now() - start, milliseconds{1});
  }
  EXPECT_EQ(bed[1].count(Counter::rdma_receives_completed), 0u);  // it was under way all the time
}

}  // namespace
}  // namespace viaduct::startx
