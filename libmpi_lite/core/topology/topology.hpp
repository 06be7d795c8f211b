// Process topologies (MPI 5.0, chapter 8): a grid, a graph or a distributed graph over the ranks of
// a communicator. Plain values, part of the communicator. Ranks are never reordered: rank i of the
// communicator is rank i of the topology.
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

// A distributed graph: each rank knows its own edges only.
struct DistGraph {
  std::vector<int> sources, source_weights;  // the ranks from which edges lead to this one
  std::vector<int> destinations, destination_weights;
  bool weighted = false;  // otherwise the weights are 1
};

using Topology = std::variant<std::monostate, Cartesian, Graph, DistGraph>;  // monostate: none

// With whom a rank exchanges data in collectives between neighbours (section 8.6), in the order of
// their blocks; MPI_PROC_NULL: with nobody.
struct Neighbors {
  std::vector<int> sources, destinations;
  // In a grid: the two neighbours of each dimension follow one another, and what is sent to one of
  // them arrives there as from the other one.
  bool mirrored = false;
};
Neighbors neighbors_of(const Topology& topology, int rank);

}  // namespace viaduct::mpi
