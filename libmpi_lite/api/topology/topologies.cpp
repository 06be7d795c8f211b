// Process topologies (MPI 5.0, chapter 8): Cartesian grids and graphs of MPI-1. The arithmetic is
// in core/topology/topology.cpp. Distributed graphs are in dist_graphs.cpp.
//
// Choice: ranks are never reordered (`reorder` is ignored), so MPI_Cart_map and MPI_Graph_map give
// each process its own rank.
#include <algorithm>
#include <numeric>

#include "libmpi_lite/api/arguments/arguments.hpp"
#include "libmpi_lite/collective/construction.hpp"

using namespace viaduct::mpi;

namespace {

// The topology of that kind that the communicator has; MPI_ERR_TOPOLOGY if it has none or another
// one.
template <class Kind>
const Kind& check_topology(const Comm& comm) {
  const Kind* topology = std::get_if<Kind>(&comm.topology);
  if (!topology)
    fail(MPI_ERR_TOPOLOGY, "argument comm has no %s topology",
         std::is_same_v<Kind, Cartesian> ? "Cartesian" : "graph");
  return *topology;
}

Cartesian check_grid(const Comm& comm, int ndims, const int* dims, const int* periods) {
  check_intra(comm);
  if (ndims < 0) fail(MPI_ERR_DIMS, "argument ndims is %d; it must not be negative", ndims);
  return make_cartesian(check_array(dims, ndims, "dims", "ndims"),
                        check_array(periods, ndims, "periods", "ndims"), comm.size());
}

Graph check_graph(const Comm& comm, int nnodes, const int* index, const int* edges) {
  check_intra(comm);
  return make_graph(check_array(index, nnodes, "index", "nnodes"), edges, comm.size());
}

// A communicator of the first `processes` ranks in their order, with that topology. Collective over
// `comm`; the other processes get MPI_COMM_NULL.
MPI_Comm make_with_topology(Comm& comm, int processes, Topology topology) {
  std::vector<int> ranks(static_cast<std::size_t>(processes));
  std::iota(ranks.begin(), ranks.end(), 0);
  const Ref<Comm> made = create(comm, include(*comm.group(), ranks));
  if (made) made->topology = std::move(topology);
  return new_comm_handle(made);
}

// The rank that this process would have in a topology of so many processes.
int place(const Comm& comm, int processes) {
  return comm.rank() < processes ? comm.rank() : MPI_UNDEFINED;
}

// Copies as many elements as the program's array has room for (the `max` arguments).
void give(std::span<const int> from, std::span<int> to) {
  std::copy_n(from.begin(), std::min(from.size(), to.size()), to.begin());
}

}  // namespace

int PMPI_Topo_test(MPI_Comm comm, int* status) {
  return call("MPI_Topo_test", comm, [&](Comm& c) {
    constexpr int kKinds[] = {MPI_UNDEFINED, MPI_CART, MPI_GRAPH,
                              MPI_DIST_GRAPH};  // as in Topology
    *check_pointer(status, "status") = kKinds[c.topology.index()];
  });
}
VIADUCT_MPI(Topo_test);

int PMPI_Dims_create(int nnodes, int ndims, int dims[]) {
  return call("MPI_Dims_create", [&] {
    if (nnodes <= 0) fail(MPI_ERR_ARG, "argument nnodes is %d; it must be positive", nnodes);
    if (ndims < 0) fail(MPI_ERR_DIMS, "argument ndims is %d; it must not be negative", ndims);
    dims_create(nnodes, check_array(dims, ndims, "dims", "ndims"));
  });
}
VIADUCT_MPI(Dims_create);

// ---- grids -------------------------------------------------------------------------------------

// The grid may have fewer cells than `comm_old` has processes; the rest get MPI_COMM_NULL.
int PMPI_Cart_create(MPI_Comm comm_old, int ndims, const int dims[], const int periods[], int,
                     MPI_Comm* comm_cart) {
  return call_creating_comm("MPI_Cart_create", comm_old, comm_cart, [&](Comm& c) {
    check_pointer(comm_cart, "comm_cart");
    Cartesian grid = check_grid(c, ndims, dims, periods);
    const int processes = cells(grid);
    *comm_cart = make_with_topology(c, processes, std::move(grid));
  });
}
VIADUCT_MPI(Cart_create);

int PMPI_Cartdim_get(MPI_Comm comm, int* ndims) {
  return call("MPI_Cartdim_get", comm, [&](Comm& c) {
    *check_pointer(ndims, "ndims") = static_cast<int>(check_topology<Cartesian>(c).dims.size());
  });
}
VIADUCT_MPI(Cartdim_get);

int PMPI_Cart_get(MPI_Comm comm, int maxdims, int dims[], int periods[], int coords[]) {
  return call("MPI_Cart_get", comm, [&](Comm& c) {
    const Cartesian& grid = check_topology<Cartesian>(c);
    give(grid.dims, check_array(dims, maxdims, "dims", "maxdims"));
    give(grid.periods, check_array(periods, maxdims, "periods", "maxdims"));
    give(grid.coords_of(c.rank()), check_array(coords, maxdims, "coords", "maxdims"));
  });
}
VIADUCT_MPI(Cart_get);

// Coordinates outside of the grid are wrapped in periodic dimensions and an error in others.
int PMPI_Cart_rank(MPI_Comm comm, const int coords[], int* rank) {
  return call("MPI_Cart_rank", comm, [&](Comm& c) {
    const Cartesian& grid = check_topology<Cartesian>(c);
    const int ndims = static_cast<int>(grid.dims.size());
    check_pointer(rank, "rank");
    const int found = grid.rank_of(check_array(coords, ndims, "coords", "ndims"));
    if (found == MPI_PROC_NULL)
      fail(MPI_ERR_ARG, "argument coords lies outside of a dimension that is not periodic");
    *rank = found;
  });
}
VIADUCT_MPI(Cart_rank);

int PMPI_Cart_coords(MPI_Comm comm, int rank, int maxdims, int coords[]) {
  return call("MPI_Cart_coords", comm, [&](Comm& c) {
    const Cartesian& grid = check_topology<Cartesian>(c);
    check_rank(rank, c.size());
    give(grid.coords_of(rank), check_array(coords, maxdims, "coords", "maxdims"));
  });
}
VIADUCT_MPI(Cart_coords);

// Neighbours outside of a dimension that is not periodic are MPI_PROC_NULL.
int PMPI_Cart_shift(MPI_Comm comm, int direction, int disp, int* rank_source, int* rank_dest) {
  return call("MPI_Cart_shift", comm, [&](Comm& c) {
    const Cartesian& grid = check_topology<Cartesian>(c);
    if (direction < 0 || static_cast<std::size_t>(direction) >= grid.dims.size())
      fail(MPI_ERR_DIMS, "argument direction is %d; the grid has %zu dimensions", direction,
           grid.dims.size());
    check_pointer(rank_source, "rank_source");
    check_pointer(rank_dest, "rank_dest");
    // In 64 bits: the negative of the smallest int is no int.
    *rank_source = grid.neighbor(c.rank(), direction, -std::int64_t{disp});
    *rank_dest = grid.neighbor(c.rank(), direction, disp);
  });
}
VIADUCT_MPI(Cart_shift);

int PMPI_Cart_sub(MPI_Comm comm, const int remain_dims[], MPI_Comm* newcomm) {
  return call_creating_comm("MPI_Cart_sub", comm, newcomm, [&](Comm& c) {
    const Cartesian& grid = check_topology<Cartesian>(c);
    const int ndims = static_cast<int>(grid.dims.size());
    const std::span remain = check_array(remain_dims, ndims, "remain_dims", "ndims");
    check_pointer(newcomm, "newcomm");
    // Processes whose coordinates agree in all dropped dimensions form one subgrid: the position in
    // the dropped dimensions is the color. The position in the remaining dimensions is the key,
    // that is, the new rank.
    std::vector<int> dropped(remain.begin(), remain.end());
    for (int& d : dropped) d = !d;
    const auto position = [&](std::span<const int> chosen) {
      const std::vector<int> coords = grid.coords_of(c.rank());
      std::vector<int> at;
      for (std::size_t i = 0; i < coords.size(); ++i)
        if (chosen[i]) at.push_back(coords[i]);
      return grid.sub(chosen).rank_of(at);
    };
    const Ref<Comm> made = split(c, position(dropped), position(remain));
    made->topology = grid.sub(remain);
    *newcomm = new_comm_handle(made);
  });
}
VIADUCT_MPI(Cart_sub);

int PMPI_Cart_map(MPI_Comm comm, int ndims, const int dims[], const int periods[], int* newrank) {
  return call("MPI_Cart_map", comm, [&](Comm& c) {
    *check_pointer(newrank, "newrank") = place(c, cells(check_grid(c, ndims, dims, periods)));
  });
}
VIADUCT_MPI(Cart_map);

// ---- graphs ------------------------------------------------------------------------------------

int PMPI_Graph_create(MPI_Comm comm_old, int nnodes, const int index[], const int edges[], int,
                      MPI_Comm* comm_graph) {
  return call_creating_comm("MPI_Graph_create", comm_old, comm_graph, [&](Comm& c) {
    check_pointer(comm_graph, "comm_graph");
    *comm_graph = make_with_topology(c, nnodes, check_graph(c, nnodes, index, edges));
  });
}
VIADUCT_MPI(Graph_create);

int PMPI_Graphdims_get(MPI_Comm comm, int* nnodes, int* nedges) {
  return call("MPI_Graphdims_get", comm, [&](Comm& c) {
    const Graph& graph = check_topology<Graph>(c);
    *check_pointer(nnodes, "nnodes") = static_cast<int>(graph.index.size());
    *check_pointer(nedges, "nedges") = static_cast<int>(graph.edges.size());
  });
}
VIADUCT_MPI(Graphdims_get);

int PMPI_Graph_get(MPI_Comm comm, int maxindex, int maxedges, int index[], int edges[]) {
  return call("MPI_Graph_get", comm, [&](Comm& c) {
    const Graph& graph = check_topology<Graph>(c);
    give(graph.index, check_array(index, maxindex, "index", "maxindex"));
    give(graph.edges, check_array(edges, maxedges, "edges", "maxedges"));
  });
}
VIADUCT_MPI(Graph_get);

int PMPI_Graph_neighbors_count(MPI_Comm comm, int rank, int* nneighbors) {
  return call("MPI_Graph_neighbors_count", comm, [&](Comm& c) {
    const Graph& graph = check_topology<Graph>(c);
    *check_pointer(nneighbors, "nneighbors") =
        static_cast<int>(graph.neighbors(check_rank(rank, c.size())).size());
  });
}
VIADUCT_MPI(Graph_neighbors_count);

int PMPI_Graph_neighbors(MPI_Comm comm, int rank, int maxneighbors, int neighbors[]) {
  return call("MPI_Graph_neighbors", comm, [&](Comm& c) {
    const Graph& graph = check_topology<Graph>(c);
    give(graph.neighbors(check_rank(rank, c.size())),
         check_array(neighbors, maxneighbors, "neighbors", "maxneighbors"));
  });
}
VIADUCT_MPI(Graph_neighbors);

int PMPI_Graph_map(MPI_Comm comm, int nnodes, const int index[], const int edges[], int* newrank) {
  return call("MPI_Graph_map", comm, [&](Comm& c) {
    check_graph(c, nnodes, index, edges);
    *check_pointer(newrank, "newrank") = place(c, nnodes);
  });
}
VIADUCT_MPI(Graph_map);
