// Process 0 of a job of three, for tests that decide themselves what the others say.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <vector>

#include "libmpi_lite/core/data/datatype_builder.hpp"
#include "libmpi_lite/transfer/engine.hpp"
#include "tests/mpi/transfer/mock_channel.hpp"

namespace viaduct::mpi {

class ProcessOfThree : public testing::Test {
 protected:
  static constexpr std::uint32_t kContext = 4;

  explicit ProcessOfThree(const TransferConfig& config) {
    define_datatypes();
    transfer_ = std::make_unique<Transfer>(
        [&](ChannelSink& sink) {
          sink_ = &sink;
          std::vector<std::unique_ptr<Channel>> channels;
          auto channel = std::make_unique<MockChannel>();
          channel_ = channel.get();
          channels.push_back(std::move(channel));
          return channels;
        },
        [](int) { return 0; }, 0, 3, config);
    world_ = make<Comm>(kContext, make<Group>(std::vector{0, 1, 2}, 0), nullptr, nullptr);
  }

  ChannelSink* sink_ = nullptr;
  MockChannel* channel_ = nullptr;
  std::unique_ptr<Transfer> transfer_;
  Ref<Comm> world_;
};

}  // namespace viaduct::mpi
