// Process topologies (MPI 5.0, chapter 8): a grid or a graph over the ranks of a communicator.
// Plain values, part of the communicator. Ranks are never reordered: rank i of the communicator is
// rank i of the topology.
#pragma once

#include <cstdint>
#include <span>
#include <variant>
#include <vector>

namespace viaduct::mpi {

struct Cartesian {
  std::vector<int> dims;     // processes in each dimension
  std::vector<int> periods;  // 0 or 1: the dimension is a ring

  std::vector<int> coords_of(int rank) const;
  // The rank at these coordinates. In periodic dimensions coordinates may lie outside and are
  // wrapped; if others do, the result is MPI_PROC_NULL.
  int rank_of(std::span<const int> coords) const;
  // The rank `distance` steps further in that dimension, or MPI_PROC_NULL.
  int neighbor(int rank, int dimension, std::int64_t distance) const;
  // The grid of the dimensions whose `remain` is not 0.
  Cartesian sub(std::span<const int> remain) const;
};

// Throws Error if this is not a grid of at most `processes` ranks (section 8.5).
Cartesian make_cartesian(std::span<const int> dims, std::span<const int> periods, int processes);
// How many ranks the grid has.
int cells(const Cartesian& grid);

struct Graph {
  std::vector<int> index;  // as MPI_Graph_create has it: degrees of the ranks, summed up
  std::vector<int> edges;  // the neighbours of rank 0, then those of rank 1, ...

  std::span<const int> neighbors(int rank) const;
};

// `index` has one entry for each node; `edges` as many as the last of these says. Throws Error if
// this is not a graph of at most `processes` ranks.
Graph make_graph(std::span<const int> index, const int* edges, int processes);

// MPI_Dims_create: fills in the zeros of `dims` so that the product of all is `nodes`. The numbers
// are as close to each other as possible, largest first: the smallest difference between the
// largest and the smallest, and among those ways the smallest largest number. Throws Error if there
// is no way.
void dims_create(int nodes, std::span<int> dims);

using Topology = std::variant<std::monostate, Cartesian, Graph>;  // monostate: none

}  // namespace viaduct::mpi
