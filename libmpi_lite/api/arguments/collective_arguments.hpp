// The arguments of collectives (MPI 5.0, chapter 6), checked: what the blocking, the nonblocking
// and the persistent function of each kind, with ints or with large counts, have in common
// (collectives/collectives.cpp).
//
// Each check_*() takes the arguments of its MPI function, and returns those of its start_*()
// (collective/collective.hpp). A wrong argument throws Error before anything is sent.
//
// Choices: only arguments that are significant in this process are looked at (section 6.2), because
// programs leave anything in the others. Send and receive buffers that share memory are refused
// with MPI_ERR_BUFFER at all ranks (see docs/mpi.md). Arrays of counts, displacements and types are
// not copied: the program may change them only after completion (section 6.12).
#pragma once

#include <functional>
#include <tuple>

#include "libmpi_lite/api/call.hpp"
#include "libmpi_lite/collective/collective.hpp"

namespace viaduct::mpi {

// The arguments of kStart, a start_*(), but for the communicator.
template <auto kStart>
class Checked;
template <class... Arguments, Ref<Request> (*kStart)(Comm&, Arguments...)>
class Checked<kStart> {
 public:
  Checked(Arguments... arguments) : arguments_(arguments...) {}

  Ref<Request> start(Comm& comm) const {
    return std::apply([&](const auto&... each) { return kStart(comm, each...); }, arguments_);
  }
  // Calls visit(argument) for each: a Part, an int, a std::reference_wrapper<const Op>, ...
  template <class Visit>
  void for_each(Visit visit) {
    std::apply([&](auto&... each) { (visit(each), ...); }, arguments_);
  }

 private:
  template <class Argument>
  using Stored =
      std::conditional_t<std::is_same_v<Argument, const Op&>, std::reference_wrapper<const Op>,
                         std::remove_cvref_t<Argument>>;
  std::tuple<Stored<Arguments>...> arguments_;
};

Checked<start_barrier> check_barrier(Comm& comm);
Checked<start_broadcast> check_bcast(Comm& comm, void* buffer, MPI_Count count, MPI_Datatype type,
                                     int root);
Checked<start_gather> check_gather(Comm& comm, const void* sendbuf, MPI_Count sendcount,
                                   MPI_Datatype sendtype, void* recvbuf, MPI_Count recvcount,
                                   MPI_Datatype recvtype, int root);
Checked<start_gatherv> check_gatherv(Comm& comm, const void* sendbuf, MPI_Count sendcount,
                                     MPI_Datatype sendtype, void* recvbuf, Counts recvcounts,
                                     Counts displs, MPI_Datatype recvtype, int root);
Checked<start_scatter> check_scatter(Comm& comm, const void* sendbuf, MPI_Count sendcount,
                                     MPI_Datatype sendtype, void* recvbuf, MPI_Count recvcount,
                                     MPI_Datatype recvtype, int root);
Checked<start_scatterv> check_scatterv(Comm& comm, const void* sendbuf, Counts sendcounts,
                                       Counts displs, MPI_Datatype sendtype, void* recvbuf,
                                       MPI_Count recvcount, MPI_Datatype recvtype, int root);
Checked<start_allgather> check_allgather(Comm& comm, const void* sendbuf, MPI_Count sendcount,
                                         MPI_Datatype sendtype, void* recvbuf, MPI_Count recvcount,
                                         MPI_Datatype recvtype);
Checked<start_allgatherv> check_allgatherv(Comm& comm, const void* sendbuf, MPI_Count sendcount,
                                           MPI_Datatype sendtype, void* recvbuf, Counts recvcounts,
                                           Counts displs, MPI_Datatype recvtype);
Checked<start_alltoall> check_alltoall(Comm& comm, const void* sendbuf, MPI_Count sendcount,
                                       MPI_Datatype sendtype, void* recvbuf, MPI_Count recvcount,
                                       MPI_Datatype recvtype);
Checked<start_alltoallv> check_alltoallv(Comm& comm, const void* sendbuf, Counts sendcounts,
                                         Counts sdispls, MPI_Datatype sendtype, void* recvbuf,
                                         Counts recvcounts, Counts rdispls, MPI_Datatype recvtype);
Checked<start_alltoallw> check_alltoallw(Comm& comm, const void* sendbuf, Counts sendcounts,
                                         Counts sdispls, const MPI_Datatype sendtypes[],
                                         void* recvbuf, Counts recvcounts, Counts rdispls,
                                         const MPI_Datatype recvtypes[]);
Checked<start_reduce> check_reduce(Comm& comm, const void* sendbuf, void* recvbuf, MPI_Count count,
                                   MPI_Datatype type, MPI_Op op, int root);
Checked<start_allreduce> check_allreduce(Comm& comm, const void* sendbuf, void* recvbuf,
                                         MPI_Count count, MPI_Datatype type, MPI_Op op);
Checked<start_reduce_scatter> check_reduce_scatter(Comm& comm, const void* sendbuf, void* recvbuf,
                                                   Counts recvcounts, MPI_Datatype type, MPI_Op op);
Checked<start_reduce_scatter_block> check_reduce_scatter_block(Comm& comm, const void* sendbuf,
                                                               void* recvbuf, MPI_Count recvcount,
                                                               MPI_Datatype type, MPI_Op op);
Checked<start_scan> check_scan(Comm& comm, const void* sendbuf, void* recvbuf, MPI_Count count,
                               MPI_Datatype type, MPI_Op op);
Checked<start_exscan> check_exscan(Comm& comm, const void* sendbuf, void* recvbuf, MPI_Count count,
                                   MPI_Datatype type, MPI_Op op);

// Between neighbours in the communicator's topology.
Checked<start_neighbor_allgather> check_neighbor_allgather(Comm& comm, const void* sendbuf,
                                                           MPI_Count sendcount,
                                                           MPI_Datatype sendtype, void* recvbuf,
                                                           MPI_Count recvcount,
                                                           MPI_Datatype recvtype);
Checked<start_neighbor_allgatherv> check_neighbor_allgatherv(Comm& comm, const void* sendbuf,
                                                             MPI_Count sendcount,
                                                             MPI_Datatype sendtype, void* recvbuf,
                                                             Counts recvcounts, Counts displs,
                                                             MPI_Datatype recvtype);
Checked<start_neighbor_alltoall> check_neighbor_alltoall(Comm& comm, const void* sendbuf,
                                                         MPI_Count sendcount, MPI_Datatype sendtype,
                                                         void* recvbuf, MPI_Count recvcount,
                                                         MPI_Datatype recvtype);
Checked<start_neighbor_alltoallv> check_neighbor_alltoallv(Comm& comm, const void* sendbuf,
                                                           Counts sendcounts, Counts sdispls,
                                                           MPI_Datatype sendtype, void* recvbuf,
                                                           Counts recvcounts, Counts rdispls,
                                                           MPI_Datatype recvtype);
Checked<start_neighbor_alltoallw> check_neighbor_alltoallw(Comm& comm, const void* sendbuf,
                                                           Counts sendcounts, Counts sdispls,
                                                           const MPI_Datatype sendtypes[],
                                                           void* recvbuf, Counts recvcounts,
                                                           Counts rdispls,
                                                           const MPI_Datatype recvtypes[]);

}  // namespace viaduct::mpi
