// Who is on which node, and what its processes say about that.
#include <deque>
#include <locale>

#include "libmpi_lite/channel/node.hpp"
#include "tests/mpi/channel/bed.hpp"

namespace viaduct::mpi {
namespace {

TEST(NodeInfo, IsReadAsItIsWritten) {
  for (const char* cpus : {"0", "1", "1000", "111111", "11100000001"}) {
    NodeInfo card{.node = ~0ull,
                  .machine = 0xabcdef,
                  .pid = 4711,
                  .segment = -1,
                  .address = 0x7fff12345678,
                  .cpus = NodeInfo::Cpus(cpus)};
    const NodeInfo again = NodeInfo::parse(card.text());
    EXPECT_EQ(again.node, card.node);
    EXPECT_EQ(again.machine, card.machine);
    EXPECT_EQ(again.pid, card.pid);
    EXPECT_EQ(again.segment, card.segment);
    EXPECT_EQ(again.address, card.address);
    EXPECT_EQ(again.cpus, card.cpus) << card.text();
  }
  NodeInfo all;
  all.cpus.set();
  EXPECT_EQ(NodeInfo::parse(all.text()).cpus, all.cpus);
  EXPECT_LE(all.text().size(), 900u) << "what a process manager takes";
}

// Programs may choose how numbers look, and each rank for itself.
TEST(NodeInfo, LooksTheSameInEveryLocale) {
  struct Thousands : std::numpunct<char> {
    char do_thousands_sep() const override { return '.'; }
    std::string do_grouping() const override { return "\3"; }
  };
  const NodeInfo card{
      .node = ~0ull, .machine = 1, .pid = 3021123, .segment = 1234, .address = 1, .cpus = {}};
  const std::string text = card.text();
  const std::locale before = std::locale::global(std::locale(std::locale(), new Thousands));
  EXPECT_EQ(card.text(), text);
  EXPECT_EQ(NodeInfo::parse(text).pid, card.pid);
  std::locale::global(before);
}

TEST(NodeInfo, WhatCannotBeReadIsASetupError) {
  const std::string too_many(257, 'f');
  for (const std::string& bad :
       {std::string(), std::string("1.2.3.4.5"), std::string("1.2.3.4.5."),
        std::string("1.2.3.4.5.g"), std::string("1.2.3.4.5.F"), std::string("1.2.3.4.-5.f"),
        std::string("1.2,3.4.5.f"), std::string("1.2.x.4.5.f"), "1.2.3.4.5." + too_many})
    EXPECT_THROW(NodeInfo::parse(bad), base::SetupError) << bad;
}

// Who runs where: a node, a machine, and the CPUs.
struct Place {
  std::uint64_t node, machine;
  const char* cpus;
};

bool oversubscribed(const std::vector<Place>& places, bool one_machine = false) {
  FakeJob job{static_cast<int>(places.size()), {}};
  std::deque<FakeLaunch> launches;
  std::deque<Nodes> nodes;
  for (const Place& at : places) {
    nodes.emplace_back(launches.emplace_back(job, static_cast<int>(launches.size())));
    nodes.back().publish({.node = at.node, .machine = at.machine, .cpus = NodeInfo::Cpus(at.cpus)});
  }
  const bool result = nodes[0].oversubscribed(one_machine);
  for (Nodes& other : nodes) EXPECT_EQ(other.oversubscribed(one_machine), result) << other.rank();
  return result;
}

TEST(Nodes, NodesOfOneMachineShareItsCpus) {
  EXPECT_FALSE(oversubscribed({{1, 1, "11"}, {1, 1, "11"}}));
  EXPECT_TRUE(oversubscribed({{1, 1, "11"}, {1, 1, "11"}, {1, 1, "11"}}));
  EXPECT_FALSE(oversubscribed({{1, 1, "11"}, {1, 1, "11"}, {2, 2, "11"}, {2, 2, "11"}}));
  EXPECT_TRUE(oversubscribed({{1, 1, "11"}, {1, 1, "11"}, {2, 1, "11"}, {2, 1, "11"}}));
  EXPECT_FALSE(oversubscribed({{1, 1, "11"}, {1, 1, "11"}, {2, 1, "1100"}, {2, 1, "1100"}}));
}

TEST(Nodes, AJobIsCrowdedIfOneOfItsMachinesIs) {
  EXPECT_TRUE(oversubscribed({{1, 1, "11"}, {1, 1, "11"}, {2, 2, "1"}, {2, 2, "1"}}));
  EXPECT_FALSE(oversubscribed({{1, 1, "11"}, {1, 1, "11"}, {2, 2, "1"}, {3, 3, "1"}}));
}

TEST(Nodes, WhoIsBoundToACpuAsksAboutTheOthers) {
  for (const bool one_machine : {true, false}) {
    EXPECT_FALSE(oversubscribed({{1, 1, "1"}, {1, 1, "10"}, {1, 1, "100"}}, one_machine));
    EXPECT_TRUE(oversubscribed({{1, 1, "1"}, {1, 1, "10"}, {1, 1, "10"}}, one_machine));
    EXPECT_FALSE(oversubscribed({{1, 1, "111"}, {1, 1, "10"}, {1, 1, "10"}}, one_machine));
    EXPECT_FALSE(oversubscribed({{1, 1, "0"}, {1, 1, "0"}}, one_machine)) << "unknown";
  }
}

}  // namespace
}  // namespace viaduct::mpi
