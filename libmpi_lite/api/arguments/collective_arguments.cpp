// The checks of collective_arguments.hpp. Each check_*() decides which arguments are significant in
// this process, checks those, and refuses send and receive buffers that share memory.
// Intercommunicators (section 6.2.3) differ in what a root is and in that nothing stays in place.
#include "libmpi_lite/api/arguments/collective_arguments.hpp"

#include <algorithm>

#include "libmpi_lite/api/arguments/aliasing.hpp"
#include "libmpi_lite/api/arguments/arguments.hpp"
#include "libmpi_lite/collective/collective.hpp"

namespace viaduct::mpi {
namespace {

// What stands for a buffer argument that is not significant here.
const Part kNothing{nullptr, 0, MPI_BYTE};
const Parts kNothingForAll{nullptr, nullptr, nullptr, MPI_BYTE};

Part check_part(const void* data, MPI_Count count, MPI_Datatype type, const char* argument) {
  check_items(data, count, type, argument);
  return {data, count, type};
}

void check_there(Counts counts, const char* argument) {
  if (!counts) fail(MPI_ERR_ARG, "argument %s is a null pointer", argument);
}

// Checks counts and displacements of `n` ranks. Returns whether any count is positive.
bool check_counts(Counts counts, Counts displacements, int n, const char* argument) {
  check_there(counts, argument);
  check_there(displacements, "displs");
  MPI_Count all = 0;  // the bits of all counts
  for (int i = 0; i < n; ++i) {
    check_count(counts[i], argument);
    all |= counts[i];
  }
  return all != 0;
}

// An argument with a count and a displacement for each rank and one type. With no data at all, the
// buffer may be a null pointer.
Parts check_parts(const void* data, Counts counts, Counts displacements, MPI_Datatype type, int n,
                  const char* argument, const char* counts_argument) {
  const bool any = check_counts(counts, displacements, n, counts_argument);
  check_items(data, any ? 1 : 0, type, argument);
  return {data, counts, displacements, type};
}

// An argument of MPI_Alltoallw. The types of ranks with a count of 0 are not looked at: programs
// leave all kinds of values there.
MixedParts check_mixed(const void* data, Counts counts, Counts displacements,
                       const MPI_Datatype types[], int n, const char* argument,
                       const char* counts_argument) {
  check_counts(counts, displacements, n, counts_argument);
  check_pointer(types, "types");
  for (int i = 0; i < n; ++i)
    if (counts[i] > 0) check_items(data, counts[i], types[i], argument);
  if (data == MPI_IN_PLACE)
    fail(MPI_ERR_BUFFER, "argument %s is MPI_IN_PLACE, which is not allowed here", argument);
  return {data, counts, displacements, types, n};
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
Part check_mine(const Comm& comm, int root, const void* data, MPI_Count count, MPI_Datatype type,
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
[[gnu::noinline]] void refuse_shared_bytes(Comm& comm, const From& from, int from_blocks,
                                           const Into& into, int into_blocks) {
  std::vector<Items> in, out;
  each_block(from, from_blocks, [&](const Items& block) { in.push_back(block); });
  each_block(into, into_blocks, [&](const Items& block) { out.push_back(block); });
  if (!share_bytes(in, out)) return;
  if (!errors_end_job(comm)) refuse_next_collective(comm, MPI_ERR_BUFFER);
  fail(MPI_ERR_BUFFER, "arguments sendbuf and recvbuf share memory");
}

// Refuses buffers that share memory (section 6.2 forbids it). Programs that mean MPI_IN_PLACE do
// that.
template <class From, class Into>
void refuse_aliases(Comm& comm, const From& from, int from_blocks, const Into& into,
                    int into_blocks) {
  if (span_of(from, from_blocks).overlaps(span_of(into, into_blocks))) [[unlikely]]
    refuse_shared_bytes(comm, from, from_blocks, into, into_blocks);
}
template <class From, class Into>
void refuse_aliases(Comm& comm, const From& from, const Into& into) {
  refuse_aliases(comm, from, comm.peers(), into, comm.peers());
}
// The common case without a call: two blocks.
inline void refuse_aliases(Comm& comm, const Part& from, const Part& into) {
  if (!certainly_disjoint(block_of(from), block_of(into))) [[unlikely]]
    refuse_aliases<Part, Part>(comm, from, into);
}

// The items of so many blocks one after the other. Throws Error if they have more bytes than 64
// bits can tell.
MPI_Count check_total(const Part& part, int ranks) {
  MPI_Count total;
  if (__builtin_mul_overflow(part.count, MPI_Count{ranks}, &total)) [[unlikely]]
    total = INT64_MAX;
  if (total > INT_MAX) check_length(total, datatype(part.type));
  return total;
}

// A block for each rank, one after the other.
Part for_all(const Comm& comm, const Part& part) {
  return {part.data, check_total(part, comm.peers()), part.type};
}

// The send buffer of a reduction without a root; `into` is where the result goes.
inline Part check_contribution(Comm& comm, const void* data, MPI_Count count, const Part& into) {
  if (in_place(comm, data)) return {MPI_IN_PLACE, count, into.type};
  const Part from = check_part(data, count, into.type, "sendbuf");
  refuse_aliases(comm, from, into);
  return from;
}

}  // namespace

Checked<start_barrier> check_barrier(Comm&) {
  return {};
}

Checked<start_broadcast> check_bcast(Comm& comm, void* buffer, MPI_Count count, MPI_Datatype type,
                                     int root) {
  check_any_root(comm, root);
  // Processes of the root's group other than the root have no data.
  const bool idle = comm.inter() && root == MPI_PROC_NULL;
  return {idle ? kNothing : check_part(buffer, count, type, "buffer"), root};
}

Checked<start_gather> check_gather(Comm& comm, const void* sendbuf, MPI_Count sendcount,
                                   MPI_Datatype sendtype, void* recvbuf, MPI_Count recvcount,
                                   MPI_Datatype recvtype, int root) {
  check_any_root(comm, root);
  const Part from = check_mine(comm, root, sendbuf, sendcount, sendtype, "sendbuf");
  const Part into =
      is_root(comm, root) ? check_part(recvbuf, recvcount, recvtype, "recvbuf") : kNothing;
  refuse_aliases(comm, from, for_all(comm, into));
  return {from, into, root};
}

Checked<start_gatherv> check_gatherv(Comm& comm, const void* sendbuf, MPI_Count sendcount,
                                     MPI_Datatype sendtype, void* recvbuf, Counts recvcounts,
                                     Counts displs, MPI_Datatype recvtype, int root) {
  check_any_root(comm, root);
  const Part from = check_mine(comm, root, sendbuf, sendcount, sendtype, "sendbuf");
  const Parts into = is_root(comm, root) ? check_parts(recvbuf, recvcounts, displs, recvtype,
                                                       comm.peers(), "recvbuf", "recvcounts")
                                         : kNothingForAll;
  refuse_aliases(comm, from, into);
  return {from, into, root};
}

Checked<start_scatter> check_scatter(Comm& comm, const void* sendbuf, MPI_Count sendcount,
                                     MPI_Datatype sendtype, void* recvbuf, MPI_Count recvcount,
                                     MPI_Datatype recvtype, int root) {
  check_any_root(comm, root);
  const Part from =
      is_root(comm, root) ? check_part(sendbuf, sendcount, sendtype, "sendbuf") : kNothing;
  const Part into = check_mine(comm, root, recvbuf, recvcount, recvtype, "recvbuf");
  refuse_aliases(comm, for_all(comm, from), into);
  return {from, into, root};
}

Checked<start_scatterv> check_scatterv(Comm& comm, const void* sendbuf, Counts sendcounts,
                                       Counts displs, MPI_Datatype sendtype, void* recvbuf,
                                       MPI_Count recvcount, MPI_Datatype recvtype, int root) {
  check_any_root(comm, root);
  const Parts from = is_root(comm, root) ? check_parts(sendbuf, sendcounts, displs, sendtype,
                                                       comm.peers(), "sendbuf", "sendcounts")
                                         : kNothingForAll;
  const Part into = check_mine(comm, root, recvbuf, recvcount, recvtype, "recvbuf");
  refuse_aliases(comm, from, into);
  return {from, into, root};
}

Checked<start_allgather> check_allgather(Comm& comm, const void* sendbuf, MPI_Count sendcount,
                                         MPI_Datatype sendtype, void* recvbuf, MPI_Count recvcount,
                                         MPI_Datatype recvtype) {
  const Part from = in_place(comm, sendbuf) ? Part{MPI_IN_PLACE, 0, MPI_BYTE}
                                            : check_part(sendbuf, sendcount, sendtype, "sendbuf");
  const Part into = check_part(recvbuf, recvcount, recvtype, "recvbuf");
  refuse_aliases(comm, from, for_all(comm, into));
  return {from, into};
}

Checked<start_allgatherv> check_allgatherv(Comm& comm, const void* sendbuf, MPI_Count sendcount,
                                           MPI_Datatype sendtype, void* recvbuf, Counts recvcounts,
                                           Counts displs, MPI_Datatype recvtype) {
  const Part from = in_place(comm, sendbuf) ? Part{MPI_IN_PLACE, 0, MPI_BYTE}
                                            : check_part(sendbuf, sendcount, sendtype, "sendbuf");
  const Parts into =
      check_parts(recvbuf, recvcounts, displs, recvtype, comm.peers(), "recvbuf", "recvcounts");
  refuse_aliases(comm, from, into);
  return {from, into};
}

Checked<start_alltoall> check_alltoall(Comm& comm, const void* sendbuf, MPI_Count sendcount,
                                       MPI_Datatype sendtype, void* recvbuf, MPI_Count recvcount,
                                       MPI_Datatype recvtype) {
  const Part from = in_place(comm, sendbuf) ? Part{MPI_IN_PLACE, 0, MPI_BYTE}
                                            : check_part(sendbuf, sendcount, sendtype, "sendbuf");
  const Part into = check_part(recvbuf, recvcount, recvtype, "recvbuf");
  refuse_aliases(comm, for_all(comm, from), for_all(comm, into));
  return {from, into};
}

Checked<start_alltoallv> check_alltoallv(Comm& comm, const void* sendbuf, Counts sendcounts,
                                         Counts sdispls, MPI_Datatype sendtype, void* recvbuf,
                                         Counts recvcounts, Counts rdispls, MPI_Datatype recvtype) {
  const Parts from = in_place(comm, sendbuf) ? Parts{MPI_IN_PLACE, nullptr, nullptr, MPI_BYTE}
                                             : check_parts(sendbuf, sendcounts, sdispls, sendtype,
                                                           comm.peers(), "sendbuf", "sendcounts");
  const Parts into =
      check_parts(recvbuf, recvcounts, rdispls, recvtype, comm.peers(), "recvbuf", "recvcounts");
  refuse_aliases(comm, from, into);
  return {from, into};
}

Checked<start_alltoallw> check_alltoallw(Comm& comm, const void* sendbuf, Counts sendcounts,
                                         Counts sdispls, const MPI_Datatype sendtypes[],
                                         void* recvbuf, Counts recvcounts, Counts rdispls,
                                         const MPI_Datatype recvtypes[]) {
  const MixedParts from = in_place(comm, sendbuf)
                              ? MixedParts{MPI_IN_PLACE, nullptr, nullptr, nullptr, 0}
                              : check_mixed(sendbuf, sendcounts, sdispls, sendtypes, comm.peers(),
                                            "sendbuf", "sendcounts");
  const MixedParts into =
      check_mixed(recvbuf, recvcounts, rdispls, recvtypes, comm.peers(), "recvbuf", "recvcounts");
  refuse_aliases(comm, from, into);
  return {from, into};
}

Checked<start_reduce> check_reduce(Comm& comm, const void* sendbuf, void* recvbuf, MPI_Count count,
                                   MPI_Datatype type, MPI_Op op, int root) {
  check_any_root(comm, root);
  // A process of the root's group other than the root contributes nothing, and no argument is
  // significant there. MPI_BOR stands for the operation: any valid operation would do.
  if (comm.inter() && root == MPI_PROC_NULL) return {kNothing, nullptr, check_op(MPI_BOR), root};
  if (is_root(comm, root)) check_part(recvbuf, count, type, "recvbuf");
  Part from{MPI_IN_PLACE, count, type};
  // The root of an intercommunicator only receives.
  if (comm.inter() && root == MPI_ROOT) {
    from.data = nullptr;
  } else if (!in_place(comm, root, sendbuf)) {
    from = check_part(sendbuf, count, type, "sendbuf");
    if (is_root(comm, root)) refuse_aliases(comm, from, Part{recvbuf, count, type});
  }
  return {from, recvbuf, check_op(op, datatype(type)), root};
}

Checked<start_allreduce> check_allreduce(Comm& comm, const void* sendbuf, void* recvbuf,
                                         MPI_Count count, MPI_Datatype type, MPI_Op op) {
  const Part into = check_part(recvbuf, count, type, "recvbuf");
  const Part from = check_contribution(comm, sendbuf, count, into);
  return {from, recvbuf, check_op(op, datatype(type))};
}

Checked<start_reduce_scatter> check_reduce_scatter(Comm& comm, const void* sendbuf, void* recvbuf,
                                                   Counts recvcounts, MPI_Datatype type,
                                                   MPI_Op op) {
  check_there(recvcounts, "recvcounts");
  MPI_Count total = 0;
  for (int rank = 0; rank < comm.size(); ++rank) {
    check_count(recvcounts[rank], "recvcounts");
    if (__builtin_add_overflow(total, recvcounts[rank], &total))
      fail(MPI_ERR_COUNT, "argument recvcounts has a sum that 64 bits cannot tell");
  }
  // In place, the receive buffer holds the whole vector; otherwise this process's share.
  const Part into = check_part(recvbuf, in_place(comm, sendbuf) ? total : recvcounts[comm.rank()],
                               type, "recvbuf");
  check_contribution(comm, sendbuf, total, into);
  return {sendbuf, recvbuf, recvcounts, type, check_op(op, datatype(type))};
}

Checked<start_reduce_scatter_block> check_reduce_scatter_block(Comm& comm, const void* sendbuf,
                                                               void* recvbuf, MPI_Count recvcount,
                                                               MPI_Datatype type, MPI_Op op) {
  const Part into = check_part(recvbuf, recvcount, type, "recvbuf");
  const MPI_Count total = check_total(into, comm.size());
  check_contribution(comm, sendbuf, total, into);
  return {{sendbuf, recvcount, type}, recvbuf, check_op(op, datatype(type))};
}

Checked<start_scan> check_scan(Comm& comm, const void* sendbuf, void* recvbuf, MPI_Count count,
                               MPI_Datatype type, MPI_Op op) {
  check_intra(comm);
  const Part into = check_part(recvbuf, count, type, "recvbuf");
  const Part from = check_contribution(comm, sendbuf, count, into);
  return {from, recvbuf, check_op(op, datatype(type))};
}

Checked<start_exscan> check_exscan(Comm& comm, const void* sendbuf, void* recvbuf, MPI_Count count,
                                   MPI_Datatype type, MPI_Op op) {
  check_intra(comm);
  // The receive buffer of rank 0 is not significant (section 6.11.2), unless it holds the
  // contribution.
  const bool receives = comm.rank() > 0 || in_place(comm, sendbuf);
  const Part into = receives ? check_part(recvbuf, count, type, "recvbuf") : Part{nullptr, 0, type};
  const Part from = check_contribution(comm, sendbuf, count, into);
  return {from, recvbuf, check_op(op, datatype(type))};
}

// ---- between neighbours ------------------------------------------------------------------------

namespace {

// How many blocks a rank sends and receives.
struct Degrees {
  int out, in;
};
Degrees check_neighbors(const Comm& comm) {
  check_intra(comm);
  if (std::holds_alternative<std::monostate>(comm.topology))
    fail(MPI_ERR_TOPOLOGY, "argument comm has no topology");
  const Neighbors neighbors = neighbors_of(comm.topology, comm.rank());
  return {static_cast<int>(neighbors.destinations.size()),
          static_cast<int>(neighbors.sources.size())};
}

// A buffer of so many blocks of the same size, which may be a null pointer if there are none.
Part check_blocks(const void* data, MPI_Count count, MPI_Datatype type, int blocks,
                  const char* argument) {
  check_count(count, argument);
  return check_part(data, blocks > 0 ? count : 0, type, argument);
}
Part all_of(const Part& part, int blocks) {
  return {part.data, check_total(part, blocks), part.type};
}

// As check_parts() and check_mixed(), but a rank without neighbours has no arrays.
Parts check_some_parts(const void* data, Counts counts, Counts displacements, MPI_Datatype type,
                       int n, const char* argument, const char* counts_argument) {
  if (n > 0) return check_parts(data, counts, displacements, type, n, argument, counts_argument);
  check_part(data, 0, type, argument);
  return {data, nullptr, nullptr, type};
}
MixedParts check_some_mixed(const void* data, Counts counts, Counts displacements,
                            const MPI_Datatype types[], int n, const char* argument,
                            const char* counts_argument) {
  if (n == 0) return {data, nullptr, nullptr, nullptr, 0};
  return check_mixed(data, counts, displacements, types, n, argument, counts_argument);
}

}  // namespace

Checked<start_neighbor_allgather> check_neighbor_allgather(Comm& comm, const void* sendbuf,
                                                           MPI_Count sendcount,
                                                           MPI_Datatype sendtype, void* recvbuf,
                                                           MPI_Count recvcount,
                                                           MPI_Datatype recvtype) {
  const Degrees degrees = check_neighbors(comm);
  const Part from = check_blocks(sendbuf, sendcount, sendtype, degrees.out, "sendbuf");
  const Part into = check_blocks(recvbuf, recvcount, recvtype, degrees.in, "recvbuf");
  refuse_aliases(comm, from, all_of(into, degrees.in));
  return {from, into};
}

Checked<start_neighbor_allgatherv> check_neighbor_allgatherv(Comm& comm, const void* sendbuf,
                                                             MPI_Count sendcount,
                                                             MPI_Datatype sendtype, void* recvbuf,
                                                             Counts recvcounts, Counts displs,
                                                             MPI_Datatype recvtype) {
  const Degrees degrees = check_neighbors(comm);
  const Part from = check_blocks(sendbuf, sendcount, sendtype, degrees.out, "sendbuf");
  const Parts into =
      check_some_parts(recvbuf, recvcounts, displs, recvtype, degrees.in, "recvbuf", "recvcounts");
  refuse_aliases(comm, from, 1, into, degrees.in);
  return {from, into};
}

Checked<start_neighbor_alltoall> check_neighbor_alltoall(Comm& comm, const void* sendbuf,
                                                         MPI_Count sendcount, MPI_Datatype sendtype,
                                                         void* recvbuf, MPI_Count recvcount,
                                                         MPI_Datatype recvtype) {
  const Degrees degrees = check_neighbors(comm);
  const Part from = check_blocks(sendbuf, sendcount, sendtype, degrees.out, "sendbuf");
  const Part into = check_blocks(recvbuf, recvcount, recvtype, degrees.in, "recvbuf");
  refuse_aliases(comm, all_of(from, degrees.out), all_of(into, degrees.in));
  return {from, into};
}

Checked<start_neighbor_alltoallv> check_neighbor_alltoallv(Comm& comm, const void* sendbuf,
                                                           Counts sendcounts, Counts sdispls,
                                                           MPI_Datatype sendtype, void* recvbuf,
                                                           Counts recvcounts, Counts rdispls,
                                                           MPI_Datatype recvtype) {
  const Degrees degrees = check_neighbors(comm);
  const Parts from = check_some_parts(sendbuf, sendcounts, sdispls, sendtype, degrees.out,
                                      "sendbuf", "sendcounts");
  const Parts into =
      check_some_parts(recvbuf, recvcounts, rdispls, recvtype, degrees.in, "recvbuf", "recvcounts");
  refuse_aliases(comm, from, degrees.out, into, degrees.in);
  return {from, into};
}

Checked<start_neighbor_alltoallw> check_neighbor_alltoallw(Comm& comm, const void* sendbuf,
                                                           Counts sendcounts, Counts sdispls,
                                                           const MPI_Datatype sendtypes[],
                                                           void* recvbuf, Counts recvcounts,
                                                           Counts rdispls,
                                                           const MPI_Datatype recvtypes[]) {
  const Degrees degrees = check_neighbors(comm);
  const MixedParts from = check_some_mixed(sendbuf, sendcounts, sdispls, sendtypes, degrees.out,
                                           "sendbuf", "sendcounts");
  const MixedParts into = check_some_mixed(recvbuf, recvcounts, rdispls, recvtypes, degrees.in,
                                           "recvbuf", "recvcounts");
  refuse_aliases(comm, from, degrees.out, into, degrees.in);
  return {from, into};
}

}  // namespace viaduct::mpi
