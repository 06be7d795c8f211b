#include "drivers/base/fault_injector.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <bit>
#include <vector>

#include "drivers/base/setup_error.hpp"

namespace viaduct::base {
namespace {

std::string refusal(std::string_view text) {
  try {
    FaultSpec::parse(text);
  } catch (const SetupError& error) {
    return error.what();
  }
  return "";
}

TEST(FaultSpec, IsReadAsWritten) {
  const auto spec =
      FaultSpec::parse("loss=1%,dup=0.1%,reorder=0.25,corrupt=100%,truncate=0,seed=7");
  EXPECT_DOUBLE_EQ(spec.loss, 0.01);
  EXPECT_DOUBLE_EQ(spec.duplicate, 0.001);
  EXPECT_DOUBLE_EQ(spec.reorder, 0.25);
  EXPECT_DOUBLE_EQ(spec.corrupt, 1);
  EXPECT_DOUBLE_EQ(spec.truncate, 0);
  EXPECT_EQ(spec.seed, 7u);
  EXPECT_TRUE(spec.any());
  EXPECT_FALSE(FaultSpec::parse("").any());
  EXPECT_FALSE(FaultSpec::parse("seed=9").any());
}

TEST(FaultSpec, SaysWhichPartIsBadAndHowToWriteIt) {
  using testing::AllOf, testing::HasSubstr;
  for (const auto* bad : {"loss", "loss=", "loss=x", "loss=1%%", "loss=101%", "loss=-1%",
                          "loss=nan", "loss=1.5", "losses=1%", "seed=-1", "seed=1.5",
                          "seed=", "=1%", "loss=1%x", "seed=99999999999999999999"})
    EXPECT_THAT(refusal(bad),
                AllOf(HasSubstr(std::string("'") + bad + "'"), HasSubstr("loss=1%,dup=0.1%")))
        << bad;
  EXPECT_THAT(refusal("dup=1%,loss=2"), HasSubstr("'loss=2'"));
  EXPECT_NE(refusal("loss=1%,"), "");
  EXPECT_NE(refusal(",loss=1%"), "");
  EXPECT_NE(refusal("loss=1%, dup=1%"), "");
}

TEST(FaultInjector, DoesWhatItCountsAsOftenAsAsked) {
  FaultInjector injector(
      {.loss = 0.1, .duplicate = 0.2, .reorder = 0.3, .corrupt = 0.4, .truncate = 0.5, .seed = 3});
  FaultCounts seen;
  constexpr int frames = 100'000;
  for (int i = 0; i < frames; ++i) {
    const Fate fate = injector.next();
    if (fate.lose) {
      EXPECT_FALSE(fate.duplicate || fate.reorder || fate.corrupt || fate.truncate);
    }
    seen.lost += fate.lose;
    seen.duplicated += fate.duplicate;
    seen.reordered += fate.reorder;
    seen.corrupted += fate.corrupt;
    seen.truncated += fate.truncate;
  }
  const FaultCounts& counts = injector.counts();
  EXPECT_EQ(seen.lost, counts.lost);
  EXPECT_EQ(seen.duplicated, counts.duplicated);
  EXPECT_EQ(seen.reordered, counts.reordered);
  EXPECT_EQ(seen.corrupted, counts.corrupted);
  EXPECT_EQ(seen.truncated, counts.truncated);
  EXPECT_NEAR(seen.lost, frames * 0.1, frames * 0.01);
  EXPECT_NEAR(seen.duplicated, frames * 0.9 * 0.2, frames * 0.01);
  EXPECT_NEAR(seen.reordered, frames * 0.9 * 0.3, frames * 0.01);
  EXPECT_NEAR(seen.corrupted, frames * 0.9 * 0.4, frames * 0.01);
  EXPECT_NEAR(seen.truncated, frames * 0.9 * 0.5, frames * 0.01);
}

TEST(FaultInjector, RepeatsItselfForTheSameSeedOnly) {
  const auto losses = [](const FaultSpec& spec) {
    FaultInjector injector(spec);
    std::vector<bool> lost;
    for (int i = 0; i < 1000; ++i) lost.push_back(injector.next().lose);
    return lost;
  };
  EXPECT_EQ(losses({.loss = 0.5, .seed = 1}), losses({.loss = 0.5, .seed = 1}));
  EXPECT_NE(losses({.loss = 0.5, .seed = 1}), losses({.loss = 0.5, .seed = 2}));
  // Another fault beside it does not change which frames are lost.
  EXPECT_EQ(losses({.loss = 0.5, .seed = 1}), losses({.loss = 0.5, .duplicate = 0.5, .seed = 1}));
}

TEST(FaultInjector, NeverAndAlwaysMeanIt) {
  FaultInjector never({}), always({.loss = 1});
  for (int i = 0; i < 1000; ++i) {
    const Fate fate = never.next();
    EXPECT_FALSE(fate.lose || fate.duplicate || fate.reorder || fate.corrupt || fate.truncate);
    EXPECT_TRUE(always.next().lose);
  }
}

TEST(FaultInjector, FlipsOneToThreeBitsAnywhere) {
  FaultInjector injector({.corrupt = 1});
  std::array<int, 4> flips{};
  std::array<bool, 64> touched{};
  for (int round = 0; round < 3000; ++round) {
    std::array<std::byte, 8> frame{};
    injector.corrupt(frame);
    int bits = 0;
    for (std::size_t i = 0; i < 8; ++i) {
      bits += std::popcount(static_cast<unsigned char>(frame[i]));
      for (std::size_t bit = 0; bit < 8; ++bit)
        if ((frame[i] >> bit & std::byte{1}) != std::byte{0}) touched[i * 8 + bit] = true;
    }
    ASSERT_GE(bits, 1);
    ASSERT_LE(bits, 3);
    ++flips[bits];
  }
  for (int bits = 1; bits <= 3; ++bits) EXPECT_GT(flips[bits], 500);
  EXPECT_THAT(touched, testing::Each(true));
  injector.corrupt({});
}

TEST(FaultInjector, TruncatesToLess) {
  FaultInjector injector({.truncate = 1});
  std::array<bool, 10> seen{};
  for (int round = 0; round < 1000; ++round) {
    const std::size_t length = injector.truncated(10);
    ASSERT_LT(length, 10u);
    seen[length] = true;
  }
  EXPECT_THAT(seen, testing::Each(true));
  EXPECT_EQ(injector.truncated(0), 0u);
  EXPECT_EQ(injector.truncated(1), 0u);
}

}  // namespace
}  // namespace viaduct::base
