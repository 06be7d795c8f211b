// Collective operations (MPI 5.0, chapter 6) over point-to-point messages in the communicator's
// collective context. Each algorithm is written once, as a coroutine: the blocking function runs it
// to its end, the nonblocking one lets progress() continue it.
//
// Arguments have been checked. start_*() gives a request of kind collective; a blocking call waits
// for it. MPI_IN_PLACE as in the standard.
#pragma once

#include "libmpi_lite/core/op.hpp"
#include "libmpi_lite/transfer/collective_sink.hpp"
#include "libmpi_lite/transfer/transfer.hpp"

namespace viaduct::mpi {

struct Part {  // a buffer argument of a collective
  const void* data;
  MPI_Count count;
  MPI_Datatype type;
};
struct Parts {  // one with a count and a displacement for each rank (in extents of `type`)
  const void* data;
  const int* counts;
  const int* displacements;
  MPI_Datatype type;
};
struct MixedParts {  // MPI_Alltoallw: displacements in bytes
  const void* data;
  const int* counts;
  const int* displacements;
  const MPI_Datatype* types;
};

// The arrays are not copied: the standard lets the user change them only after completion (section
// 6.12).
Ref<Request> start_barrier(Comm& comm);
// MPI_Finalize's: collectives that failed at one process only may have left the ranks out of step.
Ref<Request> start_last_barrier(Comm& world);
Ref<Request> start_broadcast(Comm& comm, const Part& data, int root);
Ref<Request> start_gather(Comm& comm, const Part& from, const Part& into, int root);
Ref<Request> start_gatherv(Comm& comm, const Part& from, const Parts& into, int root);
Ref<Request> start_scatter(Comm& comm, const Part& from, const Part& into, int root);
Ref<Request> start_scatterv(Comm& comm, const Parts& from, const Part& into, int root);
Ref<Request> start_allgather(Comm& comm, const Part& from, const Part& into);
Ref<Request> start_allgatherv(Comm& comm, const Part& from, const Parts& into);
Ref<Request> start_alltoall(Comm& comm, const Part& from, const Part& into);
Ref<Request> start_alltoallv(Comm& comm, const Parts& from, const Parts& into);
Ref<Request> start_alltoallw(Comm& comm, const MixedParts& from, const MixedParts& into);
Ref<Request> start_reduce(Comm& comm, const Part& from, void* into, const Op& op, int root);
Ref<Request> start_allreduce(Comm& comm, const Part& from, void* into, const Op& op);
Ref<Request> start_reduce_scatter(Comm& comm, const void* from, void* into, const int* counts,
                                  MPI_Datatype type, const Op& op);
Ref<Request> start_reduce_scatter_block(Comm& comm, const Part& from, void* into, const Op& op);
Ref<Request> start_scan(Comm& comm, const Part& from, void* into, const Op& op);
Ref<Request> start_exscan(Comm& comm, const Part& from, void* into, const Op& op);

// Waits for one of them; throws Error with what went wrong.
void finish_collective(const Request& collective);

// ---- what goes wrong at one rank, and others have to hear of ------------------------------------

// Takes the place of the communicator's next operation, which cannot be started here: it fails with
// that error at all ranks that have not completed it.
void refuse_next_collective(Comm& comm, int error);
// What transfer/ tells collective operations.
CollectiveSink& collective_sink();

}  // namespace viaduct::mpi
