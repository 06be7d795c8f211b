#include "libmpi_lite/core/topology/topology.hpp"

#include <gtest/gtest.h>
#include <mpi.h>

#include <algorithm>
#include <numeric>

#include "tests/mpi/comm/code_of.hpp"

namespace viaduct::mpi {
namespace {

// ---- MPI_Dims_create ---------------------------------------------------------------------------

// Every way to write `nodes` as a product of `count` numbers, largest first; the plain way.
void all_products(int nodes, std::size_t count, std::vector<int>& so_far,
                  std::vector<std::vector<int>>& found) {
  if (count == 0) {
    if (nodes == 1) found.push_back(so_far);
    return;
  }
  for (int d = 1; d <= nodes; ++d) {
    if (nodes % d != 0 || (!so_far.empty() && d > so_far.back())) continue;
    so_far.push_back(d);
    all_products(nodes / d, count - 1, so_far, found);
    so_far.pop_back();
  }
}

TEST(DimsCreate, FindsTheClosestNumbersThereAre) {
  for (int nodes = 1; nodes <= 200; ++nodes)
    for (std::size_t count = 1; count <= 5; ++count) {
      std::vector<int> dims(count, 0), scratch;
      dims_create(nodes, dims);
      std::vector<std::vector<int>> ways;
      all_products(nodes, count, scratch, ways);
      ASSERT_TRUE(std::ranges::find(ways, dims) != ways.end()) << nodes << " in " << count;
      const auto key = [](const std::vector<int>& way) {
        return std::pair(way.front() - way.back(), way.front());
      };
      const auto best = std::ranges::min_element(ways, {}, key);
      EXPECT_EQ(key(dims), key(*best)) << nodes << " in " << count;
    }
}

TEST(DimsCreate, TheStandardsExamples) {
  std::vector<int> d{0, 0};
  dims_create(6, d);
  EXPECT_EQ(d, (std::vector{3, 2}));
  d = {0, 0};
  dims_create(7, d);
  EXPECT_EQ(d, (std::vector{7, 1}));
  d = {0, 3, 0};
  dims_create(6, d);
  EXPECT_EQ(d, (std::vector{2, 3, 1}));
  d = {0, 3, 0};
  EXPECT_EQ(code_of([&] { dims_create(7, d); }), MPI_ERR_DIMS);
  EXPECT_EQ(d, (std::vector{0, 3, 0}));  // untouched
}

TEST(DimsCreate, WhatIsFixedStays) {
  for (int fixed = 1; fixed <= 12; ++fixed)
    for (int nodes = 1; nodes <= 60; ++nodes) {
      std::vector<int> d{0, fixed, 0, 1};
      const int code = code_of([&] { dims_create(nodes, d); });
      ASSERT_EQ(code, nodes % fixed ? MPI_ERR_DIMS : MPI_SUCCESS);
      if (code) continue;
      EXPECT_EQ(d[1], fixed);
      EXPECT_EQ(d[3], 1);
      EXPECT_GE(d[0], d[2]);
      EXPECT_EQ(d[0] * d[1] * d[2], nodes);
    }
  std::vector<int> all{2, 3}, huge{0x7fffffff, 0x7fffffff, 0}, negative{0, -1}, none;
  EXPECT_EQ(code_of([&] { dims_create(6, all); }), MPI_SUCCESS);
  EXPECT_EQ(code_of([&] { dims_create(12, all); }), MPI_ERR_DIMS);
  EXPECT_EQ(code_of([&] { dims_create(6, huge); }), MPI_ERR_DIMS);
  EXPECT_EQ(code_of([&] { dims_create(6, negative); }), MPI_ERR_DIMS);
  EXPECT_EQ(code_of([&] { dims_create(1, none); }), MPI_SUCCESS);
}

// Numbers with many divisors, and many dimensions: must not take for ever.
TEST(DimsCreate, IsQuick) {
  for (const int nodes : {720720, 2095133040, 1 << 30, 2147483647, 6469693})
    for (std::size_t count = 1; count <= 12; ++count) {
      std::vector<int> dims(count, 0);
      dims_create(nodes, dims);
      EXPECT_EQ(std::accumulate(dims.begin(), dims.end(), 1LL, std::multiplies<>()), nodes);
      EXPECT_TRUE(std::ranges::is_sorted(dims, std::greater<>()));
    }
}

// ---- grids -------------------------------------------------------------------------------------

TEST(Cartesian, RanksAndCoordinatesAreInverse) {
  const Cartesian grid = make_cartesian(std::vector{3, 1, 4, 2}, std::vector{0, 7, 1, 0}, 24);
  ASSERT_EQ(cells(grid), 24);
  EXPECT_EQ(grid.periods, (std::vector{0, 1, 1, 0}));
  int rank = 0;  // row-major: the last coordinate is the fastest
  for (int a = 0; a < 3; ++a)
    for (int c = 0; c < 4; ++c)
      for (int d = 0; d < 2; ++d, ++rank) {
        EXPECT_EQ(grid.coords_of(rank), (std::vector{a, 0, c, d}));
        EXPECT_EQ(grid.rank_of(std::vector{a, 0, c, d}), rank);
        for (const int turns : {-2, -1, 1, 5}) {
          EXPECT_EQ(grid.rank_of(std::vector{a, turns, c + 4 * turns, d}), rank);
          EXPECT_EQ(grid.rank_of(std::vector{a + 3 * turns, 0, c, d}), MPI_PROC_NULL);
          EXPECT_EQ(grid.rank_of(std::vector{a, 0, c, d + 2 * turns}), MPI_PROC_NULL);
        }
      }
}

TEST(Cartesian, NeighborsAreStepsAway) {
  const Cartesian grid = make_cartesian(std::vector{3, 5}, std::vector{0, 1}, 15);
  for (int rank = 0; rank < 15; ++rank)
    for (int steps = -11; steps <= 11; ++steps) {
      // One step at a time, the walls of dimension 0 included.
      const int row = rank / 5 + steps, column = ((rank % 5 + steps) % 5 + 5) % 5;
      EXPECT_EQ(grid.neighbor(rank, 0, steps),
                row < 0 || row > 2 ? MPI_PROC_NULL : row * 5 + rank % 5);
      EXPECT_EQ(grid.neighbor(rank, 1, steps), rank / 5 * 5 + column);
    }
  EXPECT_EQ(grid.neighbor(14, 0, 0x7fffffff), MPI_PROC_NULL);
  EXPECT_EQ(grid.neighbor(14, 1, 0x7fffffff), 10 + (4 + 0x7fffffffLL) % 5);
  EXPECT_EQ(grid.neighbor(14, 1, -0x80000000LL), 10 + ((4 - 0x80000000LL) % 5 + 5) % 5);
}

TEST(Cartesian, OfNoDimensionsHasOneProcess) {
  const Cartesian grid = make_cartesian({}, {}, 4);
  EXPECT_EQ(cells(grid), 1);
  EXPECT_EQ(grid.rank_of({}), 0);
  EXPECT_TRUE(grid.coords_of(0).empty());
}

TEST(Cartesian, SubKeepsThePeriodsOfWhatRemains) {
  const Cartesian grid = make_cartesian(std::vector{2, 3, 4}, std::vector{1, 0, 1}, 24);
  const Cartesian part = grid.sub(std::vector{0, 1, 5});
  EXPECT_EQ(part.dims, (std::vector{3, 4}));
  EXPECT_EQ(part.periods, (std::vector{0, 1}));
}

TEST(Cartesian, RefusesWhatIsNoGrid) {
  const std::vector<int> periods(40, 0);
  const auto code = [&](std::vector<int> dims, int processes) {
    return code_of([&] { make_cartesian(dims, std::span(periods).first(dims.size()), processes); });
  };
  EXPECT_EQ(code({2, 2}, 4), MPI_SUCCESS);
  EXPECT_EQ(code({2, 2}, 3), MPI_ERR_DIMS);
  EXPECT_EQ(code({2, 0}, 4), MPI_ERR_DIMS);
  EXPECT_EQ(code({-2, -2}, 4), MPI_ERR_DIMS);
  EXPECT_EQ(code(std::vector<int>(32, 1 << 30), 4), MPI_ERR_DIMS);  // the product overflows
}

// ---- graphs ------------------------------------------------------------------------------------

TEST(Graph, NeighborsOfTheStandardsExample) {
  const int edges[] = {1, 3, 0, 3, 0, 2};
  const Graph graph = make_graph(std::vector{2, 3, 4, 6}, edges, 4);
  const std::vector<std::vector<int>> expected{{1, 3}, {0}, {3}, {0, 2}};
  for (int rank = 0; rank < 4; ++rank)
    EXPECT_TRUE(
        std::ranges::equal(graph.neighbors(rank), expected[static_cast<std::size_t>(rank)]));
}

TEST(Graph, MayHaveNodesAlone) {
  const int edges[] = {1, 1};  // a loop, twice: allowed
  const Graph graph = make_graph(std::vector{0, 2, 2}, edges, 3);
  EXPECT_EQ(graph.neighbors(0).size(), 0u);
  EXPECT_EQ(graph.neighbors(1).size(), 2u);
  EXPECT_EQ(graph.neighbors(2).size(), 0u);
  EXPECT_EQ(make_graph(std::vector{0, 0}, nullptr, 3).edges.size(), 0u);
}

TEST(Graph, RefusesWhatIsNoGraph) {
  const int edges[] = {1, 0, 2};
  const auto code = [&](std::vector<int> index, int processes) {
    return code_of([&] { make_graph(index, edges, processes); });
  };
  EXPECT_EQ(code({1, 2}, 2), MPI_SUCCESS);
  EXPECT_EQ(code({1, 2}, 1), MPI_ERR_ARG);  // more nodes than processes
  EXPECT_EQ(code({2, 1}, 2), MPI_ERR_ARG);  // index decreases
  EXPECT_EQ(code({-1, 2}, 2), MPI_ERR_ARG);
  EXPECT_EQ(code({1, 3}, 2), MPI_ERR_ARG);  // an edge to node 2
  EXPECT_EQ(code_of([] { make_graph(std::vector{1}, nullptr, 2); }), MPI_ERR_ARG);
}

}  // namespace
}  // namespace viaduct::mpi
