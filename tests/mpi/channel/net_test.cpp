// The channels over Ethernet, both ends in this process on the simulated network.
#include <gmock/gmock.h>

#include <deque>
#include <random>

#include "libmpi_lite/transfer/counters.hpp"
#include "tests/mpi/channel/bed.hpp"
#include "tests/mpi/channel/workload.hpp"
#include "tests/support/effort.hpp"

namespace viaduct::mpi {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;
using namespace std::chrono_literals;

INSTANTIATE_TEST_SUITE_P(All, NetChannels, testing::ValuesIn(kChannelsUnderTest),
                         [](const auto& test) { return test.param.label; });

// Tells `to` a text as soon as there is room.
bool say(Bed& bed, int from, int to, const std::string& text) {
  const Bytes bytes = std::as_bytes(std::span(text));
  return bed.run([&] { return bed[from].send_control(to, bytes.first(1), bytes.subspan(1)); });
}
std::string text_of(Bytes bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

// ---- connections -----------------------------------------------------------------------------

TEST_P(NetChannels, NobodyIsLookedUpBeforeItIsNeeded) {
  Bed bed = make({.processes = 4});
  bed.run_for(1ms);
  EXPECT_EQ(bed.job.gets, 0u);
  std::vector<std::string> heard;
  const auto listen = [&](int from, Bytes m) {
    heard.push_back(std::to_string(from) + " " + text_of(m));
  };
  bed.sink(2).control = bed.sink(1).control = listen;
  ASSERT_TRUE(say(bed, 1, 2, "hello"));
  ASSERT_TRUE(bed.run([&] { return heard.size() == 1; }));
  EXPECT_EQ(heard[0], "1 hello");
  EXPECT_EQ(bed.job.gets, 1u);
  ASSERT_TRUE(say(bed, 2, 1, "back"));
  ASSERT_TRUE(bed.run([&] { return heard.size() == 2; }));
  EXPECT_EQ(heard[1], "2 back");
  EXPECT_EQ(bed.job.gets, 1u) << "who is spoken to knows who speaks";
  EXPECT_THAT(bed[1].describe(2), HasSubstr("02:00:00:00:00:02 -> 02:00:00:00:00:03"));
  EXPECT_THAT(bed[1].describe(2), HasSubstr(std::string(GetParam().name) + " on sim1"));
  EXPECT_THAT(bed[1].describe(3), HasSubstr("not used"));
}

TEST_P(NetChannels, BothMaySpeakFirst) {
  Bed bed = make();
  int heard = 0;
  for (int rank : {0, 1})
    bed.sink(rank).control = [&, rank](int from, Bytes m) {
      EXPECT_EQ(from, 1 - rank);
      EXPECT_EQ(text_of(m), from == 0 ? "zero" : "one");
      ++heard;
    };
  bool sent[2] = {};
  ASSERT_TRUE(bed.run([&] {
    for (int rank : {0, 1}) {
      const std::string text = rank == 0 ? "zero" : "one";
      sent[rank] =
          sent[rank] || bed[rank].send_control(1 - rank, std::as_bytes(std::span(text)), {});
    }
    return heard == 2;
  }));
}

// A program may compute for long when MPI_Send has returned.
TEST_P(NetChannels, AFirstMessageThatIsTakenArrivesWithoutItsSender) {
  Bed bed = make();
  std::string heard;
  bed.sink(1).control = [&](int, Bytes m) { heard = text_of(m); };
  const std::string text = "hello";
  const auto take = [&] { return bed[0].send_control(1, std::as_bytes(std::span(text)), {}); };
  bed.sleep(1);
  EXPECT_FALSE(bed.run(take, 100ms)) << "nobody answers";
  bed.sleep(1, false);
  ASSERT_TRUE(bed.run(take));
  bed.sleep(0);
  EXPECT_TRUE(bed.run([&] { return !heard.empty(); }));
  EXPECT_EQ(heard, text);
}

TEST_P(NetChannels, WithoutAnAddressAPeerIsLostAndNothingElse) {
  Bed bed = make({.processes = 3});
  bed.job.values.erase(FakeLaunch::named(2, std::string("viaduct-") + GetParam().name));
  ASSERT_TRUE(say(bed, 0, 2, "anybody?")) << "taken, as nobody can take it later";
  ASSERT_TRUE(bed.run([&] { return !bed.sink(0).lost.empty(); }));
  EXPECT_THAT(bed.sink(0).lost[2], HasSubstr("rank 2 has not put"));
  bool heard = false;
  bed.sink(1).control = [&](int, Bytes) { heard = true; };
  ASSERT_TRUE(say(bed, 0, 1, "hello"));
  ASSERT_TRUE(bed.run([&] { return heard; }));
  EXPECT_EQ(bed.sink(0).lost.size(), 1u);
}

TEST_P(NetChannels, ARankWithOurOwnAddressIsAMistakeThatIsNamed) {
  Bed bed = make();
  const std::string key = std::string("viaduct-") + GetParam().name;
  bed.job.values[FakeLaunch::named(1, key)] = bed.job.values[FakeLaunch::named(0, key)];
  ASSERT_TRUE(say(bed, 0, 1, "hello"));
  ASSERT_TRUE(bed.run([&] { return !bed.sink(0).lost.empty(); }));
  EXPECT_THAT(bed.sink(0).lost[1], HasSubstr("VIADUCT_PORTS"));
}

// Whichever of them sends first.
TEST_P(NetChannels, RanksThatDoNotAgreeOnEagerMessagesAreNamed) {
  for (const int speaker : {0, 1}) {
    Bed bed = make({.eager_of_last = 4096});
    std::vector<std::byte> message(bed[1].limits().control);
    int heard = 0;
    bed.sink(1 - speaker).control = [&](int, Bytes) { ++heard; };
    bed.run([&] {
      return bed[speaker].send_control(1 - speaker, Bytes(message).first(16),
                                       Bytes(message).subspan(16));
    });
    EXPECT_TRUE(bed.run([&] { return !bed.sink(speaker).lost.empty(); }));
    EXPECT_THAT(bed.sink(speaker).lost[1 - speaker], HasSubstr("VIADUCT_EAGER_"));
    EXPECT_EQ(heard, 0);
  }
}

// A peer may compute for long; the user is told in case it is something else.
TEST_P(NetChannels, WhoDoesNotAnswerIsNamedOnceAndNotGivenUp) {
  BedConfig config{.processes = 3};
  config.link.dead_after = 1h;
  Bed bed = make(config);
  bed.step = 1ms;
  bed.sleep(1);
  const auto call = [&](int to) { bed[0].send_control(to, std::as_bytes(std::span("x")), {}); };
  testing::internal::CaptureStderr();
  bed.run(
      [&] {
        call(1);
        call(2);
        return false;
      },
      30s);
  const std::string said = testing::internal::GetCapturedStderr();
  EXPECT_THAT(said, HasSubstr("rank 0 has been connecting to rank 1 for 10 s"));
  EXPECT_THAT(said, HasSubstr("on sim0, 02:00:00:00:00:01 -> 02:00:00:00:00:02 (not connected)"));
  EXPECT_EQ(std::count(said.begin(), said.end(), '\n'), 1) << said;
  EXPECT_TRUE(bed.sink(0).lost.empty());
  bool heard = false;
  bed.sink(1).control = [&](int, Bytes) { heard = true; };
  bed.sleep(1, false);
  EXPECT_TRUE(bed.run([&] {
    call(1);
    return heard;
  }));
}

// ---- control messages ------------------------------------------------------------------------

TEST_P(NetChannels, ControlMessagesArriveOnceInOrderWhole) {
  Bed bed = make({.processes = 3});
  EXPECT_TRUE(Chatter(bed, 1, 500).run());
}

// A sleeper's queues fill up; whoever sends to it is told so, and goes on when it wakes.
// Heads as transfer/ makes them, in front of data of whole words and others, in one packet and
// more.
TEST_P(NetChannels, EveryShortLengthArrivesAsItIs) {
  Bed bed = make();
  std::vector<std::byte> bytes(256), got;
  for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = std::byte(i % 100);
  bed.sink(1).control = [&](int, Bytes m) { got.assign(m.begin(), m.end()); };
  for (const std::size_t head : {0, 8, 16, 24, 72})
    for (std::size_t body = head == 0; body <= 100; ++body) {
      const Bytes message = std::span(bytes).first(head + body);
      got.clear();
      ASSERT_TRUE(bed.run(
          [&] { return bed[0].send_control(1, message.first(head), message.subspan(head)); }));
      ASSERT_TRUE(bed.run([&] { return !got.empty(); }));
      ASSERT_TRUE(std::ranges::equal(got, message)) << head << " + " << body;
    }
}

TEST_P(NetChannels, BackPressureLosesNothing) {
  BedConfig config;
  config.link.max_window = 8;
  config.link.max_backlog = 4;
  Bed bed = make(config);
  ASSERT_TRUE(say(bed, 0, 1, "hello"));
  bed.run_for(1ms);
  std::deque<std::size_t> expected;
  std::size_t arrived = 0;
  bed.sink(1).control = [&](int, Bytes m) {
    ASSERT_FALSE(expected.empty());
    EXPECT_EQ(m.size(), expected.front());
    expected.pop_front();
    for (std::size_t i = 0; i < m.size(); ++i) ASSERT_EQ(m[i], std::byte(i % 100));
    ++arrived;
  };
  std::vector<std::byte> bytes(bed[0].limits().control);
  for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = std::byte(i % 100);
  std::mt19937_64 random(3);
  std::size_t sent = 0, size = 1;
  const auto flood = [&] {
    while (bed[0].send_control(1, {}, std::span(bytes).first(size))) {
      expected.push_back(size);
      ++sent;
      size = 1 + random() % bytes.size();
    }
  };
  for (int nap = 0; nap < 20; ++nap) {
    bed.sleep(1);
    std::size_t before;
    do {
      before = sent;
      flood();
      bed.run_for(2ms);
    } while (sent != before && sent < 5'000'000);
    ASSERT_LT(sent, 5'000'000u) << "nothing holds it up";
    bed.sleep(1, false);
    ASSERT_TRUE(bed.run([&] { return expected.empty(); }));
  }
  EXPECT_EQ(arrived, sent);
  EXPECT_GT(sent, 20u * 2);
}

// ---- long transfers --------------------------------------------------------------------------

TEST_P(NetChannels, LongTransfersBothWaysOfAllSizes) {
  Bed bed = make();
  RandomTraffic traffic(bed);
  for (const std::size_t size : {0, 1, 7, 8, 1400, 1450, 1500, 3000, 65'536, 1'000'003})
    for (const std::size_t spare : {0, 1, 5000}) {
      traffic.add(0, 1, size, size + spare);
      traffic.add(1, 0, size, size + spare);
    }
  ASSERT_TRUE(traffic.run());
  traffic.check();
}

// More than there are places: those that find none wait.
TEST_P(NetChannels, ManyLongTransfersAtOnce) {
  Bed bed = make({.processes = 3});
  RandomTraffic traffic(bed);
  std::mt19937_64 random(5);
  for (int i = 0; i < 4000; ++i) {
    const int from = static_cast<int>(random() % 3);
    const std::size_t size = random() % 100 == 0 ? random() % 2'000'000 : random() % 4000;
    traffic.add(from, (from + 1 + static_cast<int>(random() % 2)) % 3, size, size + random() % 64);
  }
  ASSERT_TRUE(traffic.run());
  traffic.check();
  EXPECT_GT(traffic.waits, 0u);
}

TEST_P(NetChannels, AClosedReceiveIsFreeAgain) {
  Bed bed = make();
  std::vector<std::byte> into(5000);
  // Far more than there are places.
  for (Cookie cookie = 0; cookie < 50'000; ++cookie) {
    RemoteKey remote_key;
    ASSERT_TRUE(bed[0].open_receive(1, into, nullptr, cookie, remote_key)) << cookie;
    bed[0].close_receive(1, remote_key);
    bed[0].close_receive(1, remote_key);  // once is enough
  }
  bed.run_for(1ms);
  EXPECT_TRUE(bed.sink(0).received.empty());
}

// A receive from a lost peer has no place; taking it back must not free another's.
TEST_P(NetChannels, AReceiveFromALostPeerIsClosedWithoutHarm) {
  Bed bed = make({.processes = 3});
  bed.job.values.erase(FakeLaunch::named(2, std::string("viaduct-") + GetParam().name));
  ASSERT_TRUE(say(bed, 0, 2, "anybody?"));
  std::vector<std::byte> into(5000);
  RemoteKey remote_key;
  ASSERT_TRUE(bed[0].open_receive(1, into, nullptr, 1000, remote_key));
  bed[0].close_receive(1, remote_key);
  ASSERT_TRUE(bed[0].open_receive(2, into, nullptr, 1001, remote_key));
  bed[0].close_receive(2, remote_key);
  bed[0].close_receive(2, remote_key);
  ASSERT_TRUE(bed.run([&] { return bed.sink(0).received.contains(1001); }));
  EXPECT_FALSE(bed.sink(0).received.at(1001));
  RandomTraffic traffic(bed);
  for (int i = 0; i < 3; ++i) traffic.add(1, 0, 5000, 5000);
  ASSERT_TRUE(traffic.run());
  traffic.check();
}

TEST_P(NetChannels, WhatIsWrittenIntoAClosedReceiveTouchesNothing) {
  Bed bed = make();
  std::vector<std::byte> into(5000, std::byte{0xcc});
  const std::vector<std::byte> data(5000, std::byte{1});
  RemoteKey remote_key;
  ASSERT_TRUE(bed[0].open_receive(1, into, nullptr, 1, remote_key));
  bed[0].close_receive(1, remote_key);
  ASSERT_TRUE(bed.run([&] { return bed[1].start_send(0, data, remote_key, 2); }));
  bed.run_for(10ms);
  EXPECT_TRUE(bed.sink(0).received.empty());
  EXPECT_TRUE(
      std::all_of(into.begin(), into.end(), [](std::byte b) { return b == std::byte{0xcc}; }));
}

// The write protocol's short messages: the data, then the head, then the end of the transfer, in
// order with other control messages, and nothing for the sender to wait for.
TEST_P(NetChannels, ShortDataAndItsHeadComeInOneRequest) {
  BedConfig config;
  config.net.faults = {.loss = 0.1, .seed = 7};
  Bed bed = make(config);
  const std::vector<std::byte> head = patterned(1, 64), between = patterned(2, 20);
  if (!bed[0].limits().writes_now) {
    EXPECT_FALSE(bed[1].write_now(0, {}, {}, head));
    return;
  }
  Cookie cookie = 0;
  for (const std::size_t size : {0, 1, 8, 100, 1000, 1300, 1400, 1500, 3000, 20'000}) {
    const std::vector<std::byte> data = patterned(3 + size, size);
    std::vector<std::byte> into(size + 16, std::byte{0xcc});
    RemoteKey remote_key;
    ASSERT_TRUE(bed[0].open_receive(1, into, nullptr, ++cookie, remote_key));
    std::vector<std::size_t> heard;
    bed.sink(0).control = [&](int from, Bytes message) {
      EXPECT_EQ(from, 1);
      heard.push_back(message.size());
      if (message.size() != head.size()) return;
      EXPECT_TRUE(std::ranges::equal(message, head));
      EXPECT_TRUE(std::equal(data.begin(), data.end(), into.begin())) << "the data comes first";
      EXPECT_FALSE(bed.sink(0).received.contains(cookie)) << "the end comes last";
    };
    ASSERT_TRUE(bed.run([&] { return bed[1].send_control(0, between, {}); }));
    ASSERT_TRUE(bed.run([&] { return bed[1].write_now(0, data, remote_key, head); }));
    ASSERT_TRUE(bed.run([&] { return bed[1].send_control(0, between, {}); }));
    ASSERT_TRUE(bed.run([&] { return heard.size() == 3; }));
    EXPECT_EQ(heard, (std::vector{between.size(), head.size(), between.size()}));
    EXPECT_TRUE(bed.sink(0).received.at(cookie));
    EXPECT_TRUE(std::all_of(into.begin() + static_cast<std::ptrdiff_t>(size), into.end(),
                            [](std::byte b) { return b == std::byte{0xcc}; }));
  }
  EXPECT_TRUE(bed.sink(1).sent.empty());
  RemoteKey remote_key;
  std::vector<std::byte> into(100'000);
  ASSERT_TRUE(bed[0].open_receive(1, into, nullptr, ++cookie, remote_key));
  EXPECT_FALSE(bed[1].write_now(0, into, remote_key, head)) << "it is long";
  // One that is taken back is not written into. The sender errs, and loses the connection.
  bed[0].close_receive(1, remote_key);
  const std::vector<std::byte> data(100, std::byte{1});
  ASSERT_TRUE(bed[1].write_now(0, data, remote_key, head));
  ASSERT_TRUE(bed.run([&] { return bed.sink(1).lost.contains(0); }));
  EXPECT_EQ(into[0], std::byte{});
  EXPECT_FALSE(bed.sink(0).received.contains(cookie));
}

TEST_P(NetChannels, TablesRunFullAndSaySo) {
  Bed bed = make();
  std::vector<std::byte> into(100);
  std::vector<RemoteKey> remote_keys(1);
  while (bed[0].open_receive(1, into, nullptr, remote_keys.size(), remote_keys.back())) {
    ASSERT_LT(remote_keys.size(), 100'000u);
    remote_keys.emplace_back();
  }
  EXPECT_GE(remote_keys.size(), 1000u);
  remote_keys.pop_back();
  for (const RemoteKey& remote_key : remote_keys) bed[0].close_receive(1, remote_key);
  EXPECT_TRUE(bed[0].open_receive(1, into, nullptr, 0, remote_keys[0]));
}

// ---- the end ---------------------------------------------------------------------------------

TEST_P(NetChannels, NothingIsLeftToDoInTheEnd) {
  Bed bed = make();
  EXPECT_FALSE(bed[0].busy()) << "nothing was done";
  RandomTraffic traffic(bed);
  traffic.add(0, 1, 100'000, 100'000);
  traffic.step();
  ASSERT_TRUE(bed.run([&] {
    traffic.step();
    return bed[0].busy();
  }));
  ASSERT_TRUE(traffic.run());
  EXPECT_TRUE(bed.run([&] { return !bed[0].busy() && !bed[1].busy(); }, 100ms));
}

// Who stops polling as soon as its own things are done leaves nobody behind.
TEST_P(NetChannels, TheLastAcknowledgementIsNotLost) {
  for (std::uint64_t seed = 1; seed <= test::effort(50); ++seed) {
    BedConfig config;
    config.net.faults = {.loss = 0.1, .seed = seed};
    Bed bed = make(config);
    ASSERT_TRUE(Chatter(bed, seed, 3).run());
    bool busy[2] = {true, true};
    EXPECT_TRUE(bed.run(
        [&] {
          for (int rank : {0, 1})
            if (busy[rank] && !(busy[rank] = bed[rank].busy())) bed.sleep(rank);
          return !busy[0] && !busy[1];
        },
        5s))
        << seed;
  }
}

TEST_P(NetChannels, ADeadPeerEndsWhatIsOpenWithIt) {
  BedConfig config{.processes = 3};
  config.link.dead_after = 100ms;
  Bed bed = make(config);
  ASSERT_TRUE(Chatter(bed, 1, 2).run());
  RandomTraffic traffic(bed);
  for (int i = 0; i < 3; ++i) {
    traffic.add(0, 1, 1'000'000, 1'000'000);
    traffic.add(1, 0, 1'000'000, 1'000'000);
    traffic.add(0, 2, 1'000'000, 1'000'000);
  }
  ASSERT_TRUE(bed.run([&] {
    traffic.step();
    return bed.sink(0).sent.size() + bed.sink(0).received.size() != 0;
  }));
  std::vector<std::byte> into(100);
  RemoteKey remote_key;
  ASSERT_TRUE(bed[0].open_receive(1, into, nullptr, 1000, remote_key)) << "nobody has sent yet";
  bed.vanish(1);
  const auto ended_before = [&] {
    EXPECT_EQ(bed.sink(0).received.count(1000), 1u) << "first the transfers, then the peer";
    return true;
  };
  ASSERT_TRUE(bed.run([&] { return bed.sink(0).lost.contains(1) && ended_before(); }));
  EXPECT_FALSE(bed.sink(0).received.at(1000));
  EXPECT_FALSE(bed.sink(0).lost.contains(2));
  for (Cookie send : {0, 6, 12}) EXPECT_TRUE(bed.sink(0).sent.contains(send)) << send;
  ASSERT_TRUE(bed.run([&] { return bed.sink(2).received.size() == 3; })) << "the others go on";
  // What is begun with it later ends, too, and keeps nobody.
  EXPECT_TRUE(bed[0].send_control(1, std::as_bytes(std::span("x")), {}));
  EXPECT_TRUE(bed[0].open_receive(1, into, nullptr, 1001, remote_key));
  EXPECT_TRUE(bed[0].start_send(1, into, remote_key, 1002));
  ASSERT_TRUE(bed.run(
      [&] { return bed.sink(0).received.contains(1001) && bed.sink(0).sent.contains(1002); }));
  EXPECT_FALSE(bed.sink(0).received.at(1001) || bed.sink(0).sent.at(1002));
  EXPECT_TRUE(bed.run([&] { return !bed[0].busy(); }));
  EXPECT_THAT(bed[0].describe(1), HasSubstr("lost: no answer for too long"));
}

// What frames were dropped for, and what was sent again: in sum, and by peer what is known of it.
TEST_P(NetChannels, WhatTheLinkCountsCanBeTold) {
  BedConfig config;
  config.processes = 3;
  config.net.faults = {.loss = 0.05, .corrupt = 0.05, .seed = 5};
  Bed bed = make(config);
  for (int i = 0; i < 200; ++i) {
    ASSERT_TRUE(say(bed, 0, 1, "hello"));
    ASSERT_TRUE(say(bed, 1, 0, "hello"));
    bed.run_for(100us);
  }
  for (int rank : {0, 1}) {
    std::string all;
    for (const std::string& line : lines_of(bed[rank].all_counters())) all += line + '\n';
    EXPECT_THAT(all, AllOf(HasSubstr("link: frames_sent "), HasSubstr("retransmits "),
                           HasSubstr("drop_checksum "), HasSubstr("\ndriver: ")));
    EXPECT_THAT(all, Not(HasSubstr(" 0,"))) << "only what has happened";
    EXPECT_THAT(bed[rank].counted(1 - rank),
                AllOf(HasSubstr("retransmits "), HasSubstr("drop_checksum ")));
    EXPECT_EQ(bed[rank].counted(2), "");
    EXPECT_THAT(bed[rank].dump(1 - rank), HasSubstr(": up, MTU "));
    EXPECT_EQ(bed[rank].dump(2), "");
  }
}

// Others end in MPI_Finalize while this process is still there: no loss, as long as it needs
// nothing of them.
TEST_P(NetChannels, WhoLeavesHasEndedAndIsNotCalledLost) {
  Bed bed = make();
  ASSERT_TRUE(say(bed, 0, 1, "hello"));
  bed.run_for(1ms);
  bed.leave(0);
  ASSERT_TRUE(bed.run([&] { return bed.sink(1).lost.contains(0); }));
  EXPECT_THAT(bed[1].describe(0), AllOf(HasSubstr(", ended"), Not(HasSubstr("lost"))));
  EXPECT_EQ(bed.sink(1).lost.at(0), "it ended without MPI_Finalize");
}

// A peer that leaves has said its last word before.
TEST_P(NetChannels, WhatWasSaidBeforeLeavingIsHeard) {
  for (std::uint64_t seed = 1; seed <= test::effort(200); ++seed) {
    BedConfig config;
    config.net.faults = {.reorder = 0.3, .seed = seed};
    Bed bed = make(config);
    int heard = 0;
    bed.sink(1).control = [&](int, Bytes) {
      EXPECT_TRUE(bed.sink(1).lost.empty());
      ++heard;
    };
    const std::vector<std::byte> message(bed[0].limits().control, std::byte{1});
    int sent = 0;
    ASSERT_TRUE(bed.run([&] {
      sent += bed[0].send_control(1, {}, message);
      return sent == 10;
    }));
    ASSERT_TRUE(bed.run([&] { return !bed[0].busy(); }));
    bed.leave(0);
    ASSERT_TRUE(bed.run([&] { return !bed.sink(1).lost.empty(); }));
    EXPECT_EQ(heard, 10);
  }
}

// Also what has arrived faster than one poll after the other hands it on.
TEST_P(NetChannels, AnEndDoesNotOvertakeWhatHasArrived) {
  BedConfig config;
  config.link.max_window = 8;  // so that messages wait for each other and share frames
  config.fifo = 1u << 20;
  Bed bed = make(config);
  ASSERT_TRUE(say(bed, 0, 1, "hello"));
  bed.run_for(1ms);
  bed.step = 20us;
  constexpr int kMessages = 1000, kMaxInAPoll = 64;
  int heard = 0, sent = 0;
  bed.sink(1).control = [&](int, Bytes) {
    EXPECT_TRUE(bed.sink(1).lost.empty());
    ++heard;
  };
  const std::byte message{1};
  ASSERT_TRUE(bed.run([&] {
    while (sent < kMessages && bed[0].send_control(1, {}, {&message, 1})) ++sent;
    return heard > kMessages * 6 / 10;
  }));
  ASSERT_EQ(sent, kMessages);
  ASSERT_LT(heard, kMessages - kMaxInAPoll) << "too late to test anything";
  bed.leave(0);
  ASSERT_TRUE(bed.run([&] { return !bed.sink(1).lost.empty(); }));
  EXPECT_EQ(heard, kMessages);
}

// ---- everything at once on a bad network -----------------------------------------------------

// Every rank asks every other, and answers at once, as a receive answers an RTS; no rank asks again
// before all answers are there, so nothing comes to the help of one that is stuck.
bool ask_and_answer(Bed& bed, int rounds, std::size_t bytes) {
  struct Waiting {
    int from, to;
    std::byte kind;
  };
  std::vector<Waiting> waiting;
  int answers = 0;
  const auto say_now = [&](const Waiting& w) {
    std::vector<std::byte> message(bytes, w.kind);
    return bed[w.from].send_control(w.to, Bytes(message).first(1), Bytes(message).subspan(1));
  };
  constexpr std::byte kQuestion{1}, kAnswer{2};
  for (int rank = 0; rank < bed.size(); ++rank)
    bed.sink(rank).control = [&, rank](int from, Bytes m) {
      if (m[0] == kAnswer) return void(++answers);
      const Waiting answer{rank, from, kAnswer};
      if (!say_now(answer)) waiting.push_back(answer);
    };
  for (int round = 1; round <= rounds; ++round) {
    for (int from = 0; from < bed.size(); ++from)
      for (int to = 0; to < bed.size(); ++to)
        if (from != to) waiting.push_back({from, to, kQuestion});
    const bool done = bed.run([&] {
      const std::vector<Waiting> now = std::exchange(waiting, {});
      for (const Waiting& w : now)
        if (!say_now(w)) waiting.push_back(w);
      return answers == round * bed.size() * (bed.size() - 1);
    });
    if (!done) return false;
  }
  return true;
}

// Wherever they read the clock, and for 0.1 to 100 ms. With MPI's dead_after no keepalive sets
// right in time what is stuck.
TEST_P(NetChannels, WhoLosesTheCpuLosesNothing) {
  std::uint64_t pauses = 0;
  for (std::uint64_t seed = 1; seed <= test::effort(200); ++seed) {
    BedConfig config{.processes = 3 + static_cast<int>(seed % 4)};
    config.pauses = {.probability = seed % 2 ? 0.01 : 0.002, .seed = seed};
    config.link.dead_after = 1h;
    if (seed % 4 == 0) config.net.faults = {.loss = 0.02, .seed = seed};
    config.port.pool = 128u << seed % 4;
    Bed bed = make(config);
    ASSERT_TRUE(Chatter(bed, seed, 30).run()) << "seed " << seed;
    ASSERT_TRUE(ask_and_answer(bed, 20, seed % 2 ? 1000 : 16)) << "seed " << seed;
    RandomTraffic traffic(bed);
    std::mt19937_64 random(seed);
    for (int i = 0; i < 9; ++i) {
      const std::size_t size = random() % 40'000;
      const int from = static_cast<int>(random() % static_cast<unsigned>(bed.size()));
      traffic.add(from, (from + 1 + i % (bed.size() - 1)) % bed.size(), size,
                  size + random() % 100);
    }
    ASSERT_TRUE(traffic.run()) << "seed " << seed;
    traffic.check();
    pauses += bed.schedule.pauses();
  }
  EXPECT_GT(pauses, 100u);
}

TEST_P(NetChannels, SurviveLossDuplicationReorderingAndDamage) {
  std::uint64_t lost = 0;
  for (std::uint64_t seed = 1; seed <= test::effort(1000); ++seed) {
    BedConfig config{.processes = 2 + static_cast<int>(seed % 2)};
    config.net.faults = {
        .loss = 0.05, .duplicate = 0.03, .reorder = 0.05, .corrupt = 0.02, .seed = seed};
    // Sequence numbers wrap, MTUs differ, windows and FIFOs are small.
    config.link.first_sequence = static_cast<std::uint32_t>(-static_cast<int>(seed % 50));
    config.port.mtu = seed % 3 == 0 ? 576 : 1500;
    config.eager = seed % 4 == 0 ? 8192 : 1024;
    config.fifo = seed % 5 == 0 ? 1 : 64u << 10;
    if (seed % 7 == 0) config.link.max_window = 2;
    Bed bed = make(config);
    ASSERT_TRUE(Chatter(bed, seed, 40).run()) << "seed " << seed;
    RandomTraffic traffic(bed);
    std::mt19937_64 random(seed);
    for (int i = 0; i < 12; ++i) {
      const int from = static_cast<int>(random() % static_cast<unsigned>(bed.size()));
      const std::size_t size = random() % 20 == 0 ? 200'000 : random() % 5000;
      traffic.add(from, (from + 1) % bed.size(), size, size + random() % 2000);
    }
    ASSERT_TRUE(traffic.run()) << "seed " << seed;
    traffic.check();
    lost += bed.net.faults().lost;
    for (int rank = 0; rank < bed.size(); ++rank) ASSERT_TRUE(bed.sink(rank).lost.empty());
  }
  EXPECT_GT(lost, 1000u) << "the network was too good";
}

// ---- what is published -----------------------------------------------------------------------

TEST(EndpointAddress, IsReadAsItIsWritten) {
  const EndpointAddress endpoint{*link::Address::parse("02:76:64:00:01:00"), 0xfedcba9876543210,
                                 ~0ull};
  const auto again = EndpointAddress::parse(endpoint.text());
  ASSERT_TRUE(again.has_value());
  EXPECT_EQ(again->address, endpoint.address);
  EXPECT_EQ(again->key, endpoint.key);
  EXPECT_EQ(again->control, endpoint.control);
  for (const char* bad : {"", "/", "02:76:64:00:01:00", "02:76:64:00:01:00/", "02:76:64:00:01/7/1",
                          "02:76:64:00:01:00/x/1", "02:76:64:00:01:00/1", "02:76:64:00:01:00/1/",
                          "02:76:64:00:01:00/1/1 ", "02:76:64:00:01:00/10000000000000000/1"})
    EXPECT_FALSE(EndpointAddress::parse(bad)) << bad;
}

}  // namespace
}  // namespace viaduct::mpi
