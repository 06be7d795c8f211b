// Collective operations (MPI 5.0, chapter 6) over point-to-point messages in the communicator's
// collective context. This is the interface of collective/ for api/ and runtime/. Each algorithm is
// written once, as a coroutine (task.hpp): a blocking call runs it to its end (BlockingCall), a
// nonblocking one lets progress() continue it.
//
// start_*() runs the algorithm up to its first wait, and returns a request of kind collective that
// may be complete already. An error is in Request::error, as other ranks may still need this one.
// The caller has checked the arguments; buffers, and MPI_IN_PLACE, are as in the standard. They
// must stay valid until the request is complete; types, operations and the communicator are held.
//
// Threads: one thread at a time is in the library.
#pragma once

#include <utility>

#include "libmpi_lite/core/data/counts.hpp"
#include "libmpi_lite/core/data/op.hpp"
#include "libmpi_lite/transfer/sinks/collective_sink.hpp"
#include "libmpi_lite/transfer/transfer.hpp"

namespace viaduct::mpi {

struct Part {  // a buffer argument of a collective
  const void* data;
  MPI_Count count;
  MPI_Datatype type;
};
struct Parts {  // one with a count and a displacement for each rank (in extents of `type`)
  const void* data;
  Counts counts;
  Counts displacements;
  MPI_Datatype type;
};
struct MixedParts {  // one with a type for each rank, too: displacements in bytes
  const void* data;
  Counts counts;
  Counts displacements;
  const MPI_Datatype* types;
  int blocks;  // how many there are
};

// Arrays of counts, displacements and types are not copied: the standard lets the program change
// them only after completion (section 6.12).
Ref<Request> start_barrier(Comm& comm);
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
Ref<Request> start_reduce_scatter(Comm& comm, const void* from, void* into, Counts counts,
                                  MPI_Datatype type, const Op& op);
Ref<Request> start_reduce_scatter_block(Comm& comm, const Part& from, void* into, const Op& op);
Ref<Request> start_scan(Comm& comm, const Part& from, void* into, const Op& op);
Ref<Request> start_exscan(Comm& comm, const Part& from, void* into, const Op& op);
// Between the neighbours of each rank in the communicator's topology (core/topology/topology.hpp):
// a block for each, in the order of neighbors_of().
Ref<Request> start_neighbor_allgather(Comm& comm, const Part& from, const Part& into);
Ref<Request> start_neighbor_allgatherv(Comm& comm, const Part& from, const Parts& into);
Ref<Request> start_neighbor_alltoall(Comm& comm, const Part& from, const Part& into);
Ref<Request> start_neighbor_alltoallv(Comm& comm, const Parts& from, const Parts& into);
Ref<Request> start_neighbor_alltoallw(Comm& comm, const MixedParts& from, const MixedParts& into);

// Waits until the operation is complete; throws Error with what went wrong.
void finish_collective(const Request& collective);

// While one of these exists, the next start_*() runs its operation to the end, and returns a
// request that is complete. That takes fewer instructions than to be continued by progress().
class BlockingCall {
 public:
  BlockingCall() { next_blocks_ = true; }
  ~BlockingCall() { next_blocks_ = false; }
  BlockingCall(const BlockingCall&) = delete;
  BlockingCall& operator=(const BlockingCall&) = delete;
  // For the operation that starts: whether it is that one.
  static bool take() { return std::exchange(next_blocks_, false); }

 private:
  static inline bool next_blocks_ = false;
};

// ---- failures at one rank that concern the others ----------------------------------------------

// Takes the number of the communicator's next operation, which this rank cannot start because of
// `error` (a class). The operation fails with that error at all ranks that have not completed it.
void refuse_next_collective(Comm& comm, int error);
// The receiver of the events that transfer/ reports to collectives. Lives as long as the process.
CollectiveSink& collective_sink();

}  // namespace viaduct::mpi
