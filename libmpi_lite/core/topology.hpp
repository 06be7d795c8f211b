// Process topologies (MPI 5.0, chapter 8): a grid or a graph over the ranks of a communicator.
#pragma once

#include <cstdint>
#include <span>
#include <variant>
#include <vector>

namespace viaduct::mpi {

struct Cartesian {
  std::vector<int> dims;
  std::vector<int> periods;  // 0 or 1

  std::vector<int> coords_of(int rank) const;
  // Coordinates in periodic dimensions may lie outside. MPI_PROC_NULL if others do.
  int rank_of(std::span<const int> coords) const;
  // Who is `distance` steps further in that dimension, or MPI_PROC_NULL.
  int neighbor(int rank, int dimension, std::int64_t distance) const;
  // The grid of the remaining dimensions.
  Cartesian sub(std::span<const int> remain) const;
};

// Throw Error for what is not a grid or graph of at most `processes` ranks (section 8.5).
Cartesian make_cartesian(std::span<const int> dims, std::span<const int> periods, int processes);
int cells(const Cartesian& grid);

struct Graph {
  std::vector<int> index;  // as MPI_Graph_create has it: cumulated degrees
  std::vector<int> edges;

  std::span<const int> neighbors(int rank) const;
};

Graph make_graph(std::span<const int> index, const int* edges, int processes);

// MPI_Dims_create: fills the zeros of `dims` so that the product is `nodes`, with numbers as close
// to each other as possible, largest first: among all ways the one with the smallest difference
// between the largest and the smallest, and then with the smallest largest one. Throws Error if
// there is none.
void dims_create(int nodes, std::span<int> dims);

using Topology = std::variant<std::monostate, Cartesian, Graph>;

}  // namespace viaduct::mpi
