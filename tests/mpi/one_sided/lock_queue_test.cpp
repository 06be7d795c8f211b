// The lock of a window: who gets it when, compared with the rules for random requests.
#include "libmpi_lite/rma/lock_queue.hpp"

#include <gtest/gtest.h>

#include <random>
#include <set>

namespace viaduct::mpi {
namespace {

struct Log {
  std::vector<int> granted;
  auto grant() {
    return [this](int rank) { granted.push_back(rank); };
  }
};

TEST(LockQueue, SharedTogetherExclusiveAloneInOrder) {
  LockQueue queue;
  Log log;
  queue.request(1, false, log.grant());
  queue.request(2, false, log.grant());
  EXPECT_EQ(log.granted, (std::vector{1, 2}));
  queue.request(3, true, log.grant());
  queue.request(4, false, log.grant());  // not before 3, which has come earlier
  EXPECT_EQ(log.granted.size(), 2u);
  queue.release(1, log.grant());
  EXPECT_EQ(log.granted.size(), 2u);
  queue.release(2, log.grant());
  EXPECT_EQ(log.granted, (std::vector{1, 2, 3}));
  queue.release(3, log.grant());
  EXPECT_EQ(log.granted, (std::vector{1, 2, 3, 4}));
  EXPECT_TRUE(queue.knows(4));
  EXPECT_FALSE(queue.knows(3));
}

TEST(LockQueue, OneThatGoesWhileItWaitsLetsOthersIn) {
  LockQueue queue;
  Log log;
  queue.request(1, false, log.grant());
  queue.request(2, true, log.grant());
  queue.request(3, false, log.grant());
  queue.release(2, log.grant());
  EXPECT_EQ(log.granted, (std::vector{1, 3}));
  queue.release(7, log.grant());  // nobody
  EXPECT_EQ(log.granted.size(), 2u);
}

TEST(LockQueue, RandomRequestsAreAllGrantedAndNeverTooMany) {
  std::mt19937 random(7);
  LockQueue queue;
  std::set<int> asked, exclusive, holders;
  int grants = 0;
  const auto grant = [&](int rank) {
    EXPECT_TRUE(asked.contains(rank) && !holders.contains(rank));
    holders.insert(rank);
    ++grants;
    for (const int other : holders) EXPECT_TRUE(holders.size() == 1 || !exclusive.contains(other));
  };
  for (int step = 0; step < 20'000; ++step) {
    const int rank = static_cast<int>(random() % 12);
    if (asked.contains(rank)) {
      if (!holders.contains(rank) && random() % 10 != 0) continue;  // some give up
      asked.erase(rank);
      holders.erase(rank);
      queue.release(rank, grant);
    } else {
      asked.insert(rank);
      exclusive.erase(rank);
      if (random() % 3 == 0) exclusive.insert(rank);
      queue.request(rank, exclusive.contains(rank), grant);
    }
    ASSERT_TRUE(asked.empty() || !holders.empty()) << "somebody waits, and nobody has the lock";
  }
  EXPECT_GT(grants, 2'000);
}

}  // namespace
}  // namespace viaduct::mpi
