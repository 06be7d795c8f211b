// What a link says about itself: counters of one peer, and its state as text.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "tests/link/sim_world.hpp"

namespace viaduct::link::test {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

struct LinkDump : testing::Test {
  // Until everything has been acknowledged.
  void talk(World& world, Node& from, const Node& to, int messages) {
    const PeerId peer = from.link->peer(to.address());
    for (int sent = 0; sent < messages;) {
      sent += send(world, from, peer);
      world.run(microseconds{20});
    }
    ASSERT_TRUE(world.run_until([&] { return from.link->idle(); }, seconds{5}));
  }
  static bool send(World& world, Node& from, PeerId to) {
    return send_text(from, to, std::string(100, 'x'), world.net.now()) == SendStatus::sent;
  }
};

TEST_F(LinkDump, WhatGoesWrongWithOnePeerIsCountedForItAndForAll) {
  World world({.faults = {.loss = 0.2, .duplicate = 0.2, .corrupt = 0.1, .seed = 7}});
  Node& a = world.add();
  Node& b = world.add();
  Node& c = world.add();
  talk(world, a, b, 200);
  const Counters before = a.link->counters(a.link->peer(b.address()));
  talk(world, a, c, 200);
  const Counters& of_b = a.link->counters(a.link->peer(b.address()));
  const Counters& of_c = a.link->counters(a.link->peer(c.address()));
  for (const Counter counter : {Counter::retransmits, Counter::probes, Counter::drop_checksum}) {
    EXPECT_GT(of_b[counter], 0u) << kCounterInfo[static_cast<std::size_t>(counter)].name;
    EXPECT_GT(of_c[counter], 0u) << kCounterInfo[static_cast<std::size_t>(counter)].name;
    EXPECT_GE(a.link->counters()[counter], of_b[counter] + of_c[counter]);
  }
  EXPECT_EQ(a.link->counters()[Counter::retransmits],
            of_b[Counter::retransmits] + of_c[Counter::retransmits]);
  EXPECT_EQ(before[Counter::retransmits], of_b[Counter::retransmits]) << "the other's are not its";
  EXPECT_GT(b.link->counters(b.link->peer(a.address()))[Counter::drop_duplicate], 0u);
}

TEST_F(LinkDump, CountersOutliveThePeerUntilAnotherTakesItsPlace) {
  World world({.faults = {.loss = 0.3, .seed = 3}});
  Node& a = world.add();
  Node& b = world.add();
  Node& c = world.add();
  talk(world, a, b, 100);
  const PeerId first = a.link->peer(b.address());
  const std::uint64_t sent_again = a.link->counters(first)[Counter::retransmits];
  ASSERT_GT(sent_again, 0u);
  a.link->disconnect(first, world.net.now());
  EXPECT_EQ(a.link->counters(first)[Counter::retransmits], sent_again);
  const PeerId second = a.link->peer(c.address());
  ASSERT_EQ(first.value & 0xffff, second.value & 0xffff) << "the same slot";
  EXPECT_EQ(a.link->counters(second)[Counter::retransmits], 0u);
  EXPECT_EQ(a.link->counters(first)[Counter::retransmits], 0u) << "nobody's any more";
}

TEST_F(LinkDump, TellsWhatAConnectionWaitsFor) {
  World world;
  Node& a = world.add();
  Node& b = world.add();
  talk(world, a, b, 1);
  const PeerId peer = a.link->peer(b.address());
  EXPECT_THAT(
      a.link->dump(peer, world.net.now()),
      AllOf(HasSubstr(b.address().text() + ": up"), HasSubstr("timer in "),
            HasSubstr("low lane: sends: 0 waiting, 0 in flight"), Not(HasSubstr("counted"))));
  // The receive handler takes nothing more: frames are held there, then credit is used up.
  b.sink.message = [](const Incoming&) { return RxResult::backpressure; };
  while (send(world, a, peer)) world.run(microseconds{20});
  world.run(milliseconds{20});
  EXPECT_THAT(
      a.link->dump(world.net.now()),
      AllOf(HasSubstr(a.address().text()), HasSubstr("credit lent"),
            HasSubstr("credit 0; probed for credit "), HasSubstr("counted: credit_waits ")));
  EXPECT_THAT(b.link->dump(b.link->peer(a.address()), world.net.now()),
              AllOf(HasSubstr("in line for a busy sink"), HasSubstr("held, a sink is busy")));
  EXPECT_EQ(a.link->dump(PeerId{}, world.net.now()), "no connection\n");
}

TEST(Text, SpansOfTime) {
  EXPECT_EQ(text(Duration{850}), "850 ns");
  EXPECT_EQ(text(microseconds{12} + Duration{300}), "12.3 us");
  EXPECT_EQ(text(milliseconds{890}), "890.0 ms");
  EXPECT_EQ(text(seconds{3600}), "3600.0 s");
}

}  // namespace
}  // namespace viaduct::link::test
