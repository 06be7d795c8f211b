// A thousand connections in one process, both ends, in both models.
#include <gtest/gtest.h>

#include "tests/vipl/connection/bed.hpp"

namespace viaduct::vipl::test {
namespace {

using State = FakeVi::State;

constexpr std::size_t kMany = 1000;

std::string name(std::size_t i) {
  return numbered("vi", i);
}

// Every connection ends with its own other end, in the end also those of the program that closes
// its NIC.
void expect_paired(const std::vector<FakeVi*>& left, const std::vector<FakeVi*>& right) {
  for (std::size_t i = 0; i < left.size(); ++i) {
    ASSERT_EQ(left[i]->state(), State::connected) << i;
    ASSERT_EQ(right[i]->state(), State::connected) << i;
    ASSERT_EQ(left[i]->remote().queue_pair.number, right[i]->mine.queue_pair.number) << i;
    ASSERT_EQ(right[i]->remote().queue_pair.number, left[i]->mine.queue_pair.number) << i;
  }
}

struct Scale : testing::Test {
  Vis vis;
  const std::vector<FakeVi*> left = vis.add(kMany), right = vis.add(kMany);
  const std::size_t before = open_descriptors();

  void TearDown() override { EXPECT_EQ(open_descriptors(), before); }
};

TEST_F(Scale, PeersPostedAllBeforeAnyIsWaitedFor) {
  {
    Nic a(nic(1)), b(nic(2));
    for (std::size_t i = 0; i < kMany; ++i)
      ASSERT_EQ(a.manager.peer_request(*left[i], disc(name(i)), b.at(name(i)), in(kLong)),
                VIP_SUCCESS);
    // In the opposite order.
    for (std::size_t i = kMany; i-- > 0;)
      ASSERT_EQ(b.manager.peer_request(*right[i], disc(name(i)), a.at(name(i)), in(kLong)),
                VIP_SUCCESS);
    EndpointInfo card;
    for (FakeVi* vi : left) ASSERT_EQ(a.manager.peer_wait(*vi, card), VIP_SUCCESS);
    for (FakeVi* vi : right) ASSERT_EQ(b.manager.peer_wait(*vi, card), VIP_SUCCESS);
    expect_paired(left, right);
    a.manager.announce(1, 2);  // to a thousand
    for (const FakeVi* vi : right) ASSERT_EQ(vi->aliases().size(), 1u);
    for (FakeVi* vi : left) a.disconnect(*vi);
    for (const FakeVi* vi : right) ASSERT_TRUE(vi->wait_for(State::error));
  }
}

TEST_F(Scale, ClientsOfOneServerWithinOneNic) {
  {
    Nic a(nic(1));
    auto served = std::async(std::launch::async, [&] {
      for (FakeVi* vi : right)
        if (const VIP_RETURN result = a.serve(*vi, "server"); result != VIP_SUCCESS) return result;
      return VIP_SUCCESS;
    });
    std::vector<std::future<void>> clients;
    std::atomic<std::size_t> next{0};
    for (int thread = 0; thread < 8; ++thread)
      clients.push_back(std::async(std::launch::async, [&] {
        for (std::size_t i = next++; i < kMany; i = next++) {
          VIP_RETURN result = VIP_NO_MATCH;
          while (result == VIP_NO_MATCH) result = a.request(*left[i], a.at("server"));
          ASSERT_EQ(result, VIP_SUCCESS);
        }
      }));
    for (auto& client : clients) client.get();
    ASSERT_EQ(served.get(), VIP_SUCCESS);
    for (const FakeVi* vi : left) ASSERT_EQ(vi->state(), State::connected);
    for (FakeVi* vi : right) a.disconnect(*vi);
    for (const FakeVi* vi : left) ASSERT_TRUE(vi->wait_for(State::error));
  }
}

TEST_F(Scale, AllOfAThousandSeeTheOtherNicClose) {
  {
    Nic a(nic(1));
    {
      Nic b(nic(2));
      for (std::size_t i = 0; i < kMany; ++i) {
        ASSERT_EQ(a.manager.peer_request(*left[i], disc(name(i)), b.at(name(i)), in(kLong)),
                  VIP_SUCCESS);
        ASSERT_EQ(b.manager.peer_request(*right[i], disc(name(i)), a.at(name(i)), in(kLong)),
                  VIP_SUCCESS);
      }
      for (const FakeVi* vi : left) ASSERT_TRUE(vi->wait_for(State::connected));
      for (const FakeVi* vi : right) ASSERT_TRUE(vi->wait_for(State::connected));
    }
    for (const FakeVi* vi : left) ASSERT_TRUE(vi->wait_for(State::error));
  }
}

// The program's own files keep the small numbers, for select().
TEST_F(Scale, SmallDescriptorNumbersStayFree) {
  {
    Nic a(nic(1));
    for (std::size_t i = 0; i < kMany; ++i)
      ASSERT_EQ(a.manager.peer_request(*left[i], disc(name(i)), {nic(2), disc(name(i))}, in(kLong)),
                VIP_SUCCESS);
    const int fd = ::dup(0);
    EXPECT_LT(fd, 64);
    ::close(fd);
  }
}

}  // namespace
}  // namespace viaduct::vipl::test
