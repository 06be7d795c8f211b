// How often a NIC is looked at that its program drives. tests/vipl/programs has what a look does.
#include "libvipl/core/progress/own_progress.hpp"

#include <gtest/gtest.h>

namespace viaduct::vipl::test {
namespace {

using namespace std::chrono_literals;

TEST(OwnProgressInterval, IsFiftyMicrosecondsOfTheCounter) {
  EXPECT_EQ(150'000u, OwnProgress::shortest_interval(3'000'000'000, 1s));
  EXPECT_EQ(5'000u, OwnProgress::shortest_interval(100'000'000, 1s));
  EXPECT_EQ(50'000u, OwnProgress::shortest_interval(999, 999ns));  // too early to say
}

// A suspended machine's counter may begin again at 0, and those of two sockets may differ. The
// program must not wait for the counter to come round.
TEST(OwnProgressInterval, ACounterThatWasSetBack) {
  const std::uint64_t first = 1'000'000'000'000;
  for (const std::uint64_t now : {std::uint64_t{0}, first - 1, first - 10'000'000})
    for (const auto time : {1ms, 1000ms, 1'000'000'000ms})
      EXPECT_LE(OwnProgress::shortest_interval(now - first, time), 800'000u) << now;
}

}  // namespace
}  // namespace viaduct::vipl::test
