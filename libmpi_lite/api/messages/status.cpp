// The accessors of MPI_Status (MPI 5.0, sections 3.2.5 and 13.3). How much was received is in
// arguments/received_counts.cpp.
#include "libmpi_lite/api/call.hpp"

using namespace viaduct::mpi;

int PMPI_Test_cancelled(const MPI_Status* status, int* flag) {
  return call("MPI_Test_cancelled", [&] {
    *check_pointer(flag, "flag") = status_cancelled(*check_pointer(status, "status"));
  });
}
VIADUCT_MPI(Test_cancelled);

int PMPI_Status_set_cancelled(MPI_Status* status, int flag) {
  return call("MPI_Status_set_cancelled",
              [&] { set_status_cancelled(*check_pointer(status, "status"), flag != 0); });
}
VIADUCT_MPI(Status_set_cancelled);

int PMPI_Status_get_source(const MPI_Status* status, int* source) {
  return call("MPI_Status_get_source", [&] {
    *check_pointer(source, "source") = check_pointer(status, "status")->MPI_SOURCE;
  });
}
VIADUCT_MPI(Status_get_source);

int PMPI_Status_set_source(MPI_Status* status, int source) {
  return call("MPI_Status_set_source",
              [&] { check_pointer(status, "status")->MPI_SOURCE = source; });
}
VIADUCT_MPI(Status_set_source);

int PMPI_Status_get_tag(const MPI_Status* status, int* tag) {
  return call("MPI_Status_get_tag",
              [&] { *check_pointer(tag, "tag") = check_pointer(status, "status")->MPI_TAG; });
}
VIADUCT_MPI(Status_get_tag);

int PMPI_Status_set_tag(MPI_Status* status, int tag) {
  return call("MPI_Status_set_tag", [&] { check_pointer(status, "status")->MPI_TAG = tag; });
}
VIADUCT_MPI(Status_set_tag);

int PMPI_Status_get_error(const MPI_Status* status, int* error) {
  return call("MPI_Status_get_error",
              [&] { *check_pointer(error, "error") = check_pointer(status, "status")->MPI_ERROR; });
}
VIADUCT_MPI(Status_get_error);

int PMPI_Status_set_error(MPI_Status* status, int error) {
  return call("MPI_Status_set_error", [&] { check_pointer(status, "status")->MPI_ERROR = error; });
}
VIADUCT_MPI(Status_set_error);
