// Collectives with their arguments checked and under way (MPI 5.0, chapter 6): what the blocking
// function (collectives.cpp) and the nonblocking one (nonblocking_collectives.cpp) of each kind
// have in common.
//
// Each begin_*() takes the arguments of its MPI function, checks them, and starts the operation
// with start_*() (collective/collective.hpp). The result is a request that the caller holds. A
// wrong argument throws Error before anything is sent.
//
// Choices: only arguments that are significant in this process are looked at (section 6.2), because
// programs leave anything in the others. Send and receive buffers that share memory are refused
// with MPI_ERR_BUFFER at all ranks (see docs/mpi.md). Arrays of counts, displacements and types are
// not copied: the program may change them only after completion (section 6.12).
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
