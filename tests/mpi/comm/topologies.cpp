// Grids and graphs of processes.
#include "comm_checks.hpp"

#include <algorithm>

using namespace job;

namespace {

int kind_of(MPI_Comm comm) {
  int kind = -1;
  MPI_Topo_test(comm, &kind);
  return kind;
}

// Everybody sends along one dimension; walls are MPI_PROC_NULL.
void check_shift(MPI_Comm cart, int direction, int disp) {
  int source, dest, in = -5, out = rank_in(cart);
  MPI_Cart_shift(cart, direction, disp, &source, &dest);
  MPI_Status status;
  MPI_Sendrecv(&out, 1, MPI_INT, dest, 0, &in, 1, MPI_INT, source, 0, cart, &status);
  CHECK_EQ(status.MPI_SOURCE, source);
  CHECK_EQ(in, source == MPI_PROC_NULL ? -5 : source);
}

void grids() {
  section("a grid of all processes");
  int dims[2] = {0, 0}, periods[2] = {0, 1};
  MPI_Dims_create(size(), 2, dims);
  CHECK_EQ(dims[0] * dims[1], size());
  CHECK(dims[0] >= dims[1]);
  MPI_Comm cart;
  MPI_Cart_create(MPI_COMM_WORLD, 2, dims, periods, 1, &cart);
  CHECK_EQ(kind_of(cart), MPI_CART);
  CHECK_EQ(kind_of(MPI_COMM_WORLD), MPI_UNDEFINED);
  int ndims, got_dims[3] = {-1, -1, -1}, got_periods[3] = {-1, -1, -1}, coords[3] = {-1, -1, -1};
  MPI_Cartdim_get(cart, &ndims);
  CHECK_EQ(ndims, 2);
  MPI_Cart_get(cart, 2, got_dims, got_periods, coords);
  for (int i = 0; i < 2; ++i) {
    CHECK_EQ(got_dims[i], dims[i]);
    CHECK_EQ(got_periods[i], periods[i]);
  }
  CHECK_EQ(rank_in(cart), coords[0] * dims[1] + coords[1]);
  for (int r = 0; r < size(); ++r) {
    int theirs[2], back;
    MPI_Cart_coords(cart, r, 2, theirs);
    CHECK_EQ(r, theirs[0] * dims[1] + theirs[1]);
    theirs[1] += 3 * dims[1];  // round the ring
    MPI_Cart_rank(cart, theirs, &back);
    CHECK_EQ(back, r);
    theirs[1] -= 7 * dims[1];
    MPI_Cart_rank(cart, theirs, &back);
    CHECK_EQ(back, r);
  }
  for (const int disp : {1, -1, 2, 0, 100})
    for (const int direction : {0, 1}) check_shift(cart, direction, disp);
  int source, dest;
  MPI_Cart_shift(cart, 0, 1, &source, &dest);
  CHECK_EQ(source == MPI_PROC_NULL, coords[0] == 0);
  CHECK_EQ(dest == MPI_PROC_NULL, coords[0] == dims[0] - 1);
  crossfire(cart);

  // A duplicate keeps the topology, others do not.
  MPI_Comm other;
  MPI_Comm_dup(cart, &other);
  CHECK_EQ(kind_of(other), MPI_CART);
  check_shift(other, 1, 1);
  free_comm(other);
  MPI_Comm_split(cart, 0, 0, &other);
  CHECK_EQ(kind_of(other), MPI_UNDEFINED);
  free_comm(other);
  free_comm(cart);
}

void parts_of_grids() {
  section("rows and columns of a grid");
  int dims[3] = {2, 0, 1}, periods[3] = {1, 0, 1};
  if (size() % 2) dims[0] = 1;
  MPI_Dims_create(size(), 3, dims);
  MPI_Comm cart, part;
  MPI_Cart_create(MPI_COMM_WORLD, 3, dims, periods, 0, &cart);
  int coords[3];
  MPI_Cart_coords(cart, rank_in(cart), 3, coords);
  for (int mask = 0; mask < 8; ++mask) {
    const int remain[3] = {mask & 1, (mask >> 1) & 1, (mask >> 2) & 1};
    MPI_Cart_sub(cart, remain, &part);
#ifdef MPICH  // gives a part without dimensions to process 0 only
    if (mask == 0) continue;
#endif
    int ndims, processes = 1, at = 0, kept = 0, got_dims[3], got_periods[3], got_coords[3];
    MPI_Cartdim_get(part, &ndims);
    MPI_Cart_get(part, ndims, got_dims, got_periods, got_coords);
    for (int i = 0; i < 3; ++i) {
      if (!remain[i]) continue;
      CHECK_EQ(got_dims[kept], dims[i]);
      CHECK_EQ(got_periods[kept], periods[i]);
      CHECK_EQ(got_coords[kept], coords[i]);
      ++kept;
      processes *= dims[i];
      at = at * dims[i] + coords[i];
    }
    CHECK_EQ(ndims, kept);
    CHECK_EQ(size_of(part), processes);
    CHECK_EQ(rank_in(part), at);
    CHECK_EQ(kind_of(part), MPI_CART);
    crossfire(part);
    free_comm(part);
  }
  free_comm(cart);
}

void small_grids() {
  section("grids smaller than the communicator");
  const int one = 1, wrap = 1;
  MPI_Comm cart;
  MPI_Cart_create(MPI_COMM_WORLD, 1, &one, &wrap, 0, &cart);
  CHECK_EQ(cart != MPI_COMM_NULL, rank() == 0);
  if (cart != MPI_COMM_NULL) check_shift(cart, 0, 5);  // its own neighbor
  free_comm(cart);
  // No dimensions: one process.
  MPI_Cart_create(MPI_COMM_WORLD, 0, nullptr, nullptr, 0, &cart);
  CHECK_EQ(cart != MPI_COMM_NULL, rank() == 0);
  if (cart != MPI_COMM_NULL) {
    int ndims = -1, zero = -1;
    MPI_Cartdim_get(cart, &ndims);
    CHECK_EQ(ndims, 0);
    MPI_Cart_rank(cart, nullptr, &zero);
    CHECK_EQ(zero, 0);
  }
  free_comm(cart);
#ifndef OPEN_MPI  // which gives every process its own rank
  int where = -1;
  const int most = size() - 1;
  if (most > 0) {
    MPI_Cart_map(MPI_COMM_WORLD, 1, &most, &wrap, &where);
    CHECK(where == MPI_UNDEFINED || (where >= 0 && where < most));
  }
#endif
}

// A ring with a tail: node i has i % 3 neighbors more than the next one; process 0 alone if there
// is only one.
void graphs() {
  section("graphs");
  std::vector<int> index, edges;
  for (int r = 0; r < size(); ++r) {
    for (int k = 0; k < 1 + r % 3; ++k) edges.push_back((r + k + 1) % size());
    index.push_back(static_cast<int>(edges.size()));
  }
  MPI_Comm graph, dup;
  MPI_Graph_create(MPI_COMM_WORLD, size(), index.data(), edges.data(), 0, &graph);
  MPI_Comm_dup(graph, &dup);
  free_comm(graph);
  CHECK_EQ(kind_of(dup), MPI_GRAPH);
  int nodes = -1, nedges = -1;
  MPI_Graphdims_get(dup, &nodes, &nedges);
  CHECK_EQ(nodes, size());
  CHECK_EQ(nedges, static_cast<int>(edges.size()));
  std::vector<int> got_index(index.size()), got_edges(edges.size());
  MPI_Graph_get(dup, nodes, nedges, got_index.data(), got_edges.data());
  CHECK(got_index == index);
  CHECK(got_edges == edges);
  for (int r = 0; r < size(); ++r) {
    int count = -1;
    MPI_Graph_neighbors_count(dup, r, &count);
    CHECK_EQ(count, 1 + r % 3);
    std::vector<int> neighbors(count);
    MPI_Graph_neighbors(dup, r, count, neighbors.data());
    for (int k = 0; k < count; ++k) CHECK_EQ(neighbors[k], (r + k + 1) % size());
  }
  crossfire(dup);
  free_comm(dup);

  // Of a part of the processes.
  const int alone[1] = {0};
  MPI_Graph_create(MPI_COMM_WORLD, 1, alone, alone, 0, &graph);
  CHECK_EQ(graph != MPI_COMM_NULL, rank() == 0);
  free_comm(graph);
  MPI_Graph_create(MPI_COMM_WORLD, 0, alone, alone, 0, &graph);
  CHECK(graph == MPI_COMM_NULL);
#ifndef OPEN_MPI
  int where = -1;
  MPI_Graph_map(MPI_COMM_WORLD, 1, alone, alone, &where);
  CHECK(where == MPI_UNDEFINED || where == 0);
#endif
}

}  // namespace

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  grids();
  parts_of_grids();
  small_grids();
  graphs();
  return report();
}
