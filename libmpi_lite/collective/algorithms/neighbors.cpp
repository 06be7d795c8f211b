// The collectives between neighbours in a topology (MPI 5.0, section 8.6): a message for each edge.
// All have the same algorithm: block i goes to destination i, and what comes from source i into
// block i. In MPI_Neighbor_allgather and its v-form all destinations get the same block.
#include "libmpi_lite/collective/buffers.hpp"
#include "libmpi_lite/collective/task.hpp"
#include "libmpi_lite/core/topology/topology.hpp"

namespace viaduct::mpi {
namespace {

struct Same {  // the block for each destination
  Items items;
  Items operator[](int) const { return items; }
};

// There may be several edges between two ranks. Their messages match in the order in which both
// ranks start them: the sender in the order of its blocks, the receiver in that of the sender's. In
// a grid a block that is sent in one direction of a dimension arrives in the block for the other
// one, which is its neighbour in the list (section 8.6: it matters where a dimension has one or two
// processes).
template <class From>
Task exchange(Collective& op, From from, Spread into) {
  const Neighbors neighbors = neighbors_of(op.comm().topology, op.comm().rank());
  Pending pending(op);
  for (int i = 0; i < static_cast<int>(neighbors.sources.size()); ++i) {
    const int block = neighbors.mirrored ? i ^ 1 : i;
    const int source = neighbors.sources[static_cast<std::size_t>(block)];
    if (source != MPI_PROC_NULL) pending.add(op.receive(source, into[block]));
  }
  for (int block = 0; block < static_cast<int>(neighbors.destinations.size()); ++block) {
    const int destination = neighbors.destinations[static_cast<std::size_t>(block)];
    if (destination != MPI_PROC_NULL) pending.add(op.send(destination, from[block]));
  }
  co_await pending;
}

template <class Into>
Ref<Request> start_gathering(Comm& comm, const Part& from, const Into& into) {
  auto op = make<Collective>(comm, CollectiveKind::neighbor);
  const Same mine{op->items(from)};
  return op->run(exchange(*op, mine, Spread(*op, into)));
}

template <class Many>
Ref<Request> start_exchange(Comm& comm, const Many& from, const Many& into) {
  auto op = make<Collective>(comm, CollectiveKind::neighbor);
  return op->run(exchange(*op, Spread(*op, from), Spread(*op, into)));
}

}  // namespace

Ref<Request> start_neighbor_allgather(Comm& comm, const Part& from, const Part& into) {
  return start_gathering(comm, from, into);
}
Ref<Request> start_neighbor_allgatherv(Comm& comm, const Part& from, const Parts& into) {
  return start_gathering(comm, from, into);
}
Ref<Request> start_neighbor_alltoall(Comm& comm, const Part& from, const Part& into) {
  return start_exchange(comm, from, into);
}
Ref<Request> start_neighbor_alltoallv(Comm& comm, const Parts& from, const Parts& into) {
  return start_exchange(comm, from, into);
}
Ref<Request> start_neighbor_alltoallw(Comm& comm, const MixedParts& from, const MixedParts& into) {
  return start_exchange(comm, from, into);
}

}  // namespace viaduct::mpi
