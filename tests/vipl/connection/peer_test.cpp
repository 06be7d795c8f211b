// The peer-to-peer model: any order, crossing requests, accidents.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <random>

#include "tests/vipl/connection/bed.hpp"

namespace viaduct::vipl::test {
namespace {

using State = FakeVi::State;

struct Peers : testing::Test {
  Vis vis;
  FakeVi &x = vis.add(), &y = vis.add(), &u = vis.add(), &v = vis.add();
  Nic a{nic(1)}, b{nic(2)};

  // Both ends have the same discriminator, as programs do that swap the hosts only.
  static VIP_RETURN start(Nic& nic, FakeVi& vi, const Nic& other, const std::string& discriminator,
                          Clock::duration longest = kLong) {
    return nic.manager.peer_request(vi, disc(discriminator), other.at(discriminator), in(longest));
  }
  static VIP_RETURN finish(Nic& nic, FakeVi& vi) {
    EndpointInfo card;
    return nic.manager.peer_wait(vi, card);
  }
  static VIP_RETURN look(Nic& nic, FakeVi& vi) {
    EndpointInfo card;
    return nic.manager.peer_done(vi, card);
  }
};

TEST_F(Peers, ConnectInAnyOrder) {
  // By who is first, the quickest of three rounds: a single one may be late on a busy machine.
  std::array<Clock::duration, 2> took{kLong, kLong};
  for (const bool a_first : {true, false, true, false, true, false}) {
    Nic& first = a_first ? a : b;
    Nic& second = a_first ? b : a;
    ASSERT_EQ(start(first, x, second, "p"), VIP_SUCCESS);
    EXPECT_EQ(look(first, x), VIP_NOT_DONE);
    std::this_thread::sleep_for(50ms);
    EXPECT_EQ(look(first, x), VIP_NOT_DONE);
    const auto began = Clock::now();
    ASSERT_EQ(start(second, y, first, "p"), VIP_SUCCESS);
    EXPECT_EQ(finish(second, y), VIP_SUCCESS);
    took[a_first] = std::min(took[a_first], Clock::now() - began);
    EXPECT_EQ(finish(first, x), VIP_SUCCESS);
    EXPECT_EQ(x.remote().queue_pair.number, y.mine.queue_pair.number);
    EXPECT_EQ(y.remote().queue_pair.number, x.mine.queue_pair.number);
    EXPECT_EQ(finish(first, x), VIP_INVALID_STATE);
    EXPECT_EQ(look(second, y), VIP_INVALID_STATE);
    first.disconnect(x);
    EXPECT_TRUE(y.wait_for(State::error));
    second.disconnect(y);
  }
  EXPECT_LT(took[true], 900ms);  // found, not met by a retry
  EXPECT_LT(took[false], 900ms);
}

TEST_F(Peers, TheFirstMayComeBeforeTheOthersNicIsOpen) {
  const Endpoint remote{nic(3), disc("p")};
  ASSERT_EQ(a.manager.peer_request(x, disc("p"), remote, in(kLong)), VIP_SUCCESS);
  std::this_thread::sleep_for(20ms);
  Nic c(nic(3));
  ASSERT_EQ(start(c, y, a, "p"), VIP_SUCCESS);
  EXPECT_EQ(finish(a, x), VIP_SUCCESS);
  EXPECT_EQ(finish(c, y), VIP_SUCCESS);
}

TEST_F(Peers, NobodyComes) {
  const auto began = Clock::now();
  ASSERT_EQ(start(a, x, b, "p", 150ms), VIP_SUCCESS);
  EXPECT_EQ(finish(a, x), VIP_TIMEOUT);
  EXPECT_GE(Clock::now() - began, 150ms);
  EXPECT_EQ(x.state(), State::idle);
  EXPECT_EQ(finish(a, x), VIP_INVALID_STATE);
  // Idle as soon as it has failed, not only when somebody asks; then it may try again.
  ASSERT_EQ(start(a, x, b, "p", 50ms), VIP_SUCCESS);
  EXPECT_TRUE(x.wait_for(State::idle));
  ASSERT_EQ(start(a, x, b, "p", 50ms), VIP_SUCCESS);
  EXPECT_EQ(finish(a, x), VIP_TIMEOUT);
}

TEST_F(Peers, NoRouteIsNotReachable) {
  const Endpoint remote{{{198, 51, 100, 1}, kPort}, disc("p")};
  ASSERT_EQ(a.manager.peer_request(x, disc("p"), remote, in(100ms)), VIP_SUCCESS);
  EXPECT_EQ(finish(a, x), VIP_NOT_REACHABLE);
}

TEST_F(Peers, BothSidesLearnWhatDiffers) {
  y.mine.max_transfer_size = 100;
  ASSERT_EQ(start(a, x, b, "p"), VIP_SUCCESS);
  ASSERT_EQ(start(b, y, a, "p"), VIP_SUCCESS);
  EXPECT_EQ(finish(a, x), VIP_INVALID_MTU);
  EXPECT_EQ(finish(b, y), VIP_INVALID_MTU);
  EXPECT_EQ(x.state(), State::idle);
  EXPECT_EQ(y.state(), State::idle);
}

TEST_F(Peers, MatchOnlyThoseThatNameEachOther) {
  Nic c(nic(3));
  ASSERT_EQ(a.manager.peer_request(x, disc("1"), {nic(2), disc("2")}, in(400ms)), VIP_SUCCESS);
  // The same two discriminators, not swapped; another host; the other model.
  ASSERT_EQ(b.manager.peer_request(y, disc("1"), {nic(1), disc("2")}, in(300ms)), VIP_SUCCESS);
  ASSERT_EQ(c.manager.peer_request(u, disc("2"), {nic(1), disc("1")}, in(300ms)), VIP_SUCCESS);
  EXPECT_EQ(b.request(v, a.at("1")), VIP_NO_MATCH);
  EXPECT_EQ(finish(b, y), VIP_TIMEOUT);
  EXPECT_EQ(finish(c, u), VIP_TIMEOUT);
  EXPECT_EQ(finish(a, x), VIP_TIMEOUT);
}

TEST_F(Peers, WithinOneNicAlsoWithEqualNames) {
  ASSERT_EQ(start(a, x, a, "same"), VIP_SUCCESS);
  ASSERT_EQ(a.manager.peer_request(u, disc("1"), a.at("2"), in(kLong)), VIP_SUCCESS);
  EXPECT_EQ(look(a, x), VIP_NOT_DONE);  // not with itself
  ASSERT_EQ(start(a, y, a, "same"), VIP_SUCCESS);
  ASSERT_EQ(a.manager.peer_request(v, disc("2"), a.at("1"), in(kLong)), VIP_SUCCESS);
  for (FakeVi* vi : {&x, &y, &u, &v}) EXPECT_EQ(finish(a, *vi), VIP_SUCCESS);
  EXPECT_EQ(x.remote().queue_pair.number, y.mine.queue_pair.number);
  EXPECT_EQ(u.remote().queue_pair.number, v.mine.queue_pair.number);
}

TEST_F(Peers, ManyWithTheSameNamesFindEachOtherInPairs) {
  constexpr std::size_t kPairs = 6;
  const auto left = vis.add(kPairs), right = vis.add(kPairs);
  for (std::size_t i = 0; i < kPairs; ++i) {
    ASSERT_EQ(start(a, *left[i], b, "same"), VIP_SUCCESS);
    ASSERT_EQ(start(b, *right[i], a, "same"), VIP_SUCCESS);
  }
  std::map<std::uint32_t, std::uint32_t> partner;
  for (std::size_t i = 0; i < kPairs; ++i) {
    ASSERT_EQ(finish(a, *left[i]), VIP_SUCCESS);
    ASSERT_EQ(finish(b, *right[i]), VIP_SUCCESS);
    partner[left[i]->mine.queue_pair.number] = left[i]->remote().queue_pair.number;
  }
  for (std::size_t i = 0; i < kPairs; ++i)
    EXPECT_EQ(partner[right[i]->remote().queue_pair.number], right[i]->mine.queue_pair.number);
}

TEST_F(Peers, ADeviceThatRefusesEndsTheAttemptAndTheOtherGoesOn) {
  x.device_refuses = true;
  ASSERT_EQ(start(a, x, b, "p"), VIP_SUCCESS);
  ASSERT_EQ(start(b, y, a, "p"), VIP_SUCCESS);
  EXPECT_EQ(finish(a, x), VIP_ERROR_RESOURCE);
  EXPECT_EQ(x.state(), State::idle);
  x.device_refuses = false;
  ASSERT_EQ(start(a, x, b, "p"), VIP_SUCCESS);
  EXPECT_EQ(finish(a, x), VIP_SUCCESS);
  EXPECT_EQ(finish(b, y), VIP_SUCCESS);
}

TEST_F(Peers, DisconnectEndsTheAttempt) {
  ASSERT_EQ(start(a, x, b, "p"), VIP_SUCCESS);
  std::thread waiter([&] { EXPECT_EQ(finish(a, x), VIP_INVALID_STATE); });
  std::this_thread::sleep_for(30ms);
  a.disconnect(x);
  waiter.join();
  EXPECT_EQ(x.state(), State::idle);
  ASSERT_EQ(start(b, y, a, "p", 100ms), VIP_SUCCESS);
  EXPECT_EQ(finish(b, y), VIP_TIMEOUT);
}

// Requests at the same moment, from two threads: thousands of times, both roles of the tie-break.
TEST_F(Peers, CrossingRequests) {
  constexpr int kRounds = 3000;
  std::minstd_rand random(1);
  for (int round = 0; round < kRounds; ++round) {
    const std::string name = numbered("r", static_cast<std::size_t>(round % 7));
    std::atomic<int> ready{0};
    const auto together = [&] {
      for (++ready; ready < 2;) {
      }
    };
    const unsigned lag = random() % 4000;
    std::thread other([&] {
      together();
      for (unsigned i = 0; i < lag; ++i) asm volatile("");
      ASSERT_EQ(start(b, y, a, name), VIP_SUCCESS);
      ASSERT_EQ(finish(b, y), VIP_SUCCESS);
    });
    together();
    ASSERT_EQ(start(a, x, b, name), VIP_SUCCESS);
    ASSERT_EQ(finish(a, x), VIP_SUCCESS);
    other.join();
    ASSERT_EQ(x.remote().queue_pair.psn, y.mine.queue_pair.psn) << round;
    ASSERT_EQ(y.remote().queue_pair.psn, x.mine.queue_pair.psn) << round;
    ASSERT_EQ(x.state(), State::connected);
    (round % 2 == 0 ? a : b).disconnect(round % 2 == 0 ? x : y);
    ASSERT_TRUE((round % 2 == 0 ? y : x).wait_for(State::error));
    (round % 2 == 0 ? b : a).disconnect(round % 2 == 0 ? y : x);
    ASSERT_EQ(x.complaint() + y.complaint(), "");
  }
}

}  // namespace
}  // namespace viaduct::vipl::test
