// The collectives between neighbours in a topology (MPI 5.0, sections 8.6 to 8.9) in all their
// forms.
#include "libmpi_lite/api/collectives/forms.hpp"

using namespace viaduct::mpi;

VIADUCT_MPI_COLLECTIVE(Neighbor_allgather, neighbor_allgather,
                       (const void* sendbuf, Count sendcount, MPI_Datatype sendtype, void* recvbuf,
                        Count recvcount, MPI_Datatype recvtype),
                       (sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype));

VIADUCT_MPI_COLLECTIVE(Neighbor_allgatherv, neighbor_allgatherv,
                       (const void* sendbuf, Count sendcount, MPI_Datatype sendtype, void* recvbuf,
                        const Count recvcounts[], const Disp displs[], MPI_Datatype recvtype),
                       (sendbuf, sendcount, sendtype, recvbuf, recvcounts, displs, recvtype));

VIADUCT_MPI_COLLECTIVE(Neighbor_alltoall, neighbor_alltoall,
                       (const void* sendbuf, Count sendcount, MPI_Datatype sendtype, void* recvbuf,
                        Count recvcount, MPI_Datatype recvtype),
                       (sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype));

VIADUCT_MPI_COLLECTIVE(Neighbor_alltoallv, neighbor_alltoallv,
                       (const void* sendbuf, const Count sendcounts[], const Disp sdispls[],
                        MPI_Datatype sendtype, void* recvbuf, const Count recvcounts[],
                        const Disp rdispls[], MPI_Datatype recvtype),
                       (sendbuf, sendcounts, sdispls, sendtype, recvbuf, recvcounts, rdispls,
                        recvtype));

VIADUCT_MPI_COLLECTIVE(Neighbor_alltoallw, neighbor_alltoallw,
                       (const void* sendbuf, const Count sendcounts[], const MPI_Aint sdispls[],
                        const MPI_Datatype sendtypes[], void* recvbuf, const Count recvcounts[],
                        const MPI_Aint rdispls[], const MPI_Datatype recvtypes[]),
                       (sendbuf, sendcounts, sdispls, sendtypes, recvbuf, recvcounts, rdispls,
                        recvtypes));
