// The nonblocking collectives (MPI 5.0, section 6.12): each starts the same operation as its
// blocking form (collective_arguments.cpp) and returns the request. The operation proceeds inside
// later calls of the library only.
#include "libmpi_lite/api/arguments/collective_arguments.hpp"

using namespace viaduct::mpi;

namespace {

// All functions of this file: `begin` is the begin_*() of the operation.
template <class Begin, class... Arguments>
int collective(const char* name, MPI_Comm comm, MPI_Request* request, Begin begin,
               Arguments... arguments) {
  return call(name, comm, [&](Comm& c) {
    check_pointer(request, "request");
    *request = new_handle<MPI_Request>(request_handles, begin(c, arguments...));
  });
}

}  // namespace

int PMPI_Ibarrier(MPI_Comm comm, MPI_Request* request) {
  return collective("MPI_Ibarrier", comm, request, begin_barrier);
}
VIADUCT_MPI(Ibarrier);

int PMPI_Ibcast(void* buffer, int count, MPI_Datatype datatype, int root, MPI_Comm comm,
                MPI_Request* request) {
  return collective("MPI_Ibcast", comm, request, begin_bcast, buffer, count, datatype, root);
}
VIADUCT_MPI(Ibcast);

int PMPI_Igather(const void* sendbuf, int sendcount, MPI_Datatype sendtype, void* recvbuf,
                 int recvcount, MPI_Datatype recvtype, int root, MPI_Comm comm,
                 MPI_Request* request) {
  return collective("MPI_Igather", comm, request, begin_gather, sendbuf, sendcount, sendtype,
                    recvbuf, recvcount, recvtype, root);
}
VIADUCT_MPI(Igather);

int PMPI_Igatherv(const void* sendbuf, int sendcount, MPI_Datatype sendtype, void* recvbuf,
                  const int recvcounts[], const int displs[], MPI_Datatype recvtype, int root,
                  MPI_Comm comm, MPI_Request* request) {
  return collective("MPI_Igatherv", comm, request, begin_gatherv, sendbuf, sendcount, sendtype,
                    recvbuf, recvcounts, displs, recvtype, root);
}
VIADUCT_MPI(Igatherv);

int PMPI_Iscatter(const void* sendbuf, int sendcount, MPI_Datatype sendtype, void* recvbuf,
                  int recvcount, MPI_Datatype recvtype, int root, MPI_Comm comm,
                  MPI_Request* request) {
  return collective("MPI_Iscatter", comm, request, begin_scatter, sendbuf, sendcount, sendtype,
                    recvbuf, recvcount, recvtype, root);
}
VIADUCT_MPI(Iscatter);

int PMPI_Iscatterv(const void* sendbuf, const int sendcounts[], const int displs[],
                   MPI_Datatype sendtype, void* recvbuf, int recvcount, MPI_Datatype recvtype,
                   int root, MPI_Comm comm, MPI_Request* request) {
  return collective("MPI_Iscatterv", comm, request, begin_scatterv, sendbuf, sendcounts, displs,
                    sendtype, recvbuf, recvcount, recvtype, root);
}
VIADUCT_MPI(Iscatterv);

int PMPI_Iallgather(const void* sendbuf, int sendcount, MPI_Datatype sendtype, void* recvbuf,
                    int recvcount, MPI_Datatype recvtype, MPI_Comm comm, MPI_Request* request) {
  return collective("MPI_Iallgather", comm, request, begin_allgather, sendbuf, sendcount, sendtype,
                    recvbuf, recvcount, recvtype);
}
VIADUCT_MPI(Iallgather);

int PMPI_Iallgatherv(const void* sendbuf, int sendcount, MPI_Datatype sendtype, void* recvbuf,
                     const int recvcounts[], const int displs[], MPI_Datatype recvtype,
                     MPI_Comm comm, MPI_Request* request) {
  return collective("MPI_Iallgatherv", comm, request, begin_allgatherv, sendbuf, sendcount,
                    sendtype, recvbuf, recvcounts, displs, recvtype);
}
VIADUCT_MPI(Iallgatherv);

int PMPI_Ialltoall(const void* sendbuf, int sendcount, MPI_Datatype sendtype, void* recvbuf,
                   int recvcount, MPI_Datatype recvtype, MPI_Comm comm, MPI_Request* request) {
  return collective("MPI_Ialltoall", comm, request, begin_alltoall, sendbuf, sendcount, sendtype,
                    recvbuf, recvcount, recvtype);
}
VIADUCT_MPI(Ialltoall);

int PMPI_Ialltoallv(const void* sendbuf, const int sendcounts[], const int sdispls[],
                    MPI_Datatype sendtype, void* recvbuf, const int recvcounts[],
                    const int rdispls[], MPI_Datatype recvtype, MPI_Comm comm,
                    MPI_Request* request) {
  return collective("MPI_Ialltoallv", comm, request, begin_alltoallv, sendbuf, sendcounts, sdispls,
                    sendtype, recvbuf, recvcounts, rdispls, recvtype);
}
VIADUCT_MPI(Ialltoallv);

int PMPI_Ialltoallw(const void* sendbuf, const int sendcounts[], const int sdispls[],
                    const MPI_Datatype sendtypes[], void* recvbuf, const int recvcounts[],
                    const int rdispls[], const MPI_Datatype recvtypes[], MPI_Comm comm,
                    MPI_Request* request) {
  return collective("MPI_Ialltoallw", comm, request, begin_alltoallw, sendbuf, sendcounts, sdispls,
                    sendtypes, recvbuf, recvcounts, rdispls, recvtypes);
}
VIADUCT_MPI(Ialltoallw);

int PMPI_Ireduce(const void* sendbuf, void* recvbuf, int count, MPI_Datatype datatype, MPI_Op op,
                 int root, MPI_Comm comm, MPI_Request* request) {
  return collective("MPI_Ireduce", comm, request, begin_reduce, sendbuf, recvbuf, count, datatype,
                    op, root);
}
VIADUCT_MPI(Ireduce);

int PMPI_Iallreduce(const void* sendbuf, void* recvbuf, int count, MPI_Datatype datatype, MPI_Op op,
                    MPI_Comm comm, MPI_Request* request) {
  return collective("MPI_Iallreduce", comm, request, begin_allreduce, sendbuf, recvbuf, count,
                    datatype, op);
}
VIADUCT_MPI(Iallreduce);

int PMPI_Ireduce_scatter(const void* sendbuf, void* recvbuf, const int recvcounts[],
                         MPI_Datatype datatype, MPI_Op op, MPI_Comm comm, MPI_Request* request) {
  return collective("MPI_Ireduce_scatter", comm, request, begin_reduce_scatter, sendbuf, recvbuf,
                    recvcounts, datatype, op);
}
VIADUCT_MPI(Ireduce_scatter);

int PMPI_Ireduce_scatter_block(const void* sendbuf, void* recvbuf, int recvcount,
                               MPI_Datatype datatype, MPI_Op op, MPI_Comm comm,
                               MPI_Request* request) {
  return collective("MPI_Ireduce_scatter_block", comm, request, begin_reduce_scatter_block, sendbuf,
                    recvbuf, recvcount, datatype, op);
}
VIADUCT_MPI(Ireduce_scatter_block);

int PMPI_Iscan(const void* sendbuf, void* recvbuf, int count, MPI_Datatype datatype, MPI_Op op,
               MPI_Comm comm, MPI_Request* request) {
  return collective("MPI_Iscan", comm, request, begin_scan, sendbuf, recvbuf, count, datatype, op);
}
VIADUCT_MPI(Iscan);

int PMPI_Iexscan(const void* sendbuf, void* recvbuf, int count, MPI_Datatype datatype, MPI_Op op,
                 MPI_Comm comm, MPI_Request* request) {
  return collective("MPI_Iexscan", comm, request, begin_exscan, sendbuf, recvbuf, count, datatype,
                    op);
}
VIADUCT_MPI(Iexscan);
