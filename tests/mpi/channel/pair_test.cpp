// The channels between two processes, opened as the library opens them: ports from VIADUCT_PORTS,
// addresses by way of the process manager.
#include <gtest/gtest.h>

#include "tests/mpi/channel/bed.hpp"
#include "tests/mpi/channel/pair.hpp"
#include "tests/support/isolated.hpp"

namespace viaduct::mpi {
namespace {

constexpr int kMessages = 2000;
constexpr std::size_t kLong = 3'000'000;

class Side {
 public:
  Side(Pair& pair, const char* name, int rank) : rank_(rank), launch_(pair, rank) {
    setenv("VIADUCT_MEMORY", "nohuge", 1);
    channel_ = open_channel(name, sink_, launch_);
  }
  // Messages of all sizes both ways, then long data both ways at once.
  void talk() {
    int got = 0, sent = 0;
    RemoteKey mine, theirs;
    sink_.control = [&](int from, Bytes m) {
      EXPECT_EQ(from, 1 - rank_);
      if (got == kMessages) {
        ASSERT_EQ(m.size(), 1 + sizeof theirs);
        std::memcpy(&theirs, m.data() + 1, sizeof theirs);
        told_ = true;
        return;
      }
      const auto expected = message(from, got++);
      EXPECT_TRUE(std::equal(m.begin(), m.end(), expected.begin(), expected.end())) << got;
    };
    until([&] {
      if (sent < kMessages && channel_->send_control(1 - rank_, {}, message(rank_, sent))) ++sent;
      return sent == kMessages && got == kMessages;
    });
    const auto data = patterned(static_cast<std::uint64_t>(rank_), kLong);
    std::vector<std::byte> into(kLong);
    until([&] { return channel_->open_receive(1 - rank_, into, nullptr, 1, mine); });
    const std::byte kind{1};
    until([&] {
      return channel_->send_control(1 - rank_, {&kind, 1}, std::as_bytes(std::span(&mine, 1)));
    });
    until([&] { return told_; });
    until([&] { return channel_->start_send(1 - rank_, data, theirs, 2); });
    until([&] { return sink_.sent.contains(2) && sink_.received.contains(1); });
    EXPECT_TRUE(sink_.sent[2] && sink_.received[1]);
    EXPECT_EQ(into, patterned(static_cast<std::uint64_t>(1 - rank_), kLong));
  }
  void leave() {
    until([&] { return !channel_->busy(); });
    channel_.reset();
  }
  void until(const std::function<bool()>& done) {
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds{60};
    while (!done()) {
      if (!channel_->poll()) sched_yield();
      if (std::chrono::steady_clock::now() > end) {
        ADD_FAILURE() << "rank " << rank_ << " waits in vain";
        _exit(1);
      }
    }
  }
  Sink& sink() { return sink_; }

 private:
  std::vector<std::byte> message(int from, int number) const {
    const auto n = static_cast<std::size_t>(number);
    auto bytes = patterned(n, 1 + n * 37 % (n % 10 == 0 ? channel_->limits().control : 300));
    bytes[0] = static_cast<std::byte>(from);
    return bytes;
  }

  const int rank_;
  bool told_ = false;
  Pair::Process launch_;
  Sink sink_;
  std::unique_ptr<Channel> channel_;
};

class Pairs : public testing::TestWithParam<const char*> {};
INSTANTIATE_TEST_SUITE_P(All, Pairs, testing::Values("mbcf", "startx"),
                         [](const auto& test) { return std::string(test.param); });

TEST_P(Pairs, TalkAndLeave) {
  Pair pair;
  const auto both = [&](int rank) {
    Side side(pair, GetParam(), rank);
    side.talk();
    side.leave();
  };
  link::Child first([&] { both(0); }), second([&] { both(1); });
  EXPECT_TRUE(first.succeeded());
  EXPECT_TRUE(second.succeeded());
}

TEST_P(Pairs, AKilledProcessIsLost) {
  Pair pair;
  link::Child stays([&] {
    setenv("VIADUCT_DEAD_AFTER_MS", "500", 1);
    Side side(pair, GetParam(), 0);
    side.talk();
    link::Child::tell();
    side.until([&] { return side.sink().lost.contains(1); });
  });
  link::Child dies([&] {
    Side side(pair, GetParam(), 1);
    side.talk();
    side.until([] { return false; });
  });
  EXPECT_TRUE(stays.wait_until_told());
  dies.kill();
  EXPECT_TRUE(stays.succeeded());
}

TEST_P(Pairs, WithoutAPortTheUserIsToldWhatToSet) {
  Pair pair;
  EXPECT_TRUE(link::succeeds([&] {
    Pair::Process launch(pair, 1);
    unsetenv("VIADUCT_PORTS");
    Sink sink;
    try {
      open_channel(GetParam(), sink, launch);
      FAIL() << "opened";
    } catch (const base::SetupError& error) {
      EXPECT_NE(std::string(error.what()).find("VIADUCT_PORTS"), std::string::npos);
    }
  }));
}

}  // namespace
}  // namespace viaduct::mpi
