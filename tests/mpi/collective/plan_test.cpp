// Which ranks share a node, the trees over them, and the rounds of an allgather.
#include "libmpi_lite/collective/plan.hpp"

#include <gtest/gtest.h>

#include <bit>
#include <numeric>
#include <random>
#include <set>

#include "libmpi_lite/collective/algorithms/doubling.hpp"
#include "libmpi_lite/collective/subgroup.hpp"

namespace viaduct::mpi {
namespace {

std::vector<int> vector_of(std::span<const int> s) {
  return {s.begin(), s.end()};
}
using Expected = std::vector<int>;

TEST(Plan, NodesAreNumberedByTheirLowestRanks) {
  const Plan plan(Expected{7, 3, 7, 9, 3, 7}, 4, false, true);
  EXPECT_EQ(plan.nodes(), 3);
  EXPECT_EQ(vector_of(plan.members(0)), (Expected{0, 2, 5}));
  EXPECT_EQ(vector_of(plan.members(1)), (Expected{1, 4}));
  EXPECT_EQ(vector_of(plan.members(2)), (Expected{3}));
  EXPECT_EQ(vector_of(plan.leaders()), (Expected{0, 1, 3}));
  EXPECT_EQ(vector_of(plan.by_node()), (Expected{0, 2, 5, 1, 4, 3}));
  EXPECT_EQ(plan.my_node(), 1);
  EXPECT_EQ(plan.local_index(5), 2);
  EXPECT_FALSE(plan.ordered());
  EXPECT_TRUE(plan.staged());
}

TEST(Plan, RanksInARowAreOrdered) {
  EXPECT_TRUE(Plan(Expected{4, 4, 1, 1, 1, 8}, 0, false, true).ordered());
  EXPECT_FALSE(Plan(Expected{4, 1, 4}, 0, false, true).ordered());
}

TEST(Plan, StagesWhereTheyHelp) {
  const Expected one_node(6, 0), spread{0, 1, 2, 3}, two_nodes{0, 0, 2, 2};
  EXPECT_FALSE(Plan(one_node, 0, false, true).staged());
  EXPECT_TRUE(Plan(one_node, 0, true, true).staged());
  for (const bool oversubscribed : {true, false}) {
    EXPECT_FALSE(Plan(spread, 0, oversubscribed, true).staged());
    EXPECT_TRUE(Plan(two_nodes, 0, oversubscribed, true).staged());
    for (const Expected* const names : {&one_node, &spread, &two_nodes}) {
      EXPECT_EQ(Plan(*names, 0, oversubscribed, true).oversubscribed(), oversubscribed);
      EXPECT_EQ(Plan(*names, 0, oversubscribed, false).oversubscribed(), oversubscribed);
      EXPECT_EQ(Plan(*names, 0, oversubscribed, false).staged(),
                oversubscribed && names == &one_node);
    }
  }
}

// All processes must draw the same picture.
TEST(Plan, IsTheSameForAll) {
  std::mt19937 random(5);
  for (int round = 0; round < 50; ++round) {
    Expected names(1 + random() % 40);
    for (int& name : names) name = static_cast<int>(random() % 6);
    const Plan first(names, 0, false, true);
    std::set<int> seen(first.by_node().begin(), first.by_node().end());
    EXPECT_EQ(seen.size(), names.size());
    for (int me = 0; me < static_cast<int>(names.size()); ++me) {
      const Plan plan(names, me, false, true);
      EXPECT_EQ(vector_of(plan.by_node()), vector_of(first.by_node()));
      EXPECT_EQ(plan.staged(), first.staged());
      EXPECT_EQ(plan.members(plan.my_node())[static_cast<std::size_t>(plan.local_index(me))], me);
    }
  }
}

// Every edge is seen alike at both ends, subtrees are rows of places, and everybody is in one.
void check_tree(int size, int root, bool oversubscribed) {
  const auto tree_of = [&](int me) {
    return Tree(Subgroup{nullptr, nullptr, size, me, oversubscribed}, root);
  };
  const auto index = [&](int place) {
    return index_of_place(Subgroup{nullptr, nullptr, size, 0, oversubscribed}, root, place);
  };
  std::set<int> indices;
  for (int place = 0; place < size; ++place) {
    indices.insert(index(place));
    if (root == 0) {
      EXPECT_EQ(index(place), place);
    }
  }
  EXPECT_EQ(indices.size(), static_cast<std::size_t>(size));
  for (int me = 0; me < size; ++me) {
    const Tree tree = tree_of(me);
    EXPECT_EQ(index(tree.place()), me);
    EXPECT_EQ(tree.parent() < 0, me == root);
    int next = 1;
    for (int k = 0; k < tree.children(); ++k) {
      const Tree child = tree_of(tree.child(k));
      EXPECT_EQ(child.parent(), me);
      EXPECT_EQ(child.place(), tree.place() + tree.offset(k));
      EXPECT_EQ(child.width(), tree.width(k));
      EXPECT_EQ(tree.offset(k), next);
      next += tree.width(k);
    }
    EXPECT_EQ(next, tree.width());
  }
  EXPECT_EQ(tree_of(root).width(), size);
}

TEST(Tree, BinomialAndStar) {
  for (int size = 1; size <= 35; ++size)
    for (int root = 0; root < size; ++root)
      for (const bool oversubscribed : {false, true}) {
        SCOPED_TRACE(testing::Message() << size << " processes, root " << root << oversubscribed);
        check_tree(size, root, oversubscribed);
      }
}

TEST(Tree, CrowdedIsOneStep) {
  const Tree leaf(Subgroup{nullptr, nullptr, 16, 5, true}, 3);
  EXPECT_EQ(leaf.parent(), 3);
  EXPECT_EQ(leaf.children(), 0);
  const Tree binomial(Subgroup{nullptr, nullptr, 16, 3, false}, 3);
  EXPECT_EQ(binomial.children(), 4);
}

TEST(Tree, IsMadeOnceForEachRoot) {
  const Plan plan(Expected(6, 0), 2, false, true);
  const Subgroup all{nullptr, nullptr, 6, 2, false, &plan.all_trees};
  for (int root = 5; root >= 0; --root) {
    const Tree& tree = all.tree(root);
    EXPECT_EQ(tree.place(), Tree(all, root).place());
    EXPECT_EQ(tree.parent(), Tree(all, root).parent());
    EXPECT_EQ(&all.tree(root), &tree);
  }
  EXPECT_NE(&all.tree(0), &all.tree(1));
}

// Each block that is sent is there, is received once, and is where the receiver expects it.
TEST(Doubling, BringsEveryBlockToAll) {
  for (int size = 1; size <= 70; ++size) {
    SCOPED_TRACE(size);
    const auto n = static_cast<std::size_t>(size);
    std::vector<Subgroup> subgroups;
    std::vector<Doubling> rounds;
    subgroups.reserve(n);
    std::vector<std::set<int>> blocks;  // that each process has
    for (int me = 0; me < size; ++me) {
      subgroups.push_back({nullptr, nullptr, size, me, false});
      rounds.emplace_back(subgroups.back());
      blocks.push_back({me});
      EXPECT_EQ((rounds.back().first() + rounds.back().own()) % size, me);
    }
    int count = 0;
    for (; !rounds[0].done(); ++count) {
      std::vector<std::set<int>> after = blocks;
      for (int me = 0; me < size; ++me) {
        const Doubling& mine = rounds[static_cast<std::size_t>(me)];
        const Doubling& theirs = rounds[static_cast<std::size_t>(mine.to())];
        EXPECT_EQ(theirs.from(), me);
        EXPECT_EQ(theirs.count(), mine.count());
        for (int i = 0; i < mine.count(); ++i) {
          const int block = (mine.first() + mine.sent() + i) % size;
          EXPECT_EQ((theirs.first() + theirs.received() + i) % size, block);
          EXPECT_TRUE(blocks[static_cast<std::size_t>(me)].contains(block));
          EXPECT_TRUE(after[static_cast<std::size_t>(mine.to())].insert(block).second);
        }
      }
      blocks = after;
      for (Doubling& round : rounds) round.next();
    }
    EXPECT_EQ(count, std::bit_width(n - 1));
    for (const std::set<int>& all : blocks) EXPECT_EQ(all.size(), n);
  }
}

}  // namespace
}  // namespace viaduct::mpi
