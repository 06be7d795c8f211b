// The channel over Virtual Interfaces.
#include "tests/mpi/channel/vi_bed.hpp"

#include <algorithm>

#include "tests/mpi/channel/workload.hpp"

namespace viaduct::mpi {
namespace {

using std::chrono::milliseconds;
using vi::fake::Fabric;

// What a test changes of the fabric ends with it.
struct ViChannelTest : testing::Test {
  ~ViChannelTest() override {
    Fabric::get().release();
    Fabric::get().refusals = 0;
    Fabric::get().accepts = -1;
  }
  static std::uint64_t sum(ViBed& bed, ViCounter counter) {
    std::uint64_t all = 0;
    for (int rank = 0; rank < bed.size(); ++rank) all += bed.count(rank, counter);
    return all;
  }
};

// ---- messages ----------------------------------------------------------------------------------

TEST_F(ViChannelTest, MessagesOfAllSizesArriveInOrder) {
  ViBed bed(4);
  EXPECT_TRUE(Chatter(bed, 1, 400).run());
  EXPECT_EQ(sum(bed, ViCounter::vis_connected), 12u);
  EXPECT_EQ(sum(bed, ViCounter::drop_malformed), 0u);
}

TEST_F(ViChannelTest, TheSmallestWindowIsEnough) {
  ViBed bed(3, {.credits = 4});
  EXPECT_TRUE(Chatter(bed, 2, 400).run());
}

// A message that finds no receive would end the connection.
TEST_F(ViChannelTest, WhoIsNotPolledIsSentNoMoreThanItHasRoomFor) {
  ViBed bed(2, {.credits = 6});
  ASSERT_TRUE(bed.send(0, 1));
  bed.sleep(1);
  const std::byte message[1]{std::byte{1}};
  std::size_t taken = 1;
  bed.run([&] { return taken += bed[0].send_control(1, message, {}), false; }, milliseconds{50});
  EXPECT_LE(taken, 1u + 4);
  std::size_t arrived = 0;
  bed.sink(1).control = [&](int, Bytes) { ++arrived; };
  bed.sleep(1, false);
  EXPECT_TRUE(bed.run([&] {
    taken += bed[0].send_control(1, message, {});
    return arrived >= 100;
  }));
  EXPECT_TRUE(bed.sink(0).lost.empty());
}

// Credits alone come back to who only sends.
TEST_F(ViChannelTest, WhoOnlyReceivesReturnsCredits) {
  ViBed bed(2);
  std::size_t arrived = 0;
  bed.sink(1).control = [&](int, Bytes) { ++arrived; };
  for (int i = 0; i < 200; ++i) ASSERT_TRUE(bed.send(0, 1));
  EXPECT_TRUE(bed.run([&] { return arrived == 200; }));
  const auto alone = bed.count(1, ViCounter::credits_sent);
  EXPECT_GT(alone, 200u / 12);
  EXPECT_LT(alone, 200u / 3);
}

// ---- connections on demand ---------------------------------------------------------------------

TEST_F(ViChannelTest, NobodyIsConnectedBeforeTheFirstMessage) {
  ViBed bed(4);
  bed.run_for(milliseconds{20});
  EXPECT_EQ(sum(bed, ViCounter::vis_made), 0u);
  int from = -1;
  bed.sink(3).control = [&](int rank, Bytes) { from = rank; };
  ASSERT_TRUE(bed.send(1, 3));
  EXPECT_TRUE(bed.run([&] { return from == 1; }));
  EXPECT_EQ(sum(bed, ViCounter::vis_made), 2u);
  EXPECT_EQ(bed.count(1, ViCounter::sends_waited), 1u);
  EXPECT_EQ(bed.count(3, ViCounter::sends_waited), 0u);
  // The receiver has asked nobody where the sender is.
  EXPECT_EQ(bed.job.gets, 1u);
}

TEST_F(ViChannelTest, BothAskAndGetOneVi) {
  for (int round = 0; round < 20; ++round) {
    ViBed bed(2);
    int arrived = 0;
    bed.sink(0).control = bed.sink(1).control = [&](int, Bytes) { ++arrived; };
    const std::byte message[1]{std::byte{1}};
    bool sent[2]{};
    ASSERT_TRUE(bed.run([&] {
      for (int rank : {round & 1, 1 - (round & 1)})
        sent[rank] = sent[rank] || bed[rank].send_control(1 - rank, message, {});
      return arrived == 2;
    }));
    EXPECT_EQ(sum(bed, ViCounter::vis_made), 2u);
    EXPECT_EQ(sum(bed, ViCounter::vis_connected), 2u);
  }
}

TEST_F(ViChannelTest, WhoWaitsForAProcessIsConnectedToIt) {
  ViBed bed(3);
  bed[0].watch(2);
  ASSERT_TRUE(bed.run([&] { return sum(bed, ViCounter::vis_connected) == 2; }));
  bed.kill(2);
  EXPECT_TRUE(bed.run([&] { return bed.sink(0).lost.contains(2); }));
  EXPECT_TRUE(bed.sink(1).lost.empty());
}

TEST_F(ViChannelTest, UnauthorizedRequestsAreRefusedAndCounted) {
  ViBed bed(1);
  const ViNic unauthorized("fake1", ViBed::kJobKey + 1);
  VIP_VI_ATTRIBUTES attributes = unauthorized.vi_attributes();
  VIP_VI_HANDLE vi = nullptr;
  ASSERT_EQ(VipCreateVi(unauthorized.handle(), &attributes, nullptr, nullptr, &vi), VIP_SUCCESS);
  const std::string text = bed.job.values.at("0 viaduct-vi");
  const auto address = ViAddress::parse(text.substr(0, text.find('/')));
  ASSERT_TRUE(address);
  VIP_ADDRESS_ROOM local = unauthorized.address().with(unauthorized.peer(1));
  VIP_ADDRESS_ROOM remote = address->with(unauthorized.peer(0));
  ASSERT_EQ(VipConnectPeerRequest(vi, &local.Address, &remote.Address, 5000), VIP_SUCCESS);
  VIP_CONNECT_EVENT event{};
  ASSERT_TRUE(bed.run([&] {
    VipNicProgress(unauthorized.handle());
    return VipConnectEvent(unauthorized.handle(), &event) == VIP_SUCCESS;
  }));
  EXPECT_EQ(event.Outcome, VIP_REJECT);
  const auto counters = bed[0].all_counters();
  const auto refused = std::ranges::find(counters, "vis_refused", &base::NamedCounter::name);
  ASSERT_NE(refused, counters.end());
  EXPECT_EQ(refused->value, 1u);
  EXPECT_EQ(bed.count(0, ViCounter::vis_made), 0u);
  VipDestroyVi(vi);
}

// ---- a limit -----------------------------------------------------------------------------------

class Limited : public ViChannelTest, public testing::WithParamInterface<std::size_t> {};
INSTANTIATE_TEST_SUITE_P(ViLimit, Limited, testing::Values(1, 2, 3));

TEST_P(Limited, AllTalkToAllInOrder) {
  const std::size_t limit = GetParam();
  ViBed bed(6, {.limit = limit});
  EXPECT_TRUE(Chatter(bed, 3, 40).run());
  for (int rank = 0; rank < bed.size(); ++rank) {
    EXPECT_LE(bed.count(rank, ViCounter::vis_peak), limit);
    EXPECT_GE(bed.count(rank, ViCounter::vis_closed), 5 - limit);
    EXPECT_TRUE(bed.sink(rank).lost.empty());
  }
}

TEST_P(Limited, LongTransfersToo) {
  ViBed bed(5, {.limit = GetParam()});
  RandomTraffic traffic(bed);
  std::mt19937 random(7);
  for (int i = 0; i < 100; ++i) {
    const int from = static_cast<int>(random() % 5),
              to = (from + 1 + static_cast<int>(random() % 4)) % 5;
    const std::size_t size = 1 + random() % 100'000;
    traffic.add(from, to, size, size + random() % 100);
  }
  EXPECT_TRUE(traffic.run());
  traffic.check();
}

TEST_F(ViChannelTest, TheLeastRecentlyUsedViIsClosed) {
  ViBed bed(4, {.limit = 2});
  for (const int to : {1, 2, 1}) ASSERT_TRUE(bed.send(0, to));
  bed.run_for(milliseconds{5});
  ASSERT_TRUE(bed.send(0, 3));
  EXPECT_EQ(bed[0].describe(2).find("not connected") != std::string::npos, true);
  EXPECT_EQ(bed[0].describe(1).find("not connected") != std::string::npos, false);
}

// A device with fewer queue pairs than are wanted is a limit, too.
TEST_F(ViChannelTest, ADeviceWithoutQueuePairsIsALimit) {
  ViBed bed(4);
  ASSERT_TRUE(bed.send(0, 1));
  Fabric::get().refusals = 1;  // the next queue pair
  ASSERT_TRUE(bed.send(0, 2));
  EXPECT_EQ(bed.count(0, ViCounter::vis_closed), 1u);
  EXPECT_TRUE(bed.sink(0).lost.empty());
  // Nothing there to close.
  Fabric::get().refusals = 1;
  const std::byte message[1]{std::byte{1}};
  EXPECT_TRUE(bed.run([&] {
    bed[3].send_control(1, message, {});
    return bed.sink(3).lost.contains(1);
  }));
  EXPECT_NE(bed.sink(3).lost.at(1).find("VIADUCT_VI_LIMIT"), std::string::npos);
}

// ---- long transfers ----------------------------------------------------------------------------

class Transfers : public ViChannelTest, public testing::WithParamInterface<std::size_t> {};
// Registered, some of them, none.
INSTANTIATE_TEST_SUITE_P(Pinned, Transfers, testing::Values(1u << 30, 3u << 20, 0));

TEST_P(Transfers, OfAllSizes) {
  ViBed bed(3, {.pinned = GetParam()});
  RandomTraffic traffic(bed);
  std::mt19937 random(5);
  for (int i = 0; i < 150; ++i) {
    const int from = i % 3, to = (from + 1 + i % 2) % 3;
    const std::size_t size = i % 50 == 0 ? 9'000'000 : 1 + random() % 200'000;
    traffic.add(from, to, size, size + random() % 100);
  }
  EXPECT_TRUE(traffic.run());
  traffic.check();
  EXPECT_EQ(sum(bed, ViCounter::rdma_writes) == 0, GetParam() == 0);
  EXPECT_EQ(sum(bed, ViCounter::pieces_sent) == 0, GetParam() == 1u << 30);
}

TEST_F(ViChannelTest, AReceiveThatIsClosedIsNotHeardOf) {
  ViBed bed(2);
  std::vector<std::byte> into(50'000);
  RemoteKey key;
  ASSERT_TRUE(bed[0].open_receive(1, into, nullptr, 77, key));
  bed[0].close_receive(1, key);
  bed[0].close_receive(1, key);  // nothing
  bed.run_for(milliseconds{5});
  EXPECT_TRUE(bed.sink(0).received.empty());
}

// Numbers that no correct process sends.
TEST_F(ViChannelTest, WrongNumbersAreDropped) {
  ViBed bed(3);
  std::vector<std::byte> into(50'000, std::byte{0xcc}), data(60'000);
  RemoteKey key;
  ASSERT_TRUE(bed[0].open_receive(1, into, nullptr, 77, key));
  ViRemoteKey wrong = vi_key_of(key);
  wrong.handle = 0;  // in pieces
  wrong.room = data.size();
  const auto start = [&](int from, ViRemoteKey with, Cookie cookie) {
    RemoteKey bytes;
    std::memcpy(bytes.bytes.data(), &with, sizeof with);
    return bed.run([&] { return bed[from].start_send(0, data, bytes, cookie); }) &&
           bed.run([&] { return bed.sink(from).sent.contains(cookie); });
  };
  EXPECT_TRUE(start(1, wrong, 1));  // longer than the receive
  EXPECT_TRUE(start(2, wrong, 2));  // another one's
  wrong.receive = kViMaxNumber;
  EXPECT_TRUE(start(1, wrong, 3));  // no receive
  bed.run_for(milliseconds{5});
  EXPECT_GE(bed.count(0, ViCounter::drop_malformed), 3u);
  EXPECT_TRUE(bed.sink(0).received.empty());
  EXPECT_TRUE(
      std::all_of(into.begin(), into.end(), [](std::byte b) { return b == std::byte{0xcc}; }));
}

// ---- ends --------------------------------------------------------------------------------------

TEST_F(ViChannelTest, AKilledProcessIsNoticedByThoseThatTalkToIt) {
  ViBed bed(4);
  for (const int to : {1, 2}) ASSERT_TRUE(bed.send(0, to));
  ASSERT_TRUE(bed.send(3, 2));
  std::vector<std::byte> into(50'000);
  RemoteKey key;
  ASSERT_TRUE(bed[0].open_receive(1, into, nullptr, 5, key));
  bed.kill(1);
  EXPECT_TRUE(bed.run([&] { return bed.sink(0).lost.contains(1); }));
  EXPECT_FALSE(bed.sink(0).received.at(5));
  // What is sent to it vanishes, and the others go on.
  const std::byte message[1]{std::byte{1}};
  EXPECT_TRUE(bed[0].send_control(1, message, {}));
  EXPECT_TRUE(bed[0].start_send(1, into, key, 6));
  EXPECT_TRUE(bed.run([&] { return bed.sink(0).sent.contains(6); }));
  EXPECT_FALSE(bed.sink(0).sent.at(6));
  EXPECT_TRUE(bed.send(0, 2));
  EXPECT_TRUE(bed.send(2, 3));
  EXPECT_EQ(bed.sink(0).lost.size(), 1u);
  EXPECT_TRUE(bed.sink(2).lost.empty());
}

TEST_F(ViChannelTest, WhatAProcessSentBeforeItEndedArrives) {
  ViBed bed(2);
  int arrived = 0;
  bed.sink(1).control = [&](int, Bytes) { ++arrived; };
  ASSERT_TRUE(bed.send(0, 1));
  ASSERT_TRUE(bed.run([&] { return arrived == 1; }));
  bed.sleep(1);
  const std::byte message[1]{std::byte{1}};
  while (bed[0].send_control(1, message, {})) ++arrived;
  const int sent = std::exchange(arrived, 0);
  bed.leave(0);
  bed.sleep(1, false);
  EXPECT_TRUE(bed.run([&] { return bed.sink(1).lost.contains(0); }));
  EXPECT_EQ(arrived + 1, sent);
}

TEST_F(ViChannelTest, OtherSettingsAreNamed) {
  ViBed bed(2);
  std::string& card = bed.job.values.at("1 viaduct-vi");
  card = card.substr(0, card.find('/')) + "/12345";
  bed[0].watch(1);
  EXPECT_TRUE(bed.run([&] { return bed.sink(0).lost.contains(1); }));
  EXPECT_NE(bed.sink(0).lost.at(1).find("VIADUCT_EAGER_VI"), std::string::npos);
}

// ---- static managers ---------------------------------------------------------------------------

class Managers : public ViChannelTest, public testing::WithParamInterface<ViManager> {};
INSTANTIATE_TEST_SUITE_P(Vi, Managers,
                         testing::Values(ViManager::static_peer, ViManager::static_client_server));

TEST_P(Managers, AllAreConnectedFromTheStart) {
  ViBed bed(5, {.manager = GetParam()});
  std::vector<std::thread> threads;
  for (int rank = 0; rank < bed.size(); ++rank)
    threads.emplace_back([&bed, rank] { bed[rank].connect_all(); });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(sum(bed, ViCounter::vis_connected), 20u);
  EXPECT_TRUE(Chatter(bed, 4, 50).run());
  EXPECT_EQ(sum(bed, ViCounter::vis_made), 20u);
}

TEST_F(ViChannelTest, NoNicNoChannel) {
  FakeJob job{1, {}};
  FakeLaunch launch(job, 0);
  Sink sink;
  vipl::set_device_source(vi::fake::FakeProvider::get());
  EXPECT_THROW(ViChannel(sink, launch, {.nic = "fake7"}), base::SetupError);
  Fabric::get().refusals = 1'000'000;
  EXPECT_THROW(ViChannel(sink, launch, {.nic = "fake0"}), base::SetupError);
}

}  // namespace
}  // namespace viaduct::mpi
