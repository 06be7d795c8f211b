// When a process that shares its CPU may sleep until a message wakes it.
#include <gtest/gtest.h>

#include <memory>
#include <vector>

#include "libmpi_lite/transfer/engine.hpp"
#include "tests/mpi/transfer/notebook.hpp"

namespace viaduct::mpi {
namespace {

// A process of a job of two.
class Sleep : public testing::Test {
 protected:
  void open(const std::vector<bool>& wakes) {
    transfer_ = std::make_unique<Transfer>(
        [&](ChannelSink&) {
          std::vector<std::unique_ptr<Channel>> channels;
          for (const bool w : wakes) {
            auto channel = std::make_unique<Notebook>();
            channel->wakes = w;
            notebooks_.push_back(channel.get());
            channels.push_back(std::move(channel));
          }
          return channels;
        },
        [](int) { return 0; }, 0, 2, TransferConfig{});
  }

  std::unique_ptr<Transfer> transfer_;
  std::vector<Notebook*> notebooks_;
};

TEST_F(Sleep, WhereEveryChannelWakes) {
  open({true, true, true});
  transfer_->set_crowded();
  EXPECT_TRUE(transfer_->sleep());
  EXPECT_EQ(notebooks_[0]->slept, 1);
  EXPECT_EQ(notebooks_[1]->slept, 0) << "one sleep is enough";
}

TEST_F(Sleep, NotWhereAMessageMayComeThroughAChannelThatDoesNotWake) {
  open({true, false});
  transfer_->set_crowded();
  EXPECT_FALSE(transfer_->sleep());
  EXPECT_EQ(notebooks_[0]->slept, 0);
}

TEST_F(Sleep, NotWithACpuOfItsOwn) {
  open({true});
  EXPECT_FALSE(transfer_->sleep());
}

}  // namespace
}  // namespace viaduct::mpi
