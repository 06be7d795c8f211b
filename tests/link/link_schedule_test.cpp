// Conversations among processes that lose their CPU for 0.1 to 100 ms at any reading of the clock.
// In a conversation a node has nothing to send but what the other waits for, and the link's
// dead_after is an hour, as MPI sets it: whatever gets stuck stays stuck. A failing seed replays
// with VIADUCT_TEST_SEED=N VIADUCT_TEST_SCENARIOS=1.
#include <gtest/gtest.h>

#include <iostream>

#include "tests/link/sim_world.hpp"
#include "tests/support/effort.hpp"

namespace viaduct::link::test {
namespace {

// Each node has a conversation with each other one. A turn is some messages on one lane, the last
// of them marked; the node that has received the mark takes the next turn, at once from within the
// receive handler or after its poll.
class Conversations {
 public:
  explicit Conversations(std::uint64_t seed) : random_(seed), world_(network(seed)) {
    const std::size_t count = 2 + random_() % 3;
    LinkConfig link;
    link.idle_window = static_cast<std::uint32_t>(random_() % 3);
    link.max_window = 4u << random_() % 7;
    link.dead_after = std::chrono::hours{1};
    sim::SimPortConfig port;
    port.receive_ring = 32 << random_() % 6;
    port.pool = 4 * port.receive_ring + 256;
    for (std::size_t i = 0; i < count; ++i) {
      link.seed = seed * 100 + i + 1;
      Node& node = world_.add(link, port);
      node.sink.message = [this, i](const Incoming& m) { return receive(i, m); };
    }
    world_.schedule.set_pauses({.probability = 0.01, .seed = seed});
    turns_.resize(count, std::vector<Turn>(count));
    for (std::size_t i = 0; i < count; ++i)
      for (std::size_t to = 0; to < i; ++to) start_turn(i, to);
  }

  // False: a conversation does not go on.
  bool run(std::uint64_t turns) {
    while (finished_ < turns) {
      const std::uint64_t before = finished_;
      const bool progress = world_.run_until(
          [&] {
            for (std::size_t i = 0; i < turns_.size(); ++i) speak(i);
            return finished_ > before + 100;
          },
          seconds{30}, microseconds{20});
      if (!progress && finished_ == before) return false;
    }
    return true;
  }
  std::uint64_t pauses() const { return world_.schedule.pauses(); }

 private:
  struct Turn {
    std::uint32_t left = 0;  // messages still to be sent
    Lane lane = Lane::low;
    std::size_t size = 0;
  };

  static sim::SimConfig network(std::uint64_t seed) {
    sim::SimConfig net;
    net.faults.seed = seed;
    if (seed % 3 == 0) net.faults.loss = 0.02;
    return net;
  }

  void start_turn(std::size_t from, std::size_t to) {
    turns_[from][to] = {1 + static_cast<std::uint32_t>(random_() % 24),
                        static_cast<Lane>(random_() % kLanes), 1 + random_() % 1400};
  }

  // Sends as much of the node's turns as the link takes.
  void speak(std::size_t from) {
    for (std::size_t to = 0; to < turns_.size(); ++to)
      while (turns_[from][to].left != 0 && send_one(from, to)) continue;
  }
  bool send_one(std::size_t from, std::size_t to) {
    Turn& turn = turns_[from][to];
    SimLink& link = *world_.nodes[from]->link;
    std::vector<std::byte> body(turn.size);
    body[0] = static_cast<std::byte>(turn.left == 1);
    const Time now = world_.schedule.read_clock(from);
    const SendStatus status = link.try_send(
        link.peer(world_.nodes[to]->address()), turn.lane, Order::ordered, kTestMessage, {}, body,
        random_() % 4 != 0 ? Urgency::now : Urgency::batch, now);
    if (status != SendStatus::sent) return false;
    --turn.left;
    return true;
  }

  RxResult receive(std::size_t at, const Incoming& m) {
    if (m.bytes[0] == std::byte{0}) return RxResult::consumed;
    for (std::size_t from = 0; from < turns_.size(); ++from) {
      Node& node = *world_.nodes[at];
      if (from == at || node.link->peer(world_.nodes[from]->address()) != m.from) continue;
      ++finished_;
      start_turn(at, from);
      if (random_() % 2 == 0)
        while (turns_[at][from].left != 0 && send_one(at, from)) continue;
    }
    return RxResult::consumed;
  }

  std::mt19937_64 random_;
  World world_;
  std::vector<std::vector<Turn>> turns_;  // [from][to]
  std::uint64_t finished_ = 0;
};

TEST(LinkSchedule, ConversationsGoOnHoweverProcessesAreScheduled) {
  const std::uint64_t first = viaduct::test::from_environment("VIADUCT_TEST_SEED", 1);
  const std::uint64_t count = viaduct::test::from_environment("VIADUCT_TEST_SCENARIOS", 150);
  std::uint64_t pauses = 0;
  for (std::uint64_t seed = first; seed < first + count; ++seed) {
    Conversations conversations(seed);
    ASSERT_TRUE(conversations.run(500)) << "stuck with seed " << seed;
    pauses += conversations.pauses();
  }
  std::cout << count << " scenarios with " << pauses << " pauses\n";
  EXPECT_GT(pauses, 10 * count);
}

}  // namespace
}  // namespace viaduct::link::test
