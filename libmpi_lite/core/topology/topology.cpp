// Ranks and coordinates of grids, neighbours in graphs, and the search behind MPI_Dims_create.
// make_cartesian() and make_graph() check their arguments; all else relies on that.
#include "libmpi_lite/core/topology/topology.hpp"

#include <mpi.h>

#include <algorithm>
#include <string>

#include "libmpi_lite/core/error.hpp"

namespace viaduct::mpi {

// ---- grids -------------------------------------------------------------------------------------

Cartesian make_cartesian(std::span<const int> dims, std::span<const int> periods, int processes) {
  std::int64_t product = 1;
  for (const int d : dims) {
    if (d <= 0)
      throw Error(MPI_ERR_DIMS, "argument dims contains " + std::to_string(d) +
                                    "; each dimension has at least one process");
    product *= d;
    if (product > processes)
      throw Error(MPI_ERR_DIMS, "the grid in argument dims has more than the " +
                                    std::to_string(processes) + " processes of the communicator");
  }
  Cartesian grid{{dims.begin(), dims.end()}, {}};
  for (const int p : periods) grid.periods.push_back(p != 0);
  return grid;
}

// No overflow: make_cartesian() has compared the product with the number of processes.
int cells(const Cartesian& grid) {
  int product = 1;
  for (const int d : grid.dims) product *= d;
  return product;
}

// Row-major: the last coordinate varies fastest (section 8.2).
std::vector<int> Cartesian::coords_of(int rank) const {
  std::vector<int> coords(dims.size());
  for (std::size_t i = dims.size(); i-- > 0; rank /= dims[i]) coords[i] = rank % dims[i];
  return coords;
}

int Cartesian::rank_of(std::span<const int> coords) const {
  int rank = 0;
  for (std::size_t i = 0; i < dims.size(); ++i) {
    int at = coords[i];
    if (periods[i]) {
      at %= dims[i];
      if (at < 0) at += dims[i];
    } else if (at < 0 || at >= dims[i]) {
      return MPI_PROC_NULL;
    }
    rank = rank * dims[i] + at;
  }
  return rank;
}

int Cartesian::neighbor(int rank, int dimension, std::int64_t distance) const {
  std::vector<int> coords = coords_of(rank);
  const auto d = static_cast<std::size_t>(dimension);
  const std::int64_t at = coords[d] + distance;
  // First reduced, then narrowed: `at` may not fit an int. rank_of() wraps a negative remainder.
  if (periods[d])
    coords[d] = static_cast<int>(at % dims[d]);
  else if (at < 0 || at >= dims[d])
    return MPI_PROC_NULL;
  else
    coords[d] = static_cast<int>(at);
  return rank_of(coords);
}

Cartesian Cartesian::sub(std::span<const int> remain) const {
  Cartesian grid;
  for (std::size_t i = 0; i < dims.size(); ++i) {
    if (!remain[i]) continue;
    grid.dims.push_back(dims[i]);
    grid.periods.push_back(periods[i]);
  }
  return grid;
}

// ---- graphs ------------------------------------------------------------------------------------

Graph make_graph(std::span<const int> index, const int* edges, int processes) {
  const int nodes = static_cast<int>(index.size());
  if (nodes > processes)
    throw Error(MPI_ERR_ARG, "argument nnodes is " + std::to_string(nodes) +
                                 "; the communicator has " + std::to_string(processes) +
                                 " processes");
  int before = 0;
  for (const int i : index) {
    if (i < before)
      throw Error(MPI_ERR_ARG, "argument index contains " + std::to_string(i) + " after " +
                                   std::to_string(before) + "; it must not decrease");
    before = i;
  }
  if (before > 0 && !edges) throw Error(MPI_ERR_ARG, "argument edges is a null pointer");
  for (int i = 0; i < before; ++i)
    if (edges[i] < 0 || edges[i] >= nodes)
      throw Error(MPI_ERR_ARG, "argument edges contains " + std::to_string(edges[i]) +
                                   "; nodes go from 0 to " + std::to_string(nodes - 1));
  return {{index.begin(), index.end()}, {edges, edges + before}};
}

std::span<const int> Graph::neighbors(int rank) const {
  const auto r = static_cast<std::size_t>(rank);
  const int first = r == 0 ? 0 : index[r - 1];
  return std::span(edges).subspan(static_cast<std::size_t>(first),
                                  static_cast<std::size_t>(index[r] - first));
}

// ---- neighbours --------------------------------------------------------------------------------

Neighbors neighbors_of(const Topology& topology, int rank) {
  Neighbors neighbors;
  if (const auto* const grid = std::get_if<Cartesian>(&topology)) {
    for (int d = 0; d < static_cast<int>(grid->dims.size()); ++d)
      for (const int distance : {-1, 1})
        neighbors.sources.push_back(grid->neighbor(rank, d, distance));
    neighbors.destinations = neighbors.sources;
    neighbors.mirrored = true;
  } else if (const auto* const graph = std::get_if<Graph>(&topology)) {
    const std::span<const int> all = graph->neighbors(rank);
    neighbors.sources.assign(all.begin(), all.end());
    neighbors.destinations = neighbors.sources;
  } else if (const auto* const edges = std::get_if<DistGraph>(&topology)) {
    neighbors.sources = edges->sources;
    neighbors.destinations = edges->destinations;
  }
  return neighbors;
}

// ---- MPI_Dims_create ---------------------------------------------------------------------------

namespace {

// Finds the best way to write a number as a product of a given number of factors, largest first. A
// search through its divisors that skips what cannot be better than the best way so far.
class Factorization {
 public:
  Factorization(int number, std::size_t factors) : current_(factors) {
    for (std::int64_t d = 1; d * d <= number; ++d) {
      if (number % d != 0) continue;
      divisors_.push_back(static_cast<int>(d));
      if (d * d != number) divisors_.push_back(static_cast<int>(number / d));
    }
    std::sort(divisors_.begin(), divisors_.end());
    search(0, number);
  }
  const std::vector<int>& best() const { return best_; }

 private:
  // Whether the factors from position `at` on can have the product `left` if none of them is larger
  // than `largest`: an upper bound, so true may be wrong and false is certain.
  bool within(std::int64_t left, std::int64_t largest, std::size_t at) const {
    for (; at < current_.size() && left > 1; ++at) {
      if (largest == 1) return false;
      left = (left + largest - 1) / largest;
    }
    return left <= 1;
  }

  void search(std::size_t at, int left) {
    if (at == current_.size()) {
      if (left != 1) return;
      const int difference = current_.front() - current_.back();
      if (best_.empty() || difference < best_.front() - best_.back()) best_ = current_;
      return;
    }
    // The first factor grows from one try to the next. So among ways that are equally close, the
    // one found first has the smallest largest factor, and only a closer one replaces it.
    for (const int d : divisors_) {
      if (d > left || (at > 0 && d > current_[at - 1])) break;
      if (left % d != 0 || !within(left, d, at)) continue;
      // Later factors are at most d, so the difference will be at least this.
      if (at > 0 && !best_.empty() && current_[0] - d >= best_.front() - best_.back()) continue;
      current_[at] = d;
      search(at + 1, left / d);
    }
  }

  std::vector<int> divisors_, current_, best_;
};

}  // namespace

void dims_create(int nodes, std::span<int> dims) {
  std::int64_t fixed = 1;
  std::size_t open = 0;
  for (const int d : dims) {
    if (d < 0)
      throw Error(MPI_ERR_DIMS,
                  "argument dims contains " + std::to_string(d) + "; it must not be negative");
    if (d == 0)
      ++open;
    else
      fixed = std::min<std::int64_t>(fixed * d, std::int64_t{1} << 31);  // more than any `nodes`
  }
  if (nodes % fixed != 0 || (open == 0 && nodes != fixed))
    throw Error(MPI_ERR_DIMS, std::to_string(nodes) +
                                  " nodes cannot be spread over the dimensions that argument dims "
                                  "has fixed");
  if (open == 0) return;
  const Factorization factors(static_cast<int>(nodes / fixed), open);
  auto next = factors.best().begin();
  for (int& d : dims)
    if (d == 0) d = *next++;
}

}  // namespace viaduct::mpi
