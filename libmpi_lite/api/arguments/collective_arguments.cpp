// The checks of collective_arguments.hpp. Each begin_*() decides which arguments are significant in
// this process, checks those, refuses send and receive buffers that share memory, and starts the
// operation. Intercommunicators (section 6.2.3) differ in what a root is and in that nothing stays
// in place.
#include "libmpi_lite/api/arguments/collective_arguments.hpp"

#include <algorithm>
#include <climits>

#include "libmpi_lite/api/arguments/aliasing.hpp"
#include "libmpi_lite/api/arguments/arguments.hpp"
#include "libmpi_lite/collective/collective.hpp"

namespace viaduct::mpi {
namespace {

// What stands for a buffer argument that is not significant here.
const Part kNothing{nullptr, 0, MPI_BYTE};
const Parts kNothingForAll{nullptr, nullptr, nullptr, MPI_BYTE};

// Checks a buffer argument. The check takes an int; counts of all ranks together (reduce_scatter)
// may be larger, and then only their being positive matters.
Part check_part(const void* data, MPI_Count count, MPI_Datatype type, const char* argument) {
  check_items(data, static_cast<int>(std::min<MPI_Count>(count, INT_MAX)), type, argument);
  return {data, count, type};
}

// Checks counts and displacements of `n` ranks. Returns whether any count is positive.
bool check_counts(const int counts[], const int displacements[], int n, const char* argument) {
  check_pointer(counts, argument);
  check_pointer(displacements, "displs");
  int all = 0;  // the bits of all counts
  for (int i = 0; i < n; ++i) {
    check_count(counts[i], argument);
    all |= counts[i];
  }
  return all != 0;
}

// An argument with a count and a displacement for each rank and one type. With no data at all, the
// buffer may be a null pointer.
Parts check_parts(const void* data, const int counts[], const int displacements[],
                  MPI_Datatype type, int n, const char* argument, const char* counts_argument) {
  const bool any = check_counts(counts, displacements, n, counts_argument);
  check_items(data, any ? 1 : 0, type, argument);
  return {data, counts, displacements, type};
}

// An argument of MPI_Alltoallw. The types of ranks with a count of 0 are not looked at: programs
// leave all kinds of values there.
MixedParts check_mixed(const void* data, const int counts[], const int displacements[],
                       const MPI_Datatype types[], int n, const char* argument,
                       const char* counts_argument) {
  check_counts(counts, displacements, n, counts_argument);
  check_pointer(types, "types");
  for (int i = 0; i < n; ++i)
    if (counts[i] > 0) check_items(data, counts[i], types[i], argument);
  if (data == MPI_IN_PLACE)
    fail(MPI_ERR_BUFFER, "argument %s is MPI_IN_PLACE, which is not allowed here", argument);
  return {data, counts, displacements, types};
}

// The root: a rank of an intracommunicator; in an intercommunicator MPI_ROOT at the root,
// MPI_PROC_NULL at the other processes of its group, and the root's rank in the other group
// (section 6.2.3).
void check_any_root(const Comm& comm, int root) {
  if (!comm.inter()) return check_root(comm, root);
  if ((root < 0 || root >= comm.peers()) && root != MPI_ROOT && root != MPI_PROC_NULL)
    fail(MPI_ERR_ROOT,
         "argument root is %d; in an intercommunicator it is MPI_ROOT, MPI_PROC_NULL or a rank of "
         "the other group, from 0 to %d",
         root, comm.peers() - 1);
}
bool is_root(const Comm& comm, int root) {
  return root == (comm.inter() ? MPI_ROOT : comm.rank());
}
// Whether this process has data that goes to the root or comes from it. In an intercommunicator
// those are the processes of the group without the root, which name the root's rank.
bool has_part(const Comm& comm, int root) {
  return !comm.inter() || root >= 0;
}
// MPI_IN_PLACE is defined for intracommunicators only, and in rooted operations at the root only.
// Elsewhere a significant argument with that value fails the check of buffers.
bool in_place(const Comm& comm, int root, const void* data) {
  return data == MPI_IN_PLACE && !comm.inter() && comm.rank() == root;
}
bool in_place(const Comm& comm, const void* data) {
  return data == MPI_IN_PLACE && !comm.inter();
}

// This process's own block in a rooted operation (what it sends to a gather, what it gets from a
// scatter).
Part check_mine(const Comm& comm, int root, const void* data, int count, MPI_Datatype type,
                const char* argument) {
  if (in_place(comm, root, data)) return {MPI_IN_PLACE, 0, MPI_BYTE};
  return has_part(comm, root) ? check_part(data, count, type, argument) : kNothing;
}

// The blocks of an argument for `ranks` ranks. An argument that is MPI_IN_PLACE has none, or an
// empty one.
Items block_of(const Part& part) {
  return {part.data, part.count, &datatype(part.type)};
}
template <class Visit>
void each_block(const Part& part, int, Visit visit) {
  visit(block_of(part));
}
template <class Visit>
void each_block(const Parts& parts, int ranks, Visit visit) {
  if (!parts.counts) return;  // in place, or nothing
  Datatype& type = datatype(parts.type);
  for (int rank = 0; rank < ranks; ++rank)
    if (parts.counts[rank] > 0)
      visit(Items{byte_at(parts.data, parts.displacements[rank] * type.extent()),
                  parts.counts[rank], &type});
}
template <class Visit>
void each_block(const MixedParts& parts, int ranks, Visit visit) {
  if (!parts.counts) return;
  for (int rank = 0; rank < ranks; ++rank)
    if (parts.counts[rank] > 0)
      visit(Items{byte_at(parts.data, parts.displacements[rank]), parts.counts[rank],
                  &datatype(parts.types[rank])});
}

// Whether an error on this communicator ends the job anyway.
bool errors_end_job(const Comm& comm) {
  if (!comm.errhandler) return true;
  const Errhandler::Kind kind = comm.errhandler->kind;
  return kind == Errhandler::Kind::fatal || kind == Errhandler::Kind::abort;
}

// The span of an argument, from its first byte to behind its last one.
inline AddressRange span_of(const Part& part, int) {
  return span_of(block_of(part));
}
template <class Many>
AddressRange span_of(const Many& parts, int ranks) {
  AddressRange all;
  each_block(parts, ranks, [&](const Items& block) { all.add(span_of(block)); });
  return all;
}

// The precise check, out of line. If memory is shared, this process cannot take part, and the other
// ranks cannot complete the operation without it: they are told, and the operation fails
// everywhere. If errors end the job, telling them would only cause more error messages.
template <class From, class Into>
[[gnu::noinline]] void refuse_shared_bytes(Comm& comm, const From& from, const Into& into) {
  std::vector<Items> in, out;
  each_block(from, comm.peers(), [&](const Items& block) { in.push_back(block); });
  each_block(into, comm.peers(), [&](const Items& block) { out.push_back(block); });
  if (!share_bytes(in, out)) return;
  if (!errors_end_job(comm)) refuse_next_collective(comm, MPI_ERR_BUFFER);
  fail(MPI_ERR_BUFFER, "arguments sendbuf and recvbuf share memory");
}

// Refuses buffers that share memory (section 6.2 forbids it). Programs that mean MPI_IN_PLACE do
// that.
template <class From, class Into>
void refuse_aliases(Comm& comm, const From& from, const Into& into) {
  if (span_of(from, comm.peers()).overlaps(span_of(into, comm.peers()))) [[unlikely]]
    refuse_shared_bytes(comm, from, into);
}
// The common case without a call: two blocks.
inline void refuse_aliases(Comm& comm, const Part& from, const Part& into) {
  if (!certainly_disjoint(block_of(from), block_of(into))) [[unlikely]]
    refuse_aliases<Part, Part>(comm, from, into);
}

// A block for each rank, one after the other.
Part for_all(const Comm& comm, const Part& part) {
  return {part.data, part.count * comm.peers(), part.type};
}

// The send buffer of a reduction without a root; `into` is where the result goes.
inline Part check_contribution(Comm& comm, const void* data, MPI_Count count, const Part& into) {
  if (in_place(comm, data)) return {MPI_IN_PLACE, count, into.type};
  const Part from = check_part(data, count, into.type, "sendbuf");
  refuse_aliases(comm, from, into);
  return from;
}

}  // namespace

Ref<Request> begin_barrier(Comm& comm) {
  return start_barrier(comm);
}

Ref<Request> begin_bcast(Comm& comm, void* buffer, int count, MPI_Datatype type, int root) {
  check_any_root(comm, root);
  // Processes of the root's group other than the root have no data.
  const bool idle = comm.inter() && root == MPI_PROC_NULL;
  return start_broadcast(comm, idle ? kNothing : check_part(buffer, count, type, "buffer"), root);
}

Ref<Request> begin_gather(Comm& comm, const void* sendbuf, int sendcount, MPI_Datatype sendtype,
                          void* recvbuf, int recvcount, MPI_Datatype recvtype, int root) {
  check_any_root(comm, root);
  const Part from = check_mine(comm, root, sendbuf, sendcount, sendtype, "sendbuf");
  const Part into =
      is_root(comm, root) ? check_part(recvbuf, recvcount, recvtype, "recvbuf") : kNothing;
  refuse_aliases(comm, from, for_all(comm, into));
  return start_gather(comm, from, into, root);
}

Ref<Request> begin_gatherv(Comm& comm, const void* sendbuf, int sendcount, MPI_Datatype sendtype,
                           void* recvbuf, const int recvcounts[], const int displs[],
                           MPI_Datatype recvtype, int root) {
  check_any_root(comm, root);
  const Part from = check_mine(comm, root, sendbuf, sendcount, sendtype, "sendbuf");
  const Parts into = is_root(comm, root) ? check_parts(recvbuf, recvcounts, displs, recvtype,
                                                       comm.peers(), "recvbuf", "recvcounts")
                                         : kNothingForAll;
  refuse_aliases(comm, from, into);
  return start_gatherv(comm, from, into, root);
}

Ref<Request> begin_scatter(Comm& comm, const void* sendbuf, int sendcount, MPI_Datatype sendtype,
                           void* recvbuf, int recvcount, MPI_Datatype recvtype, int root) {
  check_any_root(comm, root);
  const Part from =
      is_root(comm, root) ? check_part(sendbuf, sendcount, sendtype, "sendbuf") : kNothing;
  const Part into = check_mine(comm, root, recvbuf, recvcount, recvtype, "recvbuf");
  refuse_aliases(comm, for_all(comm, from), into);
  return start_scatter(comm, from, into, root);
}

Ref<Request> begin_scatterv(Comm& comm, const void* sendbuf, const int sendcounts[],
                            const int displs[], MPI_Datatype sendtype, void* recvbuf, int recvcount,
                            MPI_Datatype recvtype, int root) {
  check_any_root(comm, root);
  const Parts from = is_root(comm, root) ? check_parts(sendbuf, sendcounts, displs, sendtype,
                                                       comm.peers(), "sendbuf", "sendcounts")
                                         : kNothingForAll;
  const Part into = check_mine(comm, root, recvbuf, recvcount, recvtype, "recvbuf");
  refuse_aliases(comm, from, into);
  return start_scatterv(comm, from, into, root);
}

Ref<Request> begin_allgather(Comm& comm, const void* sendbuf, int sendcount, MPI_Datatype sendtype,
                             void* recvbuf, int recvcount, MPI_Datatype recvtype) {
  const Part from = in_place(comm, sendbuf) ? Part{MPI_IN_PLACE, 0, MPI_BYTE}
                                            : check_part(sendbuf, sendcount, sendtype, "sendbuf");
  const Part into = check_part(recvbuf, recvcount, recvtype, "recvbuf");
  refuse_aliases(comm, from, for_all(comm, into));
  return start_allgather(comm, from, into);
}

Ref<Request> begin_allgatherv(Comm& comm, const void* sendbuf, int sendcount, MPI_Datatype sendtype,
                              void* recvbuf, const int recvcounts[], const int displs[],
                              MPI_Datatype recvtype) {
  const Part from = in_place(comm, sendbuf) ? Part{MPI_IN_PLACE, 0, MPI_BYTE}
                                            : check_part(sendbuf, sendcount, sendtype, "sendbuf");
  const Parts into =
      check_parts(recvbuf, recvcounts, displs, recvtype, comm.peers(), "recvbuf", "recvcounts");
  refuse_aliases(comm, from, into);
  return start_allgatherv(comm, from, into);
}

Ref<Request> begin_alltoall(Comm& comm, const void* sendbuf, int sendcount, MPI_Datatype sendtype,
                            void* recvbuf, int recvcount, MPI_Datatype recvtype) {
  const Part from = in_place(comm, sendbuf) ? Part{MPI_IN_PLACE, 0, MPI_BYTE}
                                            : check_part(sendbuf, sendcount, sendtype, "sendbuf");
  const Part into = check_part(recvbuf, recvcount, recvtype, "recvbuf");
  refuse_aliases(comm, for_all(comm, from), for_all(comm, into));
  return start_alltoall(comm, from, into);
}

Ref<Request> begin_alltoallv(Comm& comm, const void* sendbuf, const int sendcounts[],
                             const int sdispls[], MPI_Datatype sendtype, void* recvbuf,
                             const int recvcounts[], const int rdispls[], MPI_Datatype recvtype) {
  const Parts from = in_place(comm, sendbuf) ? Parts{MPI_IN_PLACE, nullptr, nullptr, MPI_BYTE}
                                             : check_parts(sendbuf, sendcounts, sdispls, sendtype,
                                                           comm.peers(), "sendbuf", "sendcounts");
  const Parts into =
      check_parts(recvbuf, recvcounts, rdispls, recvtype, comm.peers(), "recvbuf", "recvcounts");
  refuse_aliases(comm, from, into);
  return start_alltoallv(comm, from, into);
}

Ref<Request> begin_alltoallw(Comm& comm, const void* sendbuf, const int sendcounts[],
                             const int sdispls[], const MPI_Datatype sendtypes[], void* recvbuf,
                             const int recvcounts[], const int rdispls[],
                             const MPI_Datatype recvtypes[]) {
  const MixedParts from = in_place(comm, sendbuf)
                              ? MixedParts{MPI_IN_PLACE, nullptr, nullptr, nullptr}
                              : check_mixed(sendbuf, sendcounts, sdispls, sendtypes, comm.peers(),
                                            "sendbuf", "sendcounts");
  const MixedParts into =
      check_mixed(recvbuf, recvcounts, rdispls, recvtypes, comm.peers(), "recvbuf", "recvcounts");
  refuse_aliases(comm, from, into);
  return start_alltoallw(comm, from, into);
}

Ref<Request> begin_reduce(Comm& comm, const void* sendbuf, void* recvbuf, int count,
                          MPI_Datatype type, MPI_Op op, int root) {
  check_any_root(comm, root);
  // A process of the root's group other than the root contributes nothing, and no argument is
  // significant there. MPI_BOR stands for the operation: any valid operation would do.
  if (comm.inter() && root == MPI_PROC_NULL)
    return start_reduce(comm, kNothing, nullptr, check_op(MPI_BOR), root);
  if (is_root(comm, root)) check_part(recvbuf, count, type, "recvbuf");
  Part from{MPI_IN_PLACE, count, type};
  // The root of an intercommunicator only receives.
  if (comm.inter() && root == MPI_ROOT) {
    from.data = nullptr;
  } else if (!in_place(comm, root, sendbuf)) {
    from = check_part(sendbuf, count, type, "sendbuf");
    if (is_root(comm, root)) refuse_aliases(comm, from, Part{recvbuf, count, type});
  }
  return start_reduce(comm, from, recvbuf, check_op(op, datatype(type)), root);
}

Ref<Request> begin_allreduce(Comm& comm, const void* sendbuf, void* recvbuf, int count,
                             MPI_Datatype type, MPI_Op op) {
  const Part into = check_part(recvbuf, count, type, "recvbuf");
  const Part from = check_contribution(comm, sendbuf, count, into);
  return start_allreduce(comm, from, recvbuf, check_op(op, datatype(type)));
}

Ref<Request> begin_reduce_scatter(Comm& comm, const void* sendbuf, void* recvbuf,
                                  const int recvcounts[], MPI_Datatype type, MPI_Op op) {
  check_pointer(recvcounts, "recvcounts");
  MPI_Count total = 0;
  for (int rank = 0; rank < comm.size(); ++rank) {
    check_count(recvcounts[rank], "recvcounts");
    total += recvcounts[rank];
  }
  // In place, the receive buffer holds the whole vector; otherwise this process's share.
  const Part into = check_part(recvbuf, in_place(comm, sendbuf) ? total : recvcounts[comm.rank()],
                               type, "recvbuf");
  check_contribution(comm, sendbuf, total, into);
  return start_reduce_scatter(comm, sendbuf, recvbuf, recvcounts, type,
                              check_op(op, datatype(type)));
}

Ref<Request> begin_reduce_scatter_block(Comm& comm, const void* sendbuf, void* recvbuf,
                                        int recvcount, MPI_Datatype type, MPI_Op op) {
  const Part into = check_part(recvbuf, recvcount, type, "recvbuf");
  const MPI_Count total = MPI_Count{recvcount} * comm.size();
  check_contribution(comm, sendbuf, total, into);
  return start_reduce_scatter_block(comm, {sendbuf, recvcount, type}, recvbuf,
                                    check_op(op, datatype(type)));
}

Ref<Request> begin_scan(Comm& comm, const void* sendbuf, void* recvbuf, int count,
                        MPI_Datatype type, MPI_Op op) {
  check_intra(comm);
  const Part into = check_part(recvbuf, count, type, "recvbuf");
  const Part from = check_contribution(comm, sendbuf, count, into);
  return start_scan(comm, from, recvbuf, check_op(op, datatype(type)));
}

Ref<Request> begin_exscan(Comm& comm, const void* sendbuf, void* recvbuf, int count,
                          MPI_Datatype type, MPI_Op op) {
  check_intra(comm);
  // The receive buffer of rank 0 is not significant (section 6.11.2), unless it holds the
  // contribution.
  const bool receives = comm.rank() > 0 || in_place(comm, sendbuf);
  const Part into = receives ? check_part(recvbuf, count, type, "recvbuf") : Part{nullptr, 0, type};
  const Part from = check_contribution(comm, sendbuf, count, into);
  return start_exscan(comm, from, recvbuf, check_op(op, datatype(type)));
}

}  // namespace viaduct::mpi
