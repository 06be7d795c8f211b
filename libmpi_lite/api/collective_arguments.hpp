// Collectives with their arguments checked and on their way: what the blocking and the nonblocking
// function of a kind have in common. Only arguments that are significant in this process are looked
// at (MPI 5.0, section 6.2).
#pragma once

#include "libmpi_lite/api/call.hpp"

namespace viaduct::mpi {

Ref<Request> begin_barrier(Comm& comm);
Ref<Request> begin_bcast(Comm& comm, void* buffer, int count, MPI_Datatype type, int root);
Ref<Request> begin_gather(Comm& comm, const void* sendbuf, int sendcount, MPI_Datatype sendtype,
                          void* recvbuf, int recvcount, MPI_Datatype recvtype, int root);
Ref<Request> begin_gatherv(Comm& comm, const void* sendbuf, int sendcount, MPI_Datatype sendtype,
                           void* recvbuf, const int recvcounts[], const int displs[],
                           MPI_Datatype recvtype, int root);
Ref<Request> begin_scatter(Comm& comm, const void* sendbuf, int sendcount, MPI_Datatype sendtype,
                           void* recvbuf, int recvcount, MPI_Datatype recvtype, int root);
Ref<Request> begin_scatterv(Comm& comm, const void* sendbuf, const int sendcounts[],
                            const int displs[], MPI_Datatype sendtype, void* recvbuf, int recvcount,
                            MPI_Datatype recvtype, int root);
Ref<Request> begin_allgather(Comm& comm, const void* sendbuf, int sendcount, MPI_Datatype sendtype,
                             void* recvbuf, int recvcount, MPI_Datatype recvtype);
Ref<Request> begin_allgatherv(Comm& comm, const void* sendbuf, int sendcount, MPI_Datatype sendtype,
                              void* recvbuf, const int recvcounts[], const int displs[],
                              MPI_Datatype recvtype);
Ref<Request> begin_alltoall(Comm& comm, const void* sendbuf, int sendcount, MPI_Datatype sendtype,
                            void* recvbuf, int recvcount, MPI_Datatype recvtype);
Ref<Request> begin_alltoallv(Comm& comm, const void* sendbuf, const int sendcounts[],
                             const int sdispls[], MPI_Datatype sendtype, void* recvbuf,
                             const int recvcounts[], const int rdispls[], MPI_Datatype recvtype);
Ref<Request> begin_alltoallw(Comm& comm, const void* sendbuf, const int sendcounts[],
                             const int sdispls[], const MPI_Datatype sendtypes[], void* recvbuf,
                             const int recvcounts[], const int rdispls[],
                             const MPI_Datatype recvtypes[]);
Ref<Request> begin_reduce(Comm& comm, const void* sendbuf, void* recvbuf, int count,
                          MPI_Datatype type, MPI_Op op, int root);
Ref<Request> begin_allreduce(Comm& comm, const void* sendbuf, void* recvbuf, int count,
                             MPI_Datatype type, MPI_Op op);
Ref<Request> begin_reduce_scatter(Comm& comm, const void* sendbuf, void* recvbuf,
                                  const int recvcounts[], MPI_Datatype type, MPI_Op op);
Ref<Request> begin_reduce_scatter_block(Comm& comm, const void* sendbuf, void* recvbuf,
                                        int recvcount, MPI_Datatype type, MPI_Op op);
Ref<Request> begin_scan(Comm& comm, const void* sendbuf, void* recvbuf, int count,
                        MPI_Datatype type, MPI_Op op);
Ref<Request> begin_exscan(Comm& comm, const void* sendbuf, void* recvbuf, int count,
                          MPI_Datatype type, MPI_Op op);

}  // namespace viaduct::mpi
