// How much was received (MPI 5.0, sections 3.2.5 and 5.1.11): from the bytes in a status to counts
// of items and of basic elements. A status holds bytes, in more than 64 bits (WideBytes,
// core/status.hpp), because the program may set a count of items of any type
// (MPI_Status_set_elements_x, section 13.3).
#include "libmpi_lite/api/counted.hpp"
#include "libmpi_lite/api/give_count.hpp"

using namespace viaduct::mpi;

namespace {

// MPI_UNDEFINED if the bytes are no whole number of items or the number does not fit. 0 bytes are 0
// items of any type, one without bytes included.
MPI_Count received_items(const MPI_Status& status, const Datatype& type) {
  const WideBytes bytes = status_wide_bytes(status);
  if (bytes == 0) return 0;
  if (type.size() == 0 || bytes % type.size() != 0) return MPI_UNDEFINED;
  const WideBytes items = bytes / type.size();
  return items > INT64_MAX ? MPI_UNDEFINED : static_cast<MPI_Count>(items);
}

template <class Count>
int get_elements(const char* function, const MPI_Status* status, MPI_Datatype datatype,
                 Count* count) {
  return call(function, [&] {
    const WideBytes bytes = status_wide_bytes(*check_pointer(status, "status"));
    give_count(count, "count", check_type(datatype).elements(bytes));
  });
}

// Choice: the status gets the bytes of `count` basic elements of the type (Datatype::bytes_of).
int set_elements(const char* function, MPI_Status* status, MPI_Datatype type, MPI_Count count) {
  return call(function, [&] {
    check_pointer(status, "status");
    const Datatype& t = check_type(type);
    check_count(count);
    set_status_wide_bytes(*status, t.bytes_of(count));
  });
}

}  // namespace

VIADUCT_MPI_COUNTED(Get_count, (const MPI_Status* status, MPI_Datatype datatype, Count* count),
                    call(function, [&] {
                      const MPI_Status& s = *check_pointer(status, "status");
                      give_count(count, "count", received_items(s, check_type(datatype)));
                    }));

VIADUCT_MPI_COUNTED(Get_elements, (const MPI_Status* status, MPI_Datatype datatype, Count* count),
                    get_elements(function, status, datatype, count));

int PMPI_Get_elements_x(const MPI_Status* status, MPI_Datatype datatype, MPI_Count* count) {
  return get_elements("MPI_Get_elements_x", status, datatype, count);
}
VIADUCT_MPI(Get_elements_x);

VIADUCT_MPI_COUNTED(Status_set_elements, (MPI_Status * status, MPI_Datatype datatype, Count count),
                    set_elements(function, status, datatype, count));

int PMPI_Status_set_elements_x(MPI_Status* status, MPI_Datatype datatype, MPI_Count count) {
  return set_elements("MPI_Status_set_elements_x", status, datatype, count);
}
VIADUCT_MPI(Status_set_elements_x);
