// Distributed graphs (MPI 5.0, sections 8.5.4 and 8.5.5): each process says which edges it knows,
// and learns those that lead to it and from it.
//
// Choices: ranks are never reordered, and the info object has no hint that the library knows. Edges
// between the same two ranks keep the order of the ranks that have named them, and of their lists.
#include <algorithm>
#include <array>

#include "libmpi_lite/api/arguments/arguments.hpp"
#include "libmpi_lite/collective/collective.hpp"
#include "libmpi_lite/collective/construction.hpp"

using namespace viaduct::mpi;

namespace {

// An edge as it goes to each of its two ends, as MPI_INTs.
struct EdgeEnd {
  int leads_here;  // or away from here
  int other;       // the rank at the other end
  int weight;
};
constexpr int kIntsOfEnd = sizeof(EdgeEnd) / sizeof(int);

std::span<const int> check_ranks(const Comm& comm, const int* ranks, int n, const char* argument,
                                 const char* count_argument) {
  const std::span all = check_array(ranks, n, argument, count_argument);
  for (const int rank : all)
    if (rank < 0 || rank >= comm.size())
      fail(MPI_ERR_ARG, "argument %s contains %d; ranks go from 0 to %d", argument, rank,
           comm.size() - 1);
  return all;
}

// The weights of `n` edges. MPI_UNWEIGHTED gives none; MPI_WEIGHTS_EMPTY stands for no edges.
std::span<const int> check_weights(const int* weights, std::size_t n, const char* argument) {
  if (weights == MPI_UNWEIGHTED || (weights == MPI_WEIGHTS_EMPTY && n == 0)) return {};
  if (weights == MPI_WEIGHTS_EMPTY)
    fail(MPI_ERR_ARG, "argument %s is MPI_WEIGHTS_EMPTY, and there are %zu edges", argument, n);
  const std::span all = check_array(weights, static_cast<int>(n), argument, "degree");
  for (const int weight : all)
    if (weight < 0)
      fail(MPI_ERR_ARG, "argument %s contains %d; weights are not negative", argument, weight);
  return all;
}

std::vector<int> weights_of(std::span<const int> weights, std::size_t n) {
  return weights.empty() ? std::vector<int>(n, 1)
                         : std::vector<int>(weights.begin(), weights.end());
}

MPI_Comm make_graph_comm(Comm& comm, DistGraph graph) {
  const Ref<Comm> made = create(comm, comm.group());
  made->topology = std::move(graph);
  return new_comm_handle(made);
}

// Sends each end of an edge to the rank at that end; `ends` are by that rank. Returns those that
// have come to this one, in the order of the ranks that have sent them.
std::vector<EdgeEnd> exchange_ends(Comm& comm, const std::vector<std::vector<EdgeEnd>>& ends) {
  const auto ranks = static_cast<std::size_t>(comm.size());
  std::vector<int> out(ranks), in(ranks), out_at(ranks), in_at(ranks);
  std::vector<EdgeEnd> sent;
  for (std::size_t rank = 0; rank < ranks; ++rank) {
    out[rank] = static_cast<int>(ends[rank].size()) * kIntsOfEnd;
    out_at[rank] = static_cast<int>(sent.size()) * kIntsOfEnd;
    sent.insert(sent.end(), ends[rank].begin(), ends[rank].end());
  }
  finish_collective(*start_alltoall(comm, {out.data(), 1, MPI_INT}, {in.data(), 1, MPI_INT}));
  int total = 0;
  for (std::size_t rank = 0; rank < ranks; ++rank) {
    in_at[rank] = total;
    total += in[rank];
  }
  std::vector<EdgeEnd> received(static_cast<std::size_t>(total / kIntsOfEnd));
  finish_collective(*start_alltoallv(comm, {sent.data(), out.data(), out_at.data(), MPI_INT},
                                     {received.data(), in.data(), in_at.data(), MPI_INT}));
  return received;
}

// Whether edges have weights: the same in all processes, or nobody knows the weights of some edges.
bool agree_on_weights(Comm& comm, bool weighted) {
  const int mine[] = {weighted, !weighted};
  std::array<int, 2> any{};
  finish_collective(*start_allreduce(comm, {mine, 2, MPI_INT}, any.data(), check_op(MPI_MAX)));
  if (any[0] && any[1])
    fail(MPI_ERR_ARG, "argument weights is MPI_UNWEIGHTED in some processes and not in others");
  return any[0] != 0;
}

const DistGraph& check_dist_graph(const Comm& comm) {
  const auto* const graph = std::get_if<DistGraph>(&comm.topology);
  if (!graph) fail(MPI_ERR_TOPOLOGY, "argument comm has no distributed graph");
  return *graph;
}

// Copies as many elements as the program's array has room for.
void give(const std::vector<int>& from, std::span<int> to) {
  std::copy_n(from.begin(), std::min(from.size(), to.size()), to.begin());
}
void give_weights(const std::vector<int>& from, int* to, int room, const char* argument) {
  if (to != MPI_UNWEIGHTED && to != MPI_WEIGHTS_EMPTY)
    give(from, check_array(to, room, argument, "maxdegree"));
}

}  // namespace

int PMPI_Dist_graph_create_adjacent(MPI_Comm comm_old, int indegree, const int sources[],
                                    const int sourceweights[], int outdegree,
                                    const int destinations[], const int destweights[],
                                    MPI_Info info, int, MPI_Comm* comm_dist_graph) {
  return call_creating_comm(
      "MPI_Dist_graph_create_adjacent", comm_old, comm_dist_graph, [&](Comm& c) {
        check_intra(c, "comm_old");
        check_pointer(comm_dist_graph, "comm_dist_graph");
        check_hints(info);
        const std::span from = check_ranks(c, sources, indegree, "sources", "indegree");
        const std::span to = check_ranks(c, destinations, outdegree, "destinations", "outdegree");
        const std::span in = check_weights(sourceweights, from.size(), "sourceweights");
        const std::span out = check_weights(destweights, to.size(), "destweights");
        *comm_dist_graph =
            make_graph_comm(c, {{from.begin(), from.end()},
                                weights_of(in, from.size()),
                                {to.begin(), to.end()},
                                weights_of(out, to.size()),
                                sourceweights != MPI_UNWEIGHTED && destweights != MPI_UNWEIGHTED});
      });
}
VIADUCT_MPI(Dist_graph_create_adjacent);

int PMPI_Dist_graph_create(MPI_Comm comm_old, int n, const int sources[], const int degrees[],
                           const int destinations[], const int weights[], MPI_Info info, int,
                           MPI_Comm* comm_dist_graph) {
  return call_creating_comm("MPI_Dist_graph_create", comm_old, comm_dist_graph, [&](Comm& c) {
    check_intra(c, "comm_old");
    check_pointer(comm_dist_graph, "comm_dist_graph");
    check_hints(info);
    const std::span from = check_ranks(c, sources, n, "sources", "n");
    int edges = 0;
    for (const int degree : check_array(degrees, n, "degrees", "n"))
      if (degree < 0 || __builtin_add_overflow(edges, degree, &edges))
        fail(MPI_ERR_ARG, "argument degrees contains %d, or has too large a sum", degree);
    const std::span to = check_ranks(c, destinations, edges, "destinations", "degrees");
    const std::vector<int> weight =
        weights_of(check_weights(weights, to.size(), "weights"), to.size());

    std::vector<std::vector<EdgeEnd>> ends(static_cast<std::size_t>(c.size()));
    std::size_t edge = 0;
    for (std::size_t node = 0; node < from.size(); ++node)
      for (int i = 0; i < degrees[node]; ++i, ++edge) {
        ends[static_cast<std::size_t>(from[node])].push_back({0, to[edge], weight[edge]});
        ends[static_cast<std::size_t>(to[edge])].push_back({1, from[node], weight[edge]});
      }
    DistGraph graph;
    graph.weighted = agree_on_weights(c, weights != MPI_UNWEIGHTED);
    for (const EdgeEnd& end : exchange_ends(c, ends)) {
      (end.leads_here ? graph.sources : graph.destinations).push_back(end.other);
      (end.leads_here ? graph.source_weights : graph.destination_weights).push_back(end.weight);
    }
    *comm_dist_graph = make_graph_comm(c, std::move(graph));
  });
}
VIADUCT_MPI(Dist_graph_create);

int PMPI_Dist_graph_neighbors_count(MPI_Comm comm, int* indegree, int* outdegree, int* weighted) {
  return call("MPI_Dist_graph_neighbors_count", comm, [&](Comm& c) {
    const DistGraph& graph = check_dist_graph(c);
    *check_pointer(indegree, "indegree") = static_cast<int>(graph.sources.size());
    *check_pointer(outdegree, "outdegree") = static_cast<int>(graph.destinations.size());
    *check_pointer(weighted, "weighted") = graph.weighted;
  });
}
VIADUCT_MPI(Dist_graph_neighbors_count);

// Arrays of weights that are MPI_UNWEIGHTED are left out.
int PMPI_Dist_graph_neighbors(MPI_Comm comm, int maxindegree, int sources[], int sourceweights[],
                              int maxoutdegree, int destinations[], int destweights[]) {
  return call("MPI_Dist_graph_neighbors", comm, [&](Comm& c) {
    const DistGraph& graph = check_dist_graph(c);
    give(graph.sources, check_array(sources, maxindegree, "sources", "maxindegree"));
    give(graph.destinations,
         check_array(destinations, maxoutdegree, "destinations", "maxoutdegree"));
    give_weights(graph.source_weights, sourceweights, maxindegree, "sourceweights");
    give_weights(graph.destination_weights, destweights, maxoutdegree, "destweights");
  });
}
VIADUCT_MPI(Dist_graph_neighbors);
