// Events (MPI 5.0, section 15.3.8): this library has none, and no sources of them. So there is no
// index that names one, and no valid registration or instance.
#include "libmpi_lite/api/tool_information/tool.hpp"

using namespace viaduct::mpi;

namespace {

int refuse(int code) {
  return tool::call([&] { throw tool::ToolError{code}; });
}
int refuse_handle() {
  return refuse(MPI_T_ERR_INVALID_HANDLE);
}
int none(int* number) {
  return tool::call([&] { *tool::required(number) = 0; });
}

}  // namespace

int PMPI_T_event_get_num(int* num_events) {
  return none(num_events);
}
VIADUCT_MPI(T_event_get_num);

int PMPI_T_event_get_info(int, char*, int*, int*, MPI_Datatype[], MPI_Aint[], int*, MPI_T_enum*,
                          MPI_Info*, char*, int*, int*) {
  return refuse(MPI_T_ERR_INVALID_INDEX);
}
VIADUCT_MPI(T_event_get_info);

int PMPI_T_event_get_index(const char*, int*) {
  return refuse(MPI_T_ERR_INVALID_NAME);
}
VIADUCT_MPI(T_event_get_index);

int PMPI_T_event_handle_alloc(int, void*, MPI_Info, MPI_T_event_registration*) {
  return refuse(MPI_T_ERR_INVALID_INDEX);
}
VIADUCT_MPI(T_event_handle_alloc);

int PMPI_T_event_handle_set_info(MPI_T_event_registration, MPI_Info) {
  return refuse_handle();
}
VIADUCT_MPI(T_event_handle_set_info);

int PMPI_T_event_handle_get_info(MPI_T_event_registration, MPI_Info*) {
  return refuse_handle();
}
VIADUCT_MPI(T_event_handle_get_info);

int PMPI_T_event_register_callback(MPI_T_event_registration, MPI_T_cb_safety, MPI_Info, void*,
                                   MPI_T_event_cb_function*) {
  return refuse_handle();
}
VIADUCT_MPI(T_event_register_callback);

int PMPI_T_event_callback_set_info(MPI_T_event_registration, MPI_T_cb_safety, MPI_Info) {
  return refuse_handle();
}
VIADUCT_MPI(T_event_callback_set_info);

int PMPI_T_event_callback_get_info(MPI_T_event_registration, MPI_T_cb_safety, MPI_Info*) {
  return refuse_handle();
}
VIADUCT_MPI(T_event_callback_get_info);

int PMPI_T_event_handle_free(MPI_T_event_registration, void*, MPI_T_event_free_cb_function*) {
  return refuse_handle();
}
VIADUCT_MPI(T_event_handle_free);

int PMPI_T_event_set_dropped_handler(MPI_T_event_registration, MPI_T_event_dropped_cb_function*) {
  return refuse_handle();
}
VIADUCT_MPI(T_event_set_dropped_handler);

int PMPI_T_event_read(MPI_T_event_instance, int, void*) {
  return refuse_handle();
}
VIADUCT_MPI(T_event_read);

int PMPI_T_event_copy(MPI_T_event_instance, void*) {
  return refuse_handle();
}
VIADUCT_MPI(T_event_copy);

int PMPI_T_event_get_timestamp(MPI_T_event_instance, MPI_Count*) {
  return refuse_handle();
}
VIADUCT_MPI(T_event_get_timestamp);

int PMPI_T_event_get_source(MPI_T_event_instance, int*) {
  return refuse_handle();
}
VIADUCT_MPI(T_event_get_source);

int PMPI_T_source_get_num(int* num_sources) {
  return none(num_sources);
}
VIADUCT_MPI(T_source_get_num);

int PMPI_T_source_get_info(int, char*, int*, char*, int*, MPI_T_source_order*, MPI_Count*,
                           MPI_Count*, MPI_Info*) {
  return refuse(MPI_T_ERR_INVALID_INDEX);
}
VIADUCT_MPI(T_source_get_info);

int PMPI_T_source_get_timestamp(int, MPI_Count*) {
  return refuse(MPI_T_ERR_INVALID_INDEX);
}
VIADUCT_MPI(T_source_get_timestamp);
