// Groups against a model: the vector of their processes, asked by linear search, and std::set.
#include "libmpi_lite/core/group.hpp"

#include <gtest/gtest.h>
#include <mpi.h>

#include <algorithm>
#include <random>
#include <set>

#include "tests/mpi/comm/code_of.hpp"

namespace viaduct::mpi {
namespace {

constexpr int kMe = 3;

std::vector<int> list(const Group& g) {
  return {g.world_ranks().begin(), g.world_ranks().end()};
}

class Groups : public ::testing::Test {
 protected:
  std::mt19937 random_{20251121};

  // Some of 12 processes in any order.
  Ref<Group> some() {
    std::vector<int> ranks(12);
    for (int i = 0; i < 12; ++i) ranks[static_cast<std::size_t>(i)] = i;
    // Identity groups take a path of their own.
    if (random_() % 4) std::shuffle(ranks.begin(), ranks.end(), random_);
    ranks.resize(random_() % 13);
    return make<Group>(ranks, kMe);
  }
};

TEST_F(Groups, KnowWhereAProcessIs) {
  for (int round = 0; round < 300; ++round) {
    const Ref<Group> g = some();
    for (int process = -1; process < 14; ++process) {
      const std::vector<int> model = list(*g);
      const auto at = std::find(model.begin(), model.end(), process);
      const int expected = at == model.end() ? MPI_UNDEFINED : static_cast<int>(at - model.begin());
      EXPECT_EQ(g->rank_of(process), expected);
      if (process == kMe) {
        EXPECT_EQ(g->rank(), expected);
      }
    }
  }
}

TEST_F(Groups, SetOperationsKeepTheOrderTheStandardSays) {
  for (int round = 0; round < 1000; ++round) {
    const Ref<Group> a = some(), b = some();
    const std::vector<int> in_a = list(*a), in_b = list(*b);
    const std::set<int> set_a(in_a.begin(), in_a.end()), set_b(in_b.begin(), in_b.end());
    std::vector<int> both, left, all = in_a;
    for (const int p : in_a) (set_b.contains(p) ? both : left).push_back(p);
    for (const int p : in_b)
      if (!set_a.contains(p)) all.push_back(p);
    EXPECT_EQ(list(*unite(*a, *b)), all);
    EXPECT_EQ(list(*intersect(*a, *b)), both);
    EXPECT_EQ(list(*subtract(*a, *b)), left);
    EXPECT_EQ(unite(*a, *b)->rank() != MPI_UNDEFINED, set_a.contains(kMe) || set_b.contains(kMe));
  }
}

TEST_F(Groups, Compare) {
  int seen[3] = {};
  for (int round = 0; round < 3000; ++round) {
    const Ref<Group> a = some(), b = round % 3 ? some() : unite(*a, *a);
    std::vector<int> shuffled = list(*a);
    std::shuffle(shuffled.begin(), shuffled.end(), random_);
    const Ref<Group> c = round % 3 == 1 ? make<Group>(shuffled, kMe) : b;
    const std::vector<int> x = list(*a), y = list(*c);
    const bool similar = std::set<int>(x.begin(), x.end()) == std::set<int>(y.begin(), y.end());
    const int expected = x == y ? MPI_IDENT : similar ? MPI_SIMILAR : MPI_UNEQUAL;
    EXPECT_EQ(compare(*a, *c), expected);
    ++seen[expected == MPI_IDENT ? 0 : expected == MPI_SIMILAR ? 1 : 2];
  }
  for (const int n : seen) EXPECT_GT(n, 100);
}

TEST_F(Groups, IncludeTakesInTheGivenOrderAndExcludeTheRest) {
  for (int round = 0; round < 500; ++round) {
    const Ref<Group> g = some();
    std::vector<int> ranks(static_cast<std::size_t>(g->size()));
    for (int i = 0; i < g->size(); ++i) ranks[static_cast<std::size_t>(i)] = i;
    std::shuffle(ranks.begin(), ranks.end(), random_);
    ranks.resize(random_() % (ranks.size() + 1));
    const std::set<int> chosen(ranks.begin(), ranks.end());
    std::vector<int> in, out;
    for (const int r : ranks) in.push_back(g->world_rank(r));
    for (int r = 0; r < g->size(); ++r)
      if (!chosen.contains(r)) out.push_back(g->world_rank(r));
    EXPECT_EQ(list(*include(*g, ranks)), in);
    EXPECT_EQ(list(*exclude(*g, ranks)), out);
  }
}

TEST_F(Groups, RefuseRanksThatAreOutsideOrTwice) {
  const Group g({4, 2, 9}, kMe);
  EXPECT_EQ(code_of([&] { include(g, std::vector{0, 3}); }), MPI_ERR_RANK);
  EXPECT_EQ(code_of([&] { include(g, std::vector{-1}); }), MPI_ERR_RANK);
  EXPECT_EQ(code_of([&] { include(g, std::vector{MPI_PROC_NULL}); }), MPI_ERR_RANK);
  EXPECT_EQ(code_of([&] { include(g, std::vector{1, 1}); }), MPI_ERR_RANK);
  EXPECT_EQ(code_of([&] { exclude(g, std::vector{2, 0, 2}); }), MPI_ERR_RANK);
  EXPECT_EQ(code_of([&] { exclude(g, std::vector{0, 1, 2}); }), MPI_SUCCESS);
}

// The formula of MPI 5.0, section 7.3.2, term by term.
TEST_F(Groups, RangesExpandAsTheStandardSays) {
  const Group g({0, 1, 2, 3, 4, 5, 6, 7}, kMe);
  for (int first = -2; first < 11; ++first)
    for (int last = -2; last < 11; ++last)
      for (int stride = -4; stride <= 4; ++stride) {
        const RankRange range[1] = {{first, last, stride}};
        if (stride == 0 || (last - first) * stride < 0) {
          EXPECT_EQ(code_of([&] { expand(g, range); }), MPI_ERR_ARG);
          continue;
        }
        std::vector<int> expected;
        for (int i = 0; i <= (last - first) / stride; ++i) expected.push_back(first + i * stride);
        const bool inside =
            std::ranges::all_of(expected, [&](int r) { return r >= 0 && r < g.size(); });
        if (inside) {
          EXPECT_EQ(expand(g, range), expected);
        } else {
          EXPECT_EQ(code_of([&] { expand(g, range); }), MPI_ERR_RANK);
        }
      }
  // Far beyond any group, where careless arithmetic overflows and a careless list eats the memory.
  const RankRange far[1] = {{0x7fffffff, -0x7fffffff, -1}};
  EXPECT_EQ(code_of([&] { expand(g, far); }), MPI_ERR_RANK);
}

}  // namespace
}  // namespace viaduct::mpi
