#include "drivers/base/ring_buffer.hpp"

#include <gtest/gtest.h>

#include <cstdint>

namespace viaduct::base {
namespace {

TEST(RingBuffer, IsFirstInFirstOutAcrossManyWraps) {
  RingBuffer<int> queue(8);
  int in = 0, out = 0;
  for (int round = 0; round < 1000; ++round) {
    for (int n = round % 9; n > 0 && queue.back(); --n) {
      *queue.back() = in++;
      queue.push();
    }
    for (int n = round % 7; n > 0 && queue.front(); --n) {
      ASSERT_EQ(*queue.front(), out++);
      queue.pop();
    }
    ASSERT_EQ(queue.size(), static_cast<std::size_t>(in - out));
  }
  EXPECT_GT(out, 2000);
}

TEST(RingBuffer, HoldsItsCapacityAndNoMore) {
  RingBuffer<int> queue(4);
  for (int i = 0; i < 4; ++i) {
    ASSERT_NE(queue.back(), nullptr);
    *queue.back() = i;
    queue.push();
  }
  EXPECT_EQ(queue.back(), nullptr);
  EXPECT_TRUE(queue.full());
  queue.push();  // nothing to push: must not corrupt
  EXPECT_EQ(queue.size(), 4u);
  EXPECT_EQ(*queue.front(), 0);
}

TEST(RingBuffer, PoppingAnEmptyQueueDoesNothing) {
  RingBuffer<int> queue(2);
  queue.pop();
  EXPECT_TRUE(queue.empty());
  *queue.back() = 7;
  queue.push();
  ASSERT_NE(queue.front(), nullptr);
  EXPECT_EQ(*queue.front(), 7);
}

TEST(RingBuffer, SmallEntriesDoNotShareCacheLines) {
  RingBuffer<std::uint32_t> queue(4);
  std::uint32_t* first = queue.back();
  queue.push();
  std::uint32_t* second = queue.back();
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(first) % 64, 0u);
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(second) - reinterpret_cast<std::uintptr_t>(first),
            64u);
}

}  // namespace
}  // namespace viaduct::base
