// Starting and ending the tool information interface (MPI 5.0, section 15.3.4), and enumerations
// (section 15.3.5), of which there are none.
#include "libmpi_lite/api/tool_information/tool.hpp"

#include <algorithm>

using namespace viaduct::mpi;
using tool::ToolError;

namespace viaduct::mpi::tool {
namespace {

int users = 0;  // calls of MPI_T_init_thread less those of MPI_T_finalize

}  // namespace

bool initialized() {
  return users > 0;
}

void give(char* out, int* length, std::string_view text) {
  if (length == nullptr) return;
  if (out != nullptr && *length > 0) {
    const std::size_t most = std::min(text.size(), static_cast<std::size_t>(*length) - 1);
    out[text.copy(out, most)] = '\0';
  }
  *length = static_cast<int>(text.size()) + 1;
}

}  // namespace viaduct::mpi::tool

int PMPI_T_init_thread(int required, int* provided) {
  if (required < MPI_THREAD_SINGLE || required > MPI_THREAD_MULTIPLE || provided == nullptr)
    return MPI_T_ERR_INVALID;
  const LockedEntry entry;
  *provided = required;
  ++tool::users;
  return MPI_SUCCESS;
}
VIADUCT_MPI(T_init_thread);

int PMPI_T_finalize() {
  return tool::call([] {
    if (--tool::users > 0) return;
    tool::free_control_handles();
    tool::free_sessions();
  });
}
VIADUCT_MPI(T_finalize);

int PMPI_T_enum_get_info(MPI_T_enum, int*, char*, int*) {
  return tool::call([] { throw ToolError{MPI_T_ERR_INVALID_HANDLE}; });
}
VIADUCT_MPI(T_enum_get_info);

int PMPI_T_enum_get_item(MPI_T_enum, int, int*, char*, int*) {
  return tool::call([] { throw ToolError{MPI_T_ERR_INVALID_HANDLE}; });
}
VIADUCT_MPI(T_enum_get_item);
