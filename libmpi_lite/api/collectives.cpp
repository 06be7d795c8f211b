// The blocking collectives (MPI 5.0, sections 6.3 to 6.11): each starts the operation
// (collective_arguments.cpp) and runs it to its end.
#include "libmpi_lite/api/arguments/collective_arguments.hpp"
#include "libmpi_lite/collective/collective.hpp"

using namespace viaduct::mpi;

namespace {

// All functions of this file: `begin` is the begin_*() of the operation.
template <class Begin, class... Arguments>
int collective(const char* name, MPI_Comm comm, Begin begin, Arguments... arguments) {
  return call(name, comm, [&](Comm& c) {
    const BlockingCall blocking;
    finish_collective(*begin(c, arguments...));
  });
}

}  // namespace

int PMPI_Barrier(MPI_Comm comm) {
  return collective("MPI_Barrier", comm, begin_barrier);
}
VIADUCT_MPI(Barrier);

int PMPI_Bcast(void* buffer, int count, MPI_Datatype datatype, int root, MPI_Comm comm) {
  return collective("MPI_Bcast", comm, begin_bcast, buffer, count, datatype, root);
}
VIADUCT_MPI(Bcast);

int PMPI_Gather(const void* sendbuf, int sendcount, MPI_Datatype sendtype, void* recvbuf,
                int recvcount, MPI_Datatype recvtype, int root, MPI_Comm comm) {
  return collective("MPI_Gather", comm, begin_gather, sendbuf, sendcount, sendtype, recvbuf,
                    recvcount, recvtype, root);
}
VIADUCT_MPI(Gather);

int PMPI_Gatherv(const void* sendbuf, int sendcount, MPI_Datatype sendtype, void* recvbuf,
                 const int recvcounts[], const int displs[], MPI_Datatype recvtype, int root,
                 MPI_Comm comm) {
  return collective("MPI_Gatherv", comm, begin_gatherv, sendbuf, sendcount, sendtype, recvbuf,
                    recvcounts, displs, recvtype, root);
}
VIADUCT_MPI(Gatherv);

int PMPI_Scatter(const void* sendbuf, int sendcount, MPI_Datatype sendtype, void* recvbuf,
                 int recvcount, MPI_Datatype recvtype, int root, MPI_Comm comm) {
  return collective("MPI_Scatter", comm, begin_scatter, sendbuf, sendcount, sendtype, recvbuf,
                    recvcount, recvtype, root);
}
VIADUCT_MPI(Scatter);

int PMPI_Scatterv(const void* sendbuf, const int sendcounts[], const int displs[],
                  MPI_Datatype sendtype, void* recvbuf, int recvcount, MPI_Datatype recvtype,
                  int root, MPI_Comm comm) {
  return collective("MPI_Scatterv", comm, begin_scatterv, sendbuf, sendcounts, displs, sendtype,
                    recvbuf, recvcount, recvtype, root);
}
VIADUCT_MPI(Scatterv);

int PMPI_Allgather(const void* sendbuf, int sendcount, MPI_Datatype sendtype, void* recvbuf,
                   int recvcount, MPI_Datatype recvtype, MPI_Comm comm) {
  return collective("MPI_Allgather", comm, begin_allgather, sendbuf, sendcount, sendtype, recvbuf,
                    recvcount, recvtype);
}
VIADUCT_MPI(Allgather);

int PMPI_Allgatherv(const void* sendbuf, int sendcount, MPI_Datatype sendtype, void* recvbuf,
                    const int recvcounts[], const int displs[], MPI_Datatype recvtype,
                    MPI_Comm comm) {
  return collective("MPI_Allgatherv", comm, begin_allgatherv, sendbuf, sendcount, sendtype, recvbuf,
                    recvcounts, displs, recvtype);
}
VIADUCT_MPI(Allgatherv);

int PMPI_Alltoall(const void* sendbuf, int sendcount, MPI_Datatype sendtype, void* recvbuf,
                  int recvcount, MPI_Datatype recvtype, MPI_Comm comm) {
  return collective("MPI_Alltoall", comm, begin_alltoall, sendbuf, sendcount, sendtype, recvbuf,
                    recvcount, recvtype);
}
VIADUCT_MPI(Alltoall);

int PMPI_Alltoallv(const void* sendbuf, const int sendcounts[], const int sdispls[],
                   MPI_Datatype sendtype, void* recvbuf, const int recvcounts[],
                   const int rdispls[], MPI_Datatype recvtype, MPI_Comm comm) {
  return collective("MPI_Alltoallv", comm, begin_alltoallv, sendbuf, sendcounts, sdispls, sendtype,
                    recvbuf, recvcounts, rdispls, recvtype);
}
VIADUCT_MPI(Alltoallv);

int PMPI_Alltoallw(const void* sendbuf, const int sendcounts[], const int sdispls[],
                   const MPI_Datatype sendtypes[], void* recvbuf, const int recvcounts[],
                   const int rdispls[], const MPI_Datatype recvtypes[], MPI_Comm comm) {
  return collective("MPI_Alltoallw", comm, begin_alltoallw, sendbuf, sendcounts, sdispls, sendtypes,
                    recvbuf, recvcounts, rdispls, recvtypes);
}
VIADUCT_MPI(Alltoallw);

int PMPI_Reduce(const void* sendbuf, void* recvbuf, int count, MPI_Datatype datatype, MPI_Op op,
                int root, MPI_Comm comm) {
  return collective("MPI_Reduce", comm, begin_reduce, sendbuf, recvbuf, count, datatype, op, root);
}
VIADUCT_MPI(Reduce);

int PMPI_Allreduce(const void* sendbuf, void* recvbuf, int count, MPI_Datatype datatype, MPI_Op op,
                   MPI_Comm comm) {
  return collective("MPI_Allreduce", comm, begin_allreduce, sendbuf, recvbuf, count, datatype, op);
}
VIADUCT_MPI(Allreduce);

int PMPI_Reduce_scatter(const void* sendbuf, void* recvbuf, const int recvcounts[],
                        MPI_Datatype datatype, MPI_Op op, MPI_Comm comm) {
  return collective("MPI_Reduce_scatter", comm, begin_reduce_scatter, sendbuf, recvbuf, recvcounts,
                    datatype, op);
}
VIADUCT_MPI(Reduce_scatter);

int PMPI_Reduce_scatter_block(const void* sendbuf, void* recvbuf, int recvcount,
                              MPI_Datatype datatype, MPI_Op op, MPI_Comm comm) {
  return collective("MPI_Reduce_scatter_block", comm, begin_reduce_scatter_block, sendbuf, recvbuf,
                    recvcount, datatype, op);
}
VIADUCT_MPI(Reduce_scatter_block);

int PMPI_Scan(const void* sendbuf, void* recvbuf, int count, MPI_Datatype datatype, MPI_Op op,
              MPI_Comm comm) {
  return collective("MPI_Scan", comm, begin_scan, sendbuf, recvbuf, count, datatype, op);
}
VIADUCT_MPI(Scan);

int PMPI_Exscan(const void* sendbuf, void* recvbuf, int count, MPI_Datatype datatype, MPI_Op op,
                MPI_Comm comm) {
  return collective("MPI_Exscan", comm, begin_exscan, sendbuf, recvbuf, count, datatype, op);
}
VIADUCT_MPI(Exscan);
