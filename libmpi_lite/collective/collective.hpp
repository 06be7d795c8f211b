// Collective operations (MPI 5.0, chapter 6) over point-to-point messages in the communicator's
// collective context. Each algorithm is written once, as a coroutine: the blocking function runs it
// to its end, the nonblocking one lets progress() continue it.
//
// Arguments have been checked. start_*() gives a request of kind collective; a blocking call waits
// for it. MPI_IN_PLACE as in the standard.
#pragma once

#include <functional>

#include "libmpi_lite/core/op.hpp"
#include "libmpi_lite/transfer/transfer.hpp"

namespace viaduct::mpi {

class MatchQueues;
class Unexpected;
struct Refusal;

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
// Another process has told so.
void hear_refusal(MatchQueues& queues, const Refusal& refusal);
// What a process that has waited for long asks another one: whether it has nothing more to send in
// that operation, which the asking one takes for what the tag says.
struct Question {
  std::uint32_t context, number;
  int tag;
};
// Calls visit(process, question) for each message that operations under way wait for; the longer
// one has waited, the less often.
void for_each_question(const MatchQueues& queues,
                       const std::function<void(int, const Question&)>& visit);
// Another process asks. Whether the answer is yes.
bool on_question(MatchQueues& queues, const Question& question, int process);
// Another process has answered yes, after all that it had to send.
void hear_ended(MatchQueues& queues, std::uint32_t number, int process);
// A message has arrived for which nothing is posted: ranks may disagree about what they are doing.
void judge_early_message(MatchQueues& queues, const Unexpected& message);

// Called by progress(): continues collectives whose messages have completed. Whether there were
// any.
bool continue_collectives();

}  // namespace viaduct::mpi
