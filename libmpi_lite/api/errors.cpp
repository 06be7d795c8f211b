// Error codes and error classes (MPI 5.0, sections 9.4 and 9.5), those of the program included;
// allowed at any time. The registry is in core/errors.cpp, which also checks classes and codes.
#include "libmpi_lite/core/errors.hpp"

#include "libmpi_lite/api/arguments/arguments.hpp"

using namespace viaduct::mpi;

int PMPI_Error_class(int errorcode, int* errorclass) {
  return call_any_time("MPI_Error_class",
                       [&] { *check_pointer(errorclass, "errorclass") = error_class(errorcode); });
}
VIADUCT_MPI(Error_class);

int PMPI_Error_string(int errorcode, char* string, int* resultlen) {
  return call_any_time("MPI_Error_string",
                       [&] { copy_string(error_text(errorcode), string, resultlen); });
}
VIADUCT_MPI(Error_string);

int PMPI_Add_error_class(int* errorclass) {
  return call_any_time("MPI_Add_error_class", [&] {
    check_pointer(errorclass, "errorclass");
    *errorclass = add_error_class();
  });
}
VIADUCT_MPI(Add_error_class);

int PMPI_Add_error_code(int errorclass, int* errorcode) {
  return call_any_time("MPI_Add_error_code", [&] {
    check_pointer(errorcode, "errorcode");
    *errorcode = add_error_code(errorclass);
  });
}
VIADUCT_MPI(Add_error_code);

int PMPI_Add_error_string(int errorcode, const char* string) {
  return call_any_time("MPI_Add_error_string",
                       [&] { add_error_string(errorcode, check_pointer(string, "string")); });
}
VIADUCT_MPI(Add_error_string);

// MPI-4.1's counterparts of MPI_Add_error_*.
int PMPI_Remove_error_class(int errorclass) {
  return call_any_time("MPI_Remove_error_class", [&] { remove_error_class(errorclass); });
}
VIADUCT_MPI(Remove_error_class);

int PMPI_Remove_error_code(int errorcode) {
  return call_any_time("MPI_Remove_error_code", [&] { remove_error_code(errorcode); });
}
VIADUCT_MPI(Remove_error_code);

int PMPI_Remove_error_string(int errorcode) {
  return call_any_time("MPI_Remove_error_string", [&] { remove_error_string(errorcode); });
}
VIADUCT_MPI(Remove_error_string);
