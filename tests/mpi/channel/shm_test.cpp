// Processes of a node: who may reach whom, and how they sleep until a message comes.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>
#include <map>
#include <thread>
#include <vector>

#include "libmpi_lite/channel/node.hpp"
#include "libmpi_lite/channel/shm.hpp"
#include "libmpi_lite/channel/shm_segment.hpp"
#include "tests/mpi/channel/bed.hpp"
#include "tests/mpi/channel/pair.hpp"
#include "tests/support/isolated.hpp"

namespace viaduct::mpi {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int kMessages = 5000;
constexpr std::chrono::milliseconds kLongest{900};

enum class Way : std::uint8_t { oversubscribed, roomy, bell };

// Sleeps as a process whose only other channel is a descriptor on which nothing comes.
void sleep_on_bell(Channel& channel) {
  int bell = -1;
  if (!channel.arm_bell(bell)) return;
  pollfd rung{bell, POLLIN, 0};
  ::poll(&rung, 1, static_cast<int>(kLongest.count()));
  channel.disarm_bell();
}

// Each message is answered; whoever waits sleeps. How often nobody woke it.
int exchange(Pair& pair, int rank, Way way) {
  Pair::Process launch(pair, rank);
  Nodes nodes(launch);
  Sink sink;
  const auto channel = open_shm_channel(sink, nodes, 2);
  launch.fence();
  if (way == Way::oversubscribed) channel->oversubscribed();
  int got = 0, overslept = 0;
  sink.control = [&](int, Bytes) { ++got; };
  const std::byte word{1};
  for (int round = 0; round < kMessages; ++round) {
    const auto send = [&] { EXPECT_TRUE(channel->send_control(1 - rank, {&word, 1}, {})); };
    if (rank == 0) send();
    while (got <= round) {
      const auto before = Clock::now();
      if (way == Way::bell)
        sleep_on_bell(*channel);
      else
        EXPECT_TRUE(channel->sleep(kLongest, -1));
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
class ShmSleep : public testing::TestWithParam<Way> {};
TEST_P(ShmSleep, AMessageWakesTheSleeper) {
  Pair pair;
  link::Child first([&] { EXPECT_LE(exchange(pair, 0, GetParam()), 2); });
  link::Child second([&] { EXPECT_LE(exchange(pair, 1, GetParam()), 2); });
  EXPECT_TRUE(first.succeeded());
  EXPECT_TRUE(second.succeeded());
}
INSTANTIATE_TEST_SUITE_P(EachWay, ShmSleep,
                         testing::Values(Way::oversubscribed, Way::roomy, Way::bell));

// As a program with file capabilities starts: closed to others, who are not root.
void start_closed() {
  constexpr unsigned kNobody = 65534;
  if (::getuid() == 0) {
    ASSERT_EQ(::setresgid(kNobody, kNobody, kNobody), 0);
    ASSERT_EQ(::setresuid(kNobody, kNobody, kNobody), 0);
  }
  ASSERT_EQ(::prctl(PR_SET_DUMPABLE, 0, 0, 0, 0), 0);
}

TEST(Shm, ProgramsWithCapabilitiesReachEachOther) {
  Pair pair;
  const auto talk = [&](int rank) {
    start_closed();
    Pair::Process launch(pair, rank);
    Nodes nodes(launch);
    Sink sink;
    const auto channel = open_shm_channel(sink, nodes, 2);
    launch.fence();
    bool heard = false;
    sink.control = [&](int, Bytes) { heard = true; };
    const std::byte word{1};
    EXPECT_TRUE(channel->send_control(1 - rank, {&word, 1}, {}));
    const auto until = Clock::now() + std::chrono::seconds{10};
    while (!heard && sink.lost.empty() && Clock::now() < until) channel->poll();
    EXPECT_TRUE(sink.lost.empty()) << sink.lost.begin()->second;
    EXPECT_TRUE(heard);
    EXPECT_NE(channel->describe(1 - rank).find("copied by both ends"), std::string::npos)
        << channel->describe(1 - rank);
    launch.fence();
  };
  link::Child first([&] { talk(0); });
  link::Child second([&] { talk(1); });
  EXPECT_TRUE(first.succeeded());
  EXPECT_TRUE(second.succeeded());
}

// Whoever is killed between naming itself and counting the ring leaves the next one no gap.
TEST(Shm, ARingWhoseWriterDiedEarlyIsNotInTheWay) {
  const SegmentMap segment = SegmentMap::create(3);
  segment->ring(0).writer = 1 + 1;
  EXPECT_EQ(segment->claim(2), &segment->ring(1));
  EXPECT_EQ(segment->claimed, 2u);
  EXPECT_EQ(segment->claim(0), &segment->ring(2));
  EXPECT_EQ(segment->claimed, 3u);
  EXPECT_EQ(segment->claim(1), nullptr) << "there are no more";
  for (std::uint32_t n = 0; n < segment->claimed; ++n) EXPECT_NE(segment->ring(n).writer, 0u);
}

// Whoever reads it should look for the reason where it is.
TEST(Shm, WhyMemoryCannotBeOpenedIsToldWithTheRightRemedy) {
  const auto said = [](int pid) -> std::string {
    try {
      const SegmentMap opened = SegmentMap::open(pid, 0, 1);
      return "nothing";
    } catch (const base::SetupError& error) {
      return error.what();
    }
  };
  const pid_t ended = ::fork();
  if (ended == 0) ::_exit(0);
  ASSERT_EQ(::waitpid(ended, nullptr, 0), ended);
  EXPECT_THAT(said(ended), testing::HasSubstr("it has ended"));

  link::Child without_files([&] {
    const rlimit none{0, 0};
    ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &none), 0);
    EXPECT_THAT(said(::getpid()), testing::HasSubstr("ulimit -n"));
  });
  EXPECT_TRUE(without_files.succeeded());
}

// All at once, as in the first moment of a job.
TEST(Shm, EachGetsARingOfItsOwn) {
  constexpr int kRanks = 16;
  const SegmentMap segment = SegmentMap::create(kRanks);
  std::vector<std::thread> ranks;
  for (int rank = 0; rank < kRanks; ++rank)
    ranks.emplace_back([&, rank] {
      const Ring* ring = segment->claim(rank);
      ASSERT_NE(ring, nullptr);
      EXPECT_EQ(ring->writer, static_cast<unsigned>(rank) + 1);
    });
  for (std::thread& rank : ranks) rank.join();
  EXPECT_EQ(segment->claimed, static_cast<unsigned>(kRanks));
}

// The one piece of a short transfer fails at the end that gets to it first; the other hears of it.
TEST(Shm, ATransferThatFailsAtOneEndFailsAtBoth) {
  constexpr std::size_t kBytes = 8192;
  constexpr int kReceiver = 0, kSender = 1;
  Pair pair;
  const auto move = [&](int rank) {
    Pair::Process launch(pair, rank);
    Nodes nodes(launch);
    Sink sink;
    const auto channel = open_shm_channel(sink, nodes, 2);
    launch.fence();
    channel->watch(1 - rank);
    void* closed = ::mmap(nullptr, kBytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    ASSERT_NE(closed, MAP_FAILED);
    const MutableBytes data(static_cast<std::byte*>(closed), kBytes);
    std::vector<std::byte> room(kBytes);
    const auto tell = [&](const RemoteKey& remote_key) {
      const std::byte kind{1};
      EXPECT_TRUE(channel->send_control(1 - rank, {&kind, 1}, remote_key.bytes));
    };
    sink.control = [&](int from, Bytes message) {
      RemoteKey theirs{}, ours{};
      std::memcpy(theirs.bytes.data(), message.data() + 1, theirs.bytes.size());
      if (rank == kSender) {
        EXPECT_TRUE(channel->start_send(from, data, theirs, 1));
        return;
      }
      EXPECT_TRUE(channel->open_receive(from, room, &theirs, 1, ours));
      tell(ours);
    };
    if (channel->describe(1 - rank).find("copied by both ends") != std::string::npos) {
      if (rank == kSender) {
        RemoteKey offered{};
        channel->offer(kReceiver, data, offered);
        tell(offered);
      }
      const auto& ends = rank == kSender ? sink.sent : sink.received;
      const auto until = Clock::now() + std::chrono::seconds{10};
      while (ends.empty() && Clock::now() < until) channel->poll();
      EXPECT_EQ(ends, (std::map<Cookie, bool>{{1, false}}));
    }
    launch.fence();
  };
  link::Child receiver([&] { move(kReceiver); });
  link::Child sender([&] { move(kSender); });
  EXPECT_TRUE(receiver.succeeded());
  EXPECT_TRUE(sender.succeeded());
}

// CPUs that this process may run on.
std::vector<int> cpus() {
  cpu_set_t set;
  std::vector<int> found;
  if (::sched_getaffinity(0, sizeof set, &set) != 0) return found;
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu)
    if (CPU_ISSET(cpu, &set)) found.push_back(cpu);
  return found;
}

// By whoever waits for the other, who sleeps where that is so.
TEST(Shm, ProcessesKnowThatTheyShareACpu) {
  const std::vector<int> all = cpus();
  ASSERT_FALSE(all.empty());
  Pair pair;
  const auto body = [&](int rank) {
    const auto run_on = [](int cpu) {
      cpu_set_t one;
      CPU_ZERO(&one);
      CPU_SET(cpu, &one);
      ASSERT_EQ(::sched_setaffinity(0, sizeof one, &one), 0);
    };
    run_on(all[0]);
    Pair::Process launch(pair, rank);
    Nodes nodes(launch);
    Sink sink;
    const auto channel = open_shm_channel(sink, nodes, 2);
    launch.fence();
    EXPECT_FALSE(channel->shares_cpu()) << "nobody that it has to do with";
    channel->watch(1 - rank);
    EXPECT_TRUE(channel->shares_cpu()) << "from the start";
    launch.fence();
    if (rank == 1) run_on(all.back());
    for (int poll = 0; poll < 1000; ++poll) channel->poll();  // which says so
    launch.fence();
    EXPECT_EQ(channel->shares_cpu(), all.size() == 1);
    launch.fence();
  };
  link::Child first([&] { body(0); });
  link::Child second([&] { body(1); });
  EXPECT_TRUE(first.succeeded());
  EXPECT_TRUE(second.succeeded());
}

TEST(Shm, NobodySleepsForEver) {
  Pair pair;
  EXPECT_TRUE(link::succeeds([&] {
    Pair::Process launch(pair, 0);
    Nodes nodes(launch);
    Sink sink;
    const auto channel = open_shm_channel(sink, nodes, 2);
    const auto before = Clock::now();
    EXPECT_TRUE(channel->sleep(std::chrono::milliseconds{20}, -1));
    EXPECT_GE(Clock::now() - before, std::chrono::milliseconds{20});
  }));
}

}  // namespace
}  // namespace viaduct::mpi
