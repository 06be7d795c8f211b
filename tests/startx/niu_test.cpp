// PIO and the cacheable queues: what is delivered, in what order, and what pushes back.
#include "drivers/startx_emul/niu.hpp"

#include <gtest/gtest.h>

#include <set>

#include "tests/startx/bed.hpp"

namespace viaduct::startx {
namespace {

using link::Lane;
using link::Order;
using link::SendStatus;
using std::chrono::milliseconds;

TEST(Niu, PioDeliversEverySizeInBothPriorities) {
  Bed bed;
  const auto to = bed.peer(0, 1);
  for (Priority priority : {Priority::high, Priority::low}) {
    for (std::uint8_t words = kMinWords; words <= kMaxWords; ++words) {
      ASSERT_EQ(bed[0].niu.try_send(to, priority, packet(words, words), bed.now()),
                SendStatus::sent);
      ASSERT_TRUE(bed.run([&] { return bed[1].niu.peek(priority) != nullptr; }));
      const Received* got = bed[1].niu.peek(priority);
      EXPECT_EQ(got->tag, words);
      EXPECT_EQ(got->words, words);
      EXPECT_EQ(got->order, Order::ordered);
      EXPECT_EQ(got->from, bed.peer(1, 0));
      EXPECT_TRUE(intact(*got));
      bed[1].niu.pop(priority);
      EXPECT_EQ(bed[1].niu.peek(priority), nullptr);
    }
  }
  EXPECT_EQ(bed[0].count(Counter::pio_high_sent), 21u);
  EXPECT_EQ(bed[1].count(Counter::pio_low_received), 21u);
  EXPECT_EQ(bed[1].niu.queue_peek(Priority::high), nullptr);  // the mechanisms do not mix
}

TEST(Niu, PioPutsAPacketTogetherThatLiesInTwoPlaces) {
  Bed bed;
  const auto to = bed.peer(0, 1);
  for (std::uint8_t words : {2, 3, 21, 22})
    for (std::uint8_t in_head = 0; in_head <= words; ++in_head) {
      const Packet whole = packet(words, words);
      std::vector<std::uint32_t> head{whole.tag};
      head.insert(head.end(), whole.payload, whole.payload + in_head);
      const std::vector<std::uint32_t> body(whole.payload + in_head, whole.payload + words);
      ASSERT_EQ(
          bed[0].niu.try_send(to, Priority::low, head, std::as_bytes(std::span(body)), bed.now()),
          SendStatus::sent);
      ASSERT_TRUE(bed.run([&] { return bed[1].niu.peek(Priority::low) != nullptr; }));
      const Received* got = bed[1].niu.peek(Priority::low);
      EXPECT_EQ(got->tag, words);
      EXPECT_EQ(got->words, words);
      EXPECT_EQ(got->order, Order::ordered);
      EXPECT_TRUE(intact(*got));
      bed[1].niu.pop(Priority::low);
    }
  const std::uint64_t sent = bed[0].count(Counter::pio_low_sent);
  const std::vector<std::uint32_t> words(24);
  const auto refused = [&](std::size_t in_head, std::size_t body_bytes) {
    return bed[0].niu.try_send(to, Priority::low, std::span(words).first(in_head),
                               std::as_bytes(std::span(words)).first(body_bytes),
                               bed.now()) == SendStatus::too_big;
  };
  EXPECT_TRUE(refused(0, 0));
  EXPECT_TRUE(refused(0, 8));   // no room for header word 1 and two others
  EXPECT_TRUE(refused(1, 4));   // one payload word
  EXPECT_TRUE(refused(1, 92));  // 23
  EXPECT_TRUE(refused(24, 0));
  for (const std::size_t bytes : {9, 10, 11}) EXPECT_TRUE(refused(1, bytes)) << "not whole words";
  EXPECT_EQ(bed[0].count(Counter::pio_low_sent), sent);
}

TEST(Niu, RefusesImpossibleWordCounts) {
  Bed bed;
  const auto to = bed.peer(0, 1);
  for (unsigned words : {0u, 1u, 23u, 255u})
    EXPECT_EQ(bed[0].niu.try_send(to, Priority::high, packet(1, static_cast<std::uint8_t>(words)),
                                  bed.now()),
              SendStatus::too_big);
  EXPECT_EQ(bed[0].niu.try_send({}, Priority::high, packet(1), bed.now()), SendStatus::peer_down);
  EXPECT_EQ(bed[0].count(Counter::pio_high_sent), 0u);
}

TEST(Niu, AnImpossibleCommittedPacketIsCountedAndDoesNotBlockTheQueue) {
  Bed bed;
  for (std::uint8_t words : {std::uint8_t{23}, std::uint8_t{2}}) {
    Outgoing* entry = bed[0].niu.reserve(Priority::low);
    *entry = {bed.peer(0, 1), packet(words, words)};
    bed[0].niu.commit(Priority::low);
  }
  ASSERT_TRUE(bed.run([&] { return bed[1].niu.queue_peek(Priority::low) != nullptr; }));
  EXPECT_EQ(bed[1].niu.queue_peek(Priority::low)->tag, 2u);
  EXPECT_EQ(bed[0].count(Counter::drop_outgoing), 1u);
}

// Each mechanism, priority and order in a network that does everything wrong.
class NiuFaults : public ::testing::TestWithParam<std::tuple<Mechanism, Priority, Order>> {};

TEST_P(NiuFaults, EverythingArrivesOnceAndOrderedMeansInOrder) {
  // Not a structured binding: clang 14 does not let lambdas capture those.
  const Mechanism mechanism = std::get<0>(GetParam());
  const Priority priority = std::get<1>(GetParam());
  const Order order = std::get<2>(GetParam());
  BedConfig config;
  config.net.faults = {.loss = 0.05,
                       .duplicate = 0.05,
                       .reorder = 0.1,
                       .corrupt = 0.02,
                       .truncate = 0.02,
                       .seed = 11};
  Bed bed(config);
  const auto to = bed.peer(0, 1);
  Niu<sim::SimPort>& sender = bed[0].niu;
  Niu<sim::SimPort>& receiver = bed[1].niu;
  constexpr std::uint32_t kPackets = 3000;
  std::uint32_t sent = 0, out_of_order = 0;
  std::set<std::uint32_t> seen;
  const bool done = bed.run(
      [&] {
        while (sent < kPackets) {
          const Packet p = packet(sent, static_cast<std::uint8_t>(2 + sent % 21), order);
          if (mechanism == Mechanism::pio) {
            if (sender.try_send(to, priority, p, bed.now()) != SendStatus::sent) break;
          } else {
            Outgoing* entry = sender.reserve(priority);
            if (!entry) break;
            *entry = {to, p};
            sender.commit(priority);
          }
          ++sent;
        }
        const Received* r;
        while ((r = mechanism == Mechanism::pio ? receiver.peek(priority)
                                                : receiver.queue_peek(priority)) != nullptr) {
          EXPECT_TRUE(intact(*r));
          EXPECT_EQ(r->words, 2 + r->tag % 21);
          EXPECT_EQ(r->order, order);
          out_of_order += !seen.empty() && r->tag < *seen.rbegin();
          EXPECT_TRUE(seen.insert(r->tag).second) << "twice: " << r->tag;
          mechanism == Mechanism::pio ? receiver.pop(priority) : receiver.queue_pop(priority);
        }
        return seen.size() == kPackets;
      },
      std::chrono::seconds{20});
  ASSERT_TRUE(done) << seen.size();
  if (order == Order::ordered) {
    EXPECT_EQ(out_of_order, 0u);
  }
  EXPECT_GT(bed.net.faults().lost, 0u);
  EXPECT_GT(bed.net.faults().reordered, 0u);
}

INSTANTIATE_TEST_SUITE_P(All, NiuFaults,
                         ::testing::Combine(::testing::Values(Mechanism::pio, Mechanism::queue),
                                            ::testing::Values(Priority::high, Priority::low),
                                            ::testing::Values(Order::ordered, Order::unordered)));

TEST(Niu, AFullReceiveQueuePushesBackAndLosesNothing) {
  BedConfig config;
  config.driver.niu.queue_depth = 16;
  config.link.max_window = 8;
  Bed bed(config);
  const auto to = bed.peer(0, 1);
  std::uint32_t sent = 0;
  bed.run(
      [&] {
        while (bed[0].niu.try_send(to, Priority::low, packet(sent), bed.now()) == SendStatus::sent)
          ++sent;
        return false;
      },
      milliseconds{20});
  EXPECT_EQ(bed[1].count(Counter::pio_low_received), 16u);
  EXPECT_GT(bed[1].count(Counter::receive_queue_full), 0u);
  EXPECT_GT(sent, 16u);

  std::uint32_t got = 0;
  EXPECT_TRUE(bed.run([&] {
    while (const Received* r = bed[1].niu.peek(Priority::low)) {
      EXPECT_EQ(r->tag, got++);
      bed[1].niu.pop(Priority::low);
    }
    return got == sent;
  }));
}

// The invariant of the two priorities: low is never drained, and high moves as if it were alone.
TEST(Niu, AStalledLowPriorityNeverStopsHigh) {
  for (const bool faults : {false, true}) {
    BedConfig config;
    config.driver.niu.queue_depth = 16;
    if (faults) config.net.faults = {.loss = 0.05, .reorder = 0.05, .seed = 3};
    Bed bed(config);
    const auto to = bed.peer(0, 1);
    std::uint32_t low = 0, high = 0, got = 0;
    const bool done = bed.run(
        [&] {
          // Low is stuffed through both mechanisms until everything on the way is full.
          while (bed[0].niu.try_send(to, Priority::low, packet(low), bed.now()) == SendStatus::sent)
            ++low;
          while (Outgoing* entry = bed[0].niu.reserve(Priority::low)) {
            *entry = {to, packet(low)};
            bed[0].niu.commit(Priority::low);
          }
          while (high < got + 8) {
            if (bed[0].niu.try_send(to, Priority::high, packet(high), bed.now()) !=
                SendStatus::sent)
              break;
            ++high;
          }
          for (const bool queue : {false, true})
            while (const Received* r = queue ? bed[1].niu.queue_peek(Priority::high)
                                             : bed[1].niu.peek(Priority::high)) {
              EXPECT_EQ(r->tag, got++);
              queue ? bed[1].niu.queue_pop(Priority::high) : bed[1].niu.pop(Priority::high);
            }
          return got >= 5000;
        },
        std::chrono::seconds{10});
    EXPECT_TRUE(done) << "high delivered " << got;
    EXPECT_EQ(bed[1].count(Counter::pio_low_received), 16u);
    EXPECT_GT(bed[1].count(Counter::receive_queue_full), 0u);
    EXPECT_EQ(bed[0].niu.queued(Priority::low), 16u);
    EXPECT_EQ(bed[0].niu.reserve(Priority::low), nullptr);
  }
}

TEST(Niu, CommittedHighPacketsLeaveWhileTheLowQueueIsFull) {
  BedConfig config;
  config.driver.niu.queue_depth = 16;
  Bed bed(config);
  const auto to = bed.peer(0, 1);
  bed.run(
      [&] {
        while (Outgoing* entry = bed[0].niu.reserve(Priority::low)) {
          *entry = {to, packet(0, 22)};
          bed[0].niu.commit(Priority::low);
        }
        return false;
      },
      milliseconds{10});
  ASSERT_EQ(bed[0].niu.reserve(Priority::low), nullptr);
  EXPECT_GT(bed[0].count(Counter::transmit_waits), 0u);
  for (std::uint32_t tag = 0; tag < 16; ++tag) {
    *bed[0].niu.reserve(Priority::high) = {to, packet(tag)};
    bed[0].niu.commit(Priority::high);
  }
  EXPECT_TRUE(bed.run([&] { return bed[1].count(Counter::queue_high_received) == 16; }));
}

TEST(Niu, QueuedPacketsShareFrames) {
  Bed bed;
  const auto to = bed.peer(0, 1);
  ASSERT_EQ(bed[0].niu.try_send(to, Priority::high, packet(0), bed.now()), SendStatus::sent);
  ASSERT_TRUE(bed.run([&] { return bed[0].link.idle(); }));
  const auto before = bed[0].link.counters()[link::Counter::frames_sent];
  for (std::uint32_t tag = 0; tag < 80; ++tag) {
    *bed[0].niu.reserve(Priority::low) = {to, packet(tag)};
    bed[0].niu.commit(Priority::low);
  }
  ASSERT_TRUE(bed.run([&] { return bed[1].count(Counter::queue_low_received) == 80; }));
  EXPECT_LE(bed[0].link.counters()[link::Counter::frames_sent] - before, 2u);
}

// Messages that no NIU would send, from a peer that speaks to the link directly.
// The urgent one takes along what waits before it, and order is kept.
TEST(Niu, PioPacketsMayShareAFrame) {
  Bed bed;
  const auto to = bed.peer(0, 1);
  bed[0].niu.try_send(to, Priority::low, packet(0), bed.now());
  ASSERT_TRUE(bed.run([&] { return bed[1].niu.peek(Priority::low) != nullptr; }));
  bed[1].niu.pop(Priority::low);
  bed.run_for(milliseconds{1});
  const auto frames = bed[0].link.counters()[link::Counter::frames_sent];
  for (std::uint32_t i = 1; i <= 10; ++i)
    ASSERT_EQ(bed[0].niu.try_send(to, Priority::low, packet(i, 22),
                                  i == 10 ? link::Urgency::now : link::Urgency::batch, bed.now()),
              SendStatus::sent);
  EXPECT_EQ(bed[0].link.counters()[link::Counter::frames_sent], frames + 1);
  for (std::uint32_t i = 1; i <= 10; ++i) {
    ASSERT_TRUE(bed.run([&] { return bed[1].niu.peek(Priority::low) != nullptr; }));
    EXPECT_EQ(bed[1].niu.peek(Priority::low)->tag, i);
    bed[1].niu.pop(Priority::low);
  }
}

TEST(Niu, MalformedMessagesAreCountedByReason) {
  Bed bed;
  const auto to = bed.peer(0, 1);
  const std::vector<std::byte> zeros(200);
  const auto send = [&](Lane lane, std::uint8_t kind, std::size_t size) {
    ASSERT_TRUE(bed.run([&] {
      return bed[0].link.try_send(to, lane, Order::ordered, {link::Protocol::startx, kind}, {},
                                  std::span(zeros).first(size), link::Urgency::now,
                                  bed.now()) == SendStatus::sent;
    }));
    ASSERT_TRUE(bed.run([&] { return bed[0].link.idle(); }));
  };
  const auto kind = [](Kind k) { return static_cast<std::uint8_t>(k); };
  for (const Kind k : {Kind::pio, Kind::queue})
    for (const std::size_t size : {0, 1, 4, 8, 11, 13, 14, 15, 93, 96, 200})
      send(Lane::high, kind(k), size);
  EXPECT_EQ(bed[1].count(Counter::drop_length), 22u);
  send(Lane::bulk, kind(Kind::pio), 12);
  send(Lane::bulk, kind(Kind::rdma_request), 16);
  send(Lane::high, kind(Kind::rdma_request), 16);
  send(Lane::low, kind(Kind::rdma_grant), 12);
  send(Lane::low, kind(Kind::rdma_refuse), 4);
  send(Lane::bulk, kind(Kind::rdma_done), 12);
  send(Lane::high, kind(Kind::rdma_data), 40);
  send(Lane::low, kind(Kind::rdma_last), 40);
  EXPECT_EQ(bed[1].count(Counter::drop_lane), 8u);
  send(Lane::low, kind(Kind::rdma_request), 15);
  send(Lane::high, kind(Kind::rdma_grant), 13);
  send(Lane::high, kind(Kind::rdma_refuse), 3);
  send(Lane::high, kind(Kind::rdma_done), 0);
  send(Lane::bulk, kind(Kind::rdma_data), 19);
  EXPECT_EQ(bed[1].count(Counter::drop_length), 27u);
  for (const unsigned k : {unsigned{kKinds}, 100u, 255u})
    send(Lane::high, static_cast<std::uint8_t>(k), 12);
  EXPECT_EQ(bed[1].count(Counter::drop_kind), 3u);
  send(Lane::high, kind(Kind::rdma_grant), 12);
  send(Lane::high, kind(Kind::rdma_refuse), 4);
  send(Lane::high, kind(Kind::rdma_done), 12);
  EXPECT_EQ(bed[1].count(Counter::rdma_drop_control), 3u);
  // And it still works.
  send(Lane::high, kind(Kind::pio), 12);
  EXPECT_EQ(bed[1].count(Counter::pio_high_received), 1u);
}

TEST(Niu, EventsTellWhoCameAndWhoWent) {
  BedConfig config;
  config.link.dead_after = milliseconds{50};
  Bed bed(config);
  const auto to = bed.peer(0, 1);
  ASSERT_EQ(bed[0].niu.try_send(to, Priority::high, packet(0), bed.now()), SendStatus::sent);
  Event event;
  ASSERT_TRUE(bed.run([&] { return bed[0].niu.next_event(event); }));
  EXPECT_EQ(event.kind, Event::Kind::peer_up);
  EXPECT_EQ(event.peer, to);
  EXPECT_EQ(event.address, bed[1].port.address());
  ASSERT_TRUE(bed.run([&] { return bed[0].link.idle(); }));

  bed.vanish(1);
  *bed[0].niu.reserve(Priority::low) = {to, packet(0)};
  bed[0].niu.commit(Priority::low);
  ASSERT_TRUE(bed.run([&] { return bed[0].niu.next_event(event); }));
  EXPECT_EQ(event.kind, Event::Kind::peer_down);
  EXPECT_EQ(event.reason, link::DownReason::silent);
  EXPECT_EQ(bed[0].niu.try_send(to, Priority::high, packet(0), bed.now()), SendStatus::peer_down);

  *bed[0].niu.reserve(Priority::low) = {to, packet(0)};
  bed[0].niu.commit(Priority::low);
  bed.poll();
  EXPECT_EQ(bed[0].count(Counter::drop_peer_down), 1u);
  EXPECT_EQ(bed[0].niu.queued(Priority::low), 0u);
  EXPECT_FALSE(bed[0].niu.next_event(event));
}

TEST(Niu, ImpossibleConfigurationsAreRefusedInASentence) {
  sim::SimNetwork net;
  sim::SimPort& port = net.add_port();
  link::Link<sim::SimPort> link(port, {});
  const auto refused = [&](auto change, const char* word) {
    NiuConfig config;
    change(config);
    try {
      Niu<sim::SimPort> niu(link, config);
      ADD_FAILURE() << word;
    } catch (const base::SetupError& error) {
      EXPECT_NE(std::string(error.what()).find(word), std::string::npos) << error.what();
    }
  };
  refused([](NiuConfig& c) { c.queue_depth = 0; }, "queue_depth");
  refused([](NiuConfig& c) { c.queue_depth = 1000; }, "power of two");
  refused([](NiuConfig& c) { c.queue_depth = std::size_t{1} << 40; }, "queue_depth");
  refused([](NiuConfig& c) { c.rdma.max_open = 0; }, "max_open");
  refused([](NiuConfig& c) { c.rdma.max_open = c.rdma.max_posted + 1; }, "max_open");
  refused([](NiuConfig& c) { c.rdma.max_posted = kMaxPosted + 1; }, "max_posted");
  refused([](NiuConfig& c) { c.rdma.max_regions = 0; }, "max_regions");
}

}  // namespace
}  // namespace viaduct::startx
