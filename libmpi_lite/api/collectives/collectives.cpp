// The collectives (MPI 5.0, sections 6.3 to 6.13) in all their forms: each checks its arguments
// (arguments/collective_arguments.cpp) and starts the operation, or makes a request that starts it.
#include "libmpi_lite/api/collectives/forms.hpp"

using namespace viaduct::mpi;

// The only one without a count.
int PMPI_Barrier(MPI_Comm comm) {
  return run_collective("MPI_Barrier", comm, check_barrier);
}
VIADUCT_MPI(Barrier);
int PMPI_Ibarrier(MPI_Comm comm, MPI_Request* request) {
  return start_collective("MPI_Ibarrier", comm, request, check_barrier);
}
VIADUCT_MPI(Ibarrier);
int PMPI_Barrier_init(MPI_Comm comm, MPI_Info info, MPI_Request* request) {
  return init_collective("MPI_Barrier_init", comm, info, request, check_barrier);
}
VIADUCT_MPI(Barrier_init);

VIADUCT_MPI_COLLECTIVE(Bcast, bcast, (void* buffer, Count count, MPI_Datatype datatype, int root),
                       (buffer, count, datatype, root));

VIADUCT_MPI_COLLECTIVE(Gather, gather,
                       (const void* sendbuf, Count sendcount, MPI_Datatype sendtype, void* recvbuf,
                        Count recvcount, MPI_Datatype recvtype, int root),
                       (sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, root));

VIADUCT_MPI_COLLECTIVE(Gatherv, gatherv,
                       (const void* sendbuf, Count sendcount, MPI_Datatype sendtype, void* recvbuf,
                        const Count recvcounts[], const Disp displs[], MPI_Datatype recvtype,
                        int root),
                       (sendbuf, sendcount, sendtype, recvbuf, recvcounts, displs, recvtype, root));

VIADUCT_MPI_COLLECTIVE(Scatter, scatter,
                       (const void* sendbuf, Count sendcount, MPI_Datatype sendtype, void* recvbuf,
                        Count recvcount, MPI_Datatype recvtype, int root),
                       (sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, root));

VIADUCT_MPI_COLLECTIVE(Scatterv, scatterv,
                       (const void* sendbuf, const Count sendcounts[], const Disp displs[],
                        MPI_Datatype sendtype, void* recvbuf, Count recvcount,
                        MPI_Datatype recvtype, int root),
                       (sendbuf, sendcounts, displs, sendtype, recvbuf, recvcount, recvtype, root));

VIADUCT_MPI_COLLECTIVE(Allgather, allgather,
                       (const void* sendbuf, Count sendcount, MPI_Datatype sendtype, void* recvbuf,
                        Count recvcount, MPI_Datatype recvtype),
                       (sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype));

VIADUCT_MPI_COLLECTIVE(Allgatherv, allgatherv,
                       (const void* sendbuf, Count sendcount, MPI_Datatype sendtype, void* recvbuf,
                        const Count recvcounts[], const Disp displs[], MPI_Datatype recvtype),
                       (sendbuf, sendcount, sendtype, recvbuf, recvcounts, displs, recvtype));

VIADUCT_MPI_COLLECTIVE(Alltoall, alltoall,
                       (const void* sendbuf, Count sendcount, MPI_Datatype sendtype, void* recvbuf,
                        Count recvcount, MPI_Datatype recvtype),
                       (sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype));

VIADUCT_MPI_COLLECTIVE(Alltoallv, alltoallv,
                       (const void* sendbuf, const Count sendcounts[], const Disp sdispls[],
                        MPI_Datatype sendtype, void* recvbuf, const Count recvcounts[],
                        const Disp rdispls[], MPI_Datatype recvtype),
                       (sendbuf, sendcounts, sdispls, sendtype, recvbuf, recvcounts, rdispls,
                        recvtype));

VIADUCT_MPI_COLLECTIVE(Alltoallw, alltoallw,
                       (const void* sendbuf, const Count sendcounts[], const Disp sdispls[],
                        const MPI_Datatype sendtypes[], void* recvbuf, const Count recvcounts[],
                        const Disp rdispls[], const MPI_Datatype recvtypes[]),
                       (sendbuf, sendcounts, sdispls, sendtypes, recvbuf, recvcounts, rdispls,
                        recvtypes));

VIADUCT_MPI_COLLECTIVE(Reduce, reduce,
                       (const void* sendbuf, void* recvbuf, Count count, MPI_Datatype datatype,
                        MPI_Op op, int root),
                       (sendbuf, recvbuf, count, datatype, op, root));

VIADUCT_MPI_COLLECTIVE(Allreduce, allreduce,
                       (const void* sendbuf, void* recvbuf, Count count, MPI_Datatype datatype,
                        MPI_Op op),
                       (sendbuf, recvbuf, count, datatype, op));

VIADUCT_MPI_COLLECTIVE(Reduce_scatter, reduce_scatter,
                       (const void* sendbuf, void* recvbuf, const Count recvcounts[],
                        MPI_Datatype datatype, MPI_Op op),
                       (sendbuf, recvbuf, recvcounts, datatype, op));

VIADUCT_MPI_COLLECTIVE(Reduce_scatter_block, reduce_scatter_block,
                       (const void* sendbuf, void* recvbuf, Count recvcount, MPI_Datatype datatype,
                        MPI_Op op),
                       (sendbuf, recvbuf, recvcount, datatype, op));

VIADUCT_MPI_COLLECTIVE(Scan, scan,
                       (const void* sendbuf, void* recvbuf, Count count, MPI_Datatype datatype,
                        MPI_Op op),
                       (sendbuf, recvbuf, count, datatype, op));

VIADUCT_MPI_COLLECTIVE(Exscan, exscan,
                       (const void* sendbuf, void* recvbuf, Count count, MPI_Datatype datatype,
                        MPI_Op op),
                       (sendbuf, recvbuf, count, datatype, op));
