// Processes of a node that sleep until a message comes.
#include <gtest/gtest.h>

#include "libmpi_lite/channel/node.hpp"
#include "libmpi_lite/channel/shm.hpp"
#include "tests/link/isolated.hpp"
#include "tests/mpi/channel/bed.hpp"
#include "tests/mpi/channel/pair.hpp"

namespace viaduct::mpi {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int kMessages = 5000;
constexpr std::chrono::milliseconds kLongest{900};

// Each message is answered; whoever waits sleeps. How often nobody woke it.
int exchange(Pair& pair, int rank) {
  Pair::Process launch(pair, rank);
  Nodes nodes(launch);
  Sink sink;
  const auto channel = open_shm_channel(sink, nodes, 2);
  launch.fence();
  channel->crowded();
  int got = 0, overslept = 0;
  sink.control = [&](int, Bytes) { ++got; };
  const std::byte word{1};
  for (int round = 0; round < kMessages; ++round) {
    const auto send = [&] { EXPECT_TRUE(channel->send_control(1 - rank, {&word, 1}, {})); };
    if (rank == 0) send();
    while (got <= round) {
      const auto before = Clock::now();
      EXPECT_TRUE(channel->sleep(kLongest));
      if (Clock::now() - before >= kLongest) ++overslept;
      channel->poll();
    }
    if (rank == 1) send();
  }
  launch.fence();
  return overslept;
}

// A lost wake-up costs the whole time. Twice a busy machine may have kept a process from its CPU
// for so long.
TEST(ShmSleep, AMessageWakesTheSleeper) {
  Pair pair;
  link::Child first([&] { EXPECT_LE(exchange(pair, 0), 2); });
  link::Child second([&] { EXPECT_LE(exchange(pair, 1), 2); });
  EXPECT_TRUE(first.succeeded());
  EXPECT_TRUE(second.succeeded());
}

TEST(ShmSleep, NotForEver) {
  Pair pair;
  EXPECT_TRUE(link::succeeds([&] {
    Pair::Process launch(pair, 0);
    Nodes nodes(launch);
    Sink sink;
    const auto channel = open_shm_channel(sink, nodes, 2);
    const auto before = Clock::now();
    EXPECT_TRUE(channel->sleep(std::chrono::milliseconds{20}));
    EXPECT_GE(Clock::now() - before, std::chrono::milliseconds{20});
  }));
}

}  // namespace
}  // namespace viaduct::mpi
