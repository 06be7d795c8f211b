// Collectives between the two groups of an intercommunicator (MPI 5.0, section 6.2.3). The
// start_*() functions of the other files use them in place of their own algorithms.
//
// All are flat: each rank exchanges messages with the ranks of the other group that have data for
// it or need data from it. Trees would need messages within a group, and an intercommunicator
// addresses only the other group.
#pragma once

#include "libmpi_lite/collective/algorithms/reduction.hpp"
#include "libmpi_lite/collective/task.hpp"

namespace viaduct::mpi {

Task inter_barrier(Collective& op);
// `root`: MPI_ROOT, MPI_PROC_NULL or a rank of the other group.
Task inter_broadcast(Collective& op, Items data, int root);
Task inter_gather(Collective& op, Items mine, Spread into, int root);
Task inter_scatter(Collective& op, Spread from, Items mine, int root);
Task inter_allgather(Collective& op, Items mine, Spread into);
Task inter_alltoall(Collective& op, Spread from, Spread into);
Task inter_reduce(Collective& op, Reduction reduction, const void* mine, void* into, int root);
Task inter_allreduce(Collective& op, Reduction reduction, const void* mine, void* into);
// `reduction` is over the whole vector, of which this rank gets `range`.
Task inter_reduce_scatter(Collective& op, Reduction reduction, const void* mine, Range range,
                          void* into);

}  // namespace viaduct::mpi
