// What a process that waits in vain sleeps on: one of its channels, while the others ring a bell.
#include <gtest/gtest.h>

#include <memory>
#include <vector>

#include "libmpi_lite/transfer/engine.hpp"
#include "libmpi_lite/transfer/wait.hpp"
#include "tests/mpi/transfer/mock_channel.hpp"

namespace viaduct::mpi {
namespace {

constexpr std::chrono::milliseconds kMax{1};

// A process of a job of two.
class Sleep : public testing::Test {
 protected:
  // Each with the descriptor of its bell; -1: none, as nothing can come through it.
  void open(const std::vector<int>& bells) {
    transfer_ = std::make_unique<Transfer>(
        [&](ChannelSink&) {
          std::vector<std::unique_ptr<Channel>> channels;
          for (const int bell : bells) {
            auto channel = std::make_unique<MockChannel>();
            channel->bell = bell;
            channels_.push_back(channel.get());
            channels.push_back(std::move(channel));
          }
          return channels;
        },
        [](int) { return 0; }, 0, 2, TransferConfig{});
  }
  void expect_all_disarmed() {
    for (const MockChannel* channel : channels_) EXPECT_EQ(channel->bells_armed, 0);
  }

  std::unique_ptr<Transfer> transfer_;
  std::vector<MockChannel*> channels_;
};

TEST_F(Sleep, OnTheLastChannelWithTheBellOfAnother) {
  open({-1, 7, 8});
  EXPECT_TRUE(transfer_->sleep(kMax));
  EXPECT_TRUE(channels_[0]->slept_beside.empty() && channels_[1]->slept_beside.empty());
  EXPECT_EQ(channels_[2]->slept_beside, std::vector{7});
  expect_all_disarmed();
}

TEST_F(Sleep, OnTheOnlyChannel) {
  open({8});
  EXPECT_TRUE(transfer_->sleep(kMax));
  EXPECT_EQ(channels_[0]->slept_beside, std::vector{-1});
}

// Through which something has come, or which has work to do.
TEST_F(Sleep, NotWhereAChannelHasNoBell) {
  open({-1, 7, 8});
  channels_[1]->rings = false;
  EXPECT_FALSE(transfer_->sleep(kMax));
  EXPECT_TRUE(channels_[2]->slept_beside.empty());
  expect_all_disarmed();
}

// Not for long: about as long as a message takes.
constexpr int kShortWait = 200, kLongWait = 3000;  // polls

TEST_F(Sleep, SoonWhereTheOtherOneWaitsForThisCpu) {
  open({-1, 8});
  channels_[1]->shares = true;
  Idle idle;
  for (int poll = 0; poll < 50; ++poll) idle.pause(kAnyOfSeveral);
  EXPECT_TRUE(channels_[1]->slept_beside.empty()) << "the message may be on its way";
  for (int poll = 50; poll < kShortWait; ++poll) idle.pause(kAnyOfSeveral);
  EXPECT_FALSE(channels_[1]->slept_beside.empty());
}

TEST_F(Sleep, NotSoonWhereItHasACpuOfItsOwn) {
  open({-1, 8});
  Idle idle;
  for (int poll = 0; poll < kLongWait; ++poll) idle.pause(kAnyOfSeveral);
  EXPECT_TRUE(channels_[1]->slept_beside.empty());
}

TEST_F(Sleep, NotSoonWhereItTakesLong) {
  open({8, 9});
  channels_[0]->shares = true;
  channels_[1]->lightly = false;
  Idle idle;
  for (int poll = 0; poll < kLongWait; ++poll) idle.pause(kAnyOfSeveral);
  EXPECT_TRUE(channels_[1]->slept_beside.empty());
}

// The kernel may move one of them at each wake-up.
TEST_F(Sleep, LooksOnceInAWaitHoweverProcessesAreMoved) {
  open({-1, 8});
  const auto& slept = channels_[1]->slept_beside;
  Idle idle;
  const auto polls_of_sleeps = [&](std::size_t sleeps) {
    int polls = 0;
    for (const std::size_t end = slept.size() + sleeps; slept.size() < end; ++polls) {
      channels_[1]->shares = slept.size() % 2 == 0;
      idle.pause(kAnyOfSeveral);
    }
    return polls;
  };
  EXPECT_GT(polls_of_sleeps(20), kLongWait) << "it looks whether something comes soon";
  EXPECT_LE(polls_of_sleeps(20), 40) << "then it does not";
}

}  // namespace
}  // namespace viaduct::mpi
