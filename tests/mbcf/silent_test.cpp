// Silent requests have no number on the wire: both sides count them. Each refusal must still name
// the request that was refused.
#include <sys/mman.h>

#include <map>
#include <random>

#include "tests/mbcf/bed.hpp"

namespace viaduct::mbcf {
namespace {

constexpr Options kQuiet{.urgency = link::Urgency::batch, .silent = true};
constexpr Options kQuietNow{.urgency = link::Urgency::now, .silent = true};

using Refusal = std::pair<std::uint32_t, std::string_view>;  // number, why

class SilentTest : public ::testing::Test {
 protected:
  static BedConfig config() {
    BedConfig config;
    config.nodes = 3;
    config.net.faults.loss = 0.02;
    config.net.faults.duplicate = 0.01;
    config.net.faults.reorder = 0.02;
    return config;
  }
  // What node `i` offers to the requests.
  struct Offer {
    Key signal, gone;
    std::uint64_t raised = 0;
  };
  void offer(std::size_t i) {
    Offer& o = offers[i];
    o.signal = bed[i].engine.create_signal([&o](std::uint64_t count) { o.raised += count; });
    o.gone = bed[i].engine.export_segment(bed[i].memory, Rights::all);
    bed[i].engine.withdraw(o.gone);
  }

  // A silent request of any kind to node `of`, which will be refused or not, and why.
  Issued issue(std::size_t of, Status& fate) {
    auto& engine = bed[0].engine;
    const Remote good = bed.remote(0, of, 8 * (random() % 100));
    const Remote outside = bed.remote(0, of, bed[of].memory.size() - 4);
    const Remote gone{good.peer, offers[of].gone, 0}, unknown{good.peer, {77}, 0};
    const std::pair<Remote, Status> targets[] = {{good, Status::ok},
                                                 {good, Status::ok},
                                                 {outside, Status::out_of_range},
                                                 {gone, Status::withdrawn},
                                                 {unknown, Status::no_key}};
    const auto& [target, status] = targets[random() % 5];
    fate = status;
    const Options& options = random() % 2 == 0 ? kQuiet : kQuietNow;
    switch (random() % 4) {
      case 0:
        return engine.write(target, bed[0].bytes(0, 8), Then::raise(offers[of].signal), options,
                            bed.now());
      case 1: return engine.fetch_add(target, Width::eight, 1, options, bed.now());
      case 2:
        fate = target.key == good.key ? Status::wrong_kind : status;
        return engine.signal(target.peer, target.key, options, bed.now());
      default: return engine.write(target, bed[0].bytes(0, 8), options, bed.now());
    }
  }
  void take() {
    for (Completion c; bed[0].engine.next_completion(c);)
      if (c.context != kFence) told[c.peer].push_back({c.id.value, text(c.status)});
  }
  // In rounds, because no more than 256 refusals are kept.
  void exchange(int rounds) {
    for (; rounds != 0 && !HasFailure(); --rounds) exchange_some();
    EXPECT_EQ(bed[0].count(Counter::failures_lost), 0u);
  }
  void exchange_some() {
    for (int i = 0; i < 200; ++i) {
      const std::size_t of = 1 + random() % 2;
      Status fate = Status::ok;
      Issued issued;
      ASSERT_TRUE(bed.run([&] {
        take();
        issued = issue(of, fate);
        return issued.status == Status::ok;
      }));
      if (fate != Status::ok) expected[bed.peer(0, of)].push_back({issued.id.value, text(fate)});
    }
    for (const std::size_t of : {1, 2}) {
      bool passed = false;
      const Issued fence = bed[0].engine.fence(bed.peer(0, of), {.context = kFence}, bed.now());
      ASSERT_EQ(fence.status, Status::ok);
      ASSERT_TRUE(bed.run([&] {
        for (Completion c; !passed && bed[0].engine.next_completion(c);)
          if (c.context == kFence)
            passed = true;
          else
            told[c.peer].push_back({c.id.value, text(c.status)});
        return passed;
      }));
    }
    take();
    ASSERT_EQ(told, expected);
  }

  static constexpr std::uint64_t kFence = 99;
  Bed bed{config()};
  std::map<std::size_t, Offer> offers;
  std::map<link::PeerId, std::vector<Refusal>> expected, told;
  std::minstd_rand random{5};
};

TEST_F(SilentTest, EachRefusalNamesItsRequest) {
  for (const std::size_t i : {1, 2}) offer(i);
  exchange(100);
  EXPECT_GT(expected[bed.peer(0, 1)].size(), 3000u);
  EXPECT_GT(expected[bed.peer(0, 2)].size(), 3000u);
}

TEST_F(SilentTest, ANewLifeOfAPeerIsCountedAnew) {
  for (const std::size_t i : {1, 2}) offer(i);
  exchange(3);
  const link::PeerId before = bed.peer(0, 2);
  bed.restart(2);
  offer(2);
  bed[2].link.connect(bed.peer(2, 0), bed.now());
  ASSERT_TRUE(bed.run([&] { return bed.peer(0, 2) != before; }, std::chrono::seconds{10}));
  take();
  // Issued to the incarnation that has ended: they are refused here and must not disturb the count.
  EXPECT_EQ(bed[0].engine.write({before, {77}, 0}, bed[0].bytes(0, 8), kQuiet, bed.now()).status,
            Status::peer_down);
  exchange(3);
  EXPECT_EQ(bed[0].engine.write({before, {77}, 0}, bed[0].bytes(0, 8), kQuiet, bed.now()).status,
            Status::peer_down);
  exchange(3);
}

// A request whose refusal could not be sent is put off and offered again: it counts once.
TEST(Silent, RefusalsThatHaveToWaitNameTheirRequests) {
  BedConfig config;
  config.link.max_backlog = 1;
  Bed bed(config);
  const Remote unknown{bed.peer(0, 1), {77}, 0};
  EXPECT_EQ(
      bed.complete(0, [&] { return bed[0].engine.fence(unknown.peer, {}, bed.now()); }).status,
      Status::ok);
  const link::Time open_again = bed.now() + std::chrono::milliseconds{5};
  bed.net.hook = [&](std::uint32_t port, std::vector<std::byte>& frame) {  // answers are lost
    link::FrameHeader header;
    std::memcpy(&header, frame.data(), sizeof header);
    return port != 1 || (header.version_type & 15) != static_cast<int>(link::FrameType::data) ||
           bed.now() >= open_again;
  };
  std::vector<RequestId> expected, told;
  const auto take = [&] {
    for (Completion c; bed[0].engine.next_completion(c);) told.push_back(c.id);
  };
  std::minstd_rand random(3);
  for (int i = 0; i < 3000; ++i) {
    const bool refused = random() % 2 == 0;
    Issued issued;
    ASSERT_TRUE(bed.run([&] {
      take();
      issued = bed[0].engine.write(refused ? unknown : bed.remote(0, 1), bed[0].bytes(0, 8), kQuiet,
                                   bed.now());
      return issued.status == Status::ok;
    }));
    if (refused) expected.push_back(issued.id);
  }
  EXPECT_TRUE(bed.run([&] { return take(), told.size() == expected.size(); }));
  EXPECT_EQ(told, expected);
  EXPECT_GT(bed[1].count(Counter::answer_waits), 0u);
}

TEST_F(SilentTest, APeerCannotRefuseWhatAnotherWasSent) {
  for (const std::size_t i : {1, 2}) offer(i);
  exchange(1);
  for (int i = 0; i < 1000; ++i)
    ASSERT_TRUE(bed.run([&] {
      return bed[0].engine.write(bed.remote(0, 2), bed[0].bytes(0, 8), kQuiet, bed.now()).status ==
             Status::ok;
    }));
  const std::uint64_t before = bed[0].count(Counter::drop_answer);
  for (std::uint32_t n = 500; n < 1000; ++n)  // node 1 has had some hundred
    ASSERT_TRUE(bed.run([&] {
      return bed[1].link.try_send(bed.peer(1, 0), link::Lane::high, link::Order::ordered,
                                  message_type(Kind::answer), bytes_of(Answer{kSilent + n, 5}), {},
                                  link::Urgency::batch, bed.now()) == link::SendStatus::sent;
    }));
  EXPECT_TRUE(bed.run([&] { return bed[0].count(Counter::drop_answer) == before + 500; }));
  Completion c;
  EXPECT_FALSE(bed[0].engine.next_completion(c));
}

// On the wire a silent request's offset has 32 bits.
TEST_F(SilentTest, FarOffsetsAreReachedAllTheSame) {
  constexpr std::size_t kSize = (std::size_t{4} << 30) + 4096;
  void* const memory = ::mmap(nullptr, kSize, PROT_READ | PROT_WRITE,
                              MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  ASSERT_NE(memory, MAP_FAILED);
  auto* const bytes = static_cast<std::byte*>(memory);
  const Key key = bed[1].engine.export_segment({bytes, kSize}, Rights::all);
  std::uint64_t value = 41;
  const auto word = [&](std::uint64_t offset) {
    std::uint64_t held;
    std::memcpy(&held, bytes + offset, sizeof held);
    return held;
  };
  Completion c;
  std::vector<Issued> refused;
  for (const std::uint64_t offset : {(1ull << 32) - 8, 1ull << 32, (1ull << 32) + 4088}) {
    const Remote at{bed.peer(0, 1), key, offset};
    ++value;
    EXPECT_EQ(bed[0].engine.write(at, bytes_of(value), kQuiet, bed.now()).status, Status::ok);
    EXPECT_EQ(bed[0].engine.fetch_add(at, Width::eight, 1000, kQuiet, bed.now()).status,
              Status::ok);
    refused.push_back(bed[0].engine.write({at.peer, {77}, offset}, {}, kQuiet, bed.now()));
  }
  for (const Issued& issued : refused) {
    ASSERT_TRUE(bed.run([&] { return bed[0].engine.next_completion(c); }));
    EXPECT_EQ(c.id, issued.id);
    EXPECT_EQ(c.status, Status::no_key);
  }
  EXPECT_EQ(word((1ull << 32) - 8), 1042u);
  EXPECT_EQ(word(1ull << 32), 1043u);
  EXPECT_EQ(word((1ull << 32) + 4088), 1044u);
  EXPECT_EQ(word(0), 0u);
  EXPECT_FALSE(bed[0].engine.next_completion(c));
  bed[1].engine.withdraw(key);
  ::munmap(memory, kSize);
}

}  // namespace
}  // namespace viaduct::mbcf
