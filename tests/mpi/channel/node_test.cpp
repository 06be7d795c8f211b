// Who is on which node, and what its processes say about that.
#include <locale>

#include "libmpi_lite/channel/node.hpp"
#include "tests/mpi/channel/bed.hpp"

namespace viaduct::mpi {
namespace {

TEST(NodeCard, IsReadAsItIsWritten) {
  for (const char* cpus : {"0", "1", "1000", "111111", "11100000001"}) {
    NodeCard card{.node = ~0ull, .pid = 4711, .segment = -1, .address = 0x7fff12345678, .cpus = {}};
    card.cpus = NodeCard::Cpus(cpus);
    const NodeCard again = NodeCard::parse(card.text());
    EXPECT_EQ(again.node, card.node);
    EXPECT_EQ(again.pid, card.pid);
    EXPECT_EQ(again.segment, card.segment);
    EXPECT_EQ(again.address, card.address);
    EXPECT_EQ(again.cpus, card.cpus) << card.text();
  }
  NodeCard all;
  all.cpus.set();
  EXPECT_EQ(NodeCard::parse(all.text()).cpus, all.cpus);
  EXPECT_LE(all.text().size(), 900u) << "what a process manager takes";
}

// Programs may choose how numbers look, and each rank for itself.
TEST(NodeCard, LooksTheSameInEveryLocale) {
  struct Thousands : std::numpunct<char> {
    char do_thousands_sep() const override { return '.'; }
    std::string do_grouping() const override { return "\3"; }
  };
  const NodeCard card{.node = ~0ull, .pid = 3021123, .segment = 1234, .address = 1, .cpus = {}};
  const std::string text = card.text();
  const std::locale before = std::locale::global(std::locale(std::locale(), new Thousands));
  EXPECT_EQ(card.text(), text);
  EXPECT_EQ(NodeCard::parse(text).pid, card.pid);
  std::locale::global(before);
}

TEST(NodeCard, WhatCannotBeReadIsASetupError) {
  const std::string too_many(129, 'f');
  for (const std::string& bad :
       {std::string(), std::string("1.2.3.4"), std::string("1.2.3.4."), std::string("1.2.3.4.g"),
        std::string("1.2.3.4.F"), std::string("1.2.3.-4.f"), std::string("1.2,3.4.f"),
        std::string("1.x.3.4.f"), "1.2.3.4." + too_many})
    EXPECT_THROW(NodeCard::parse(bad), link::SetupError) << bad;
}

// Eight nodes of eight processes each, every one of which may use two CPUs of its own.
TEST(Nodes, NeighboursAreAskedAndNobodyElse) {
  constexpr int kNodes = 8, kEach = 8;
  for (const bool blocks : {true, false}) {
    FakeJob job{kNodes * kEach, {}};
    NodeCard mine;
    for (int rank = 0; rank < job.size; ++rank) {
      NodeCard card;
      const int place = blocks ? rank % kEach : rank / kNodes;
      card.node = static_cast<unsigned>(blocks ? rank / kEach : rank % kNodes);
      card.cpus = NodeCard::Cpus(3) << static_cast<std::size_t>(2 * place);
      if (rank == 10)
        mine = card;
      else
        FakeLaunch(job, rank).put("node", card.text());
    }
    FakeLaunch launch(job, 10);
    Nodes nodes(launch);
    nodes.publish(mine);
    EXPECT_EQ(nodes.cpus_here(1).count(), 2u);
    EXPECT_EQ(job.gets, 0u);
    EXPECT_EQ(nodes.cpus_here(kEach).count(), 2u * kEach);
    EXPECT_LE(job.gets, blocks ? 2u * kEach : static_cast<unsigned>(job.size)) << "of neighbours";
    EXPECT_EQ(nodes.cpus_here(kEach + 1).count(), 2u * kEach) << "there are no more";
  }
}

}  // namespace
}  // namespace viaduct::mpi
