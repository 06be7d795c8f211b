// Control variables (MPI 5.0, section 15.3.6): the environment variables that MPI_Init reads, as
// texts. Writing one before MPI_Init sets the environment variable, with the checks of the
// variable's table; later it is too late. All processes of a job should write the same, before any
// of them starts others or has threads that read the environment.
#include <cstdlib>
#include <cstring>

#include "libmpi_lite/api/tool_information/tool.hpp"

using namespace viaduct::mpi;

struct MPI_ABI_T_cvar_handle {
  const tool::ControlVariable* variable;
};

namespace viaduct::mpi::tool {
namespace {

// Characters of a value with the final zero. Longer values are cut.
constexpr int kMaxValue = 4096;

Handles<MPI_ABI_T_cvar_handle> cvar_handles;

// What a user of that layer's variables is.
constexpr int kVerbosity[] = {MPI_T_VERBOSITY_USER_DETAIL, MPI_T_VERBOSITY_TUNER_DETAIL,
                              MPI_T_VERBOSITY_USER_BASIC};

base::ConfigTable table_of(const ControlVariable& variable) {
  return Process::config_tables()[variable.layer];
}

void write(const ControlVariable& variable, const char* value) {
  if (Process::phase() != Process::Phase::before_init) throw ToolError{MPI_T_ERR_CVAR_SET_NEVER};
  if (::strnlen(value, kMaxValue) == kMaxValue) throw ToolError{MPI_T_ERR_INVALID};
  const std::string name(variable.name);
  const char* const old = std::getenv(name.c_str());
  const std::string before = old ? old : "";
  if (::setenv(name.c_str(), value, 1) != 0) throw std::bad_alloc();
  try {
    static_cast<void>(table_of(variable).text(name));
  } catch (const base::SetupError&) {
    old ? ::setenv(name.c_str(), before.c_str(), 1) : ::unsetenv(name.c_str());
    throw ToolError{MPI_T_ERR_INVALID};
  }
}

}  // namespace

const std::vector<ControlVariable>& control_variables() {
  static const std::vector<ControlVariable> all = [] {
    std::vector<ControlVariable> found;
    const auto tables = Process::config_tables();
    for (std::size_t layer = 0; layer < tables.size(); ++layer)
      for (const base::ConfigVar& row : tables[layer]) found.push_back({row.name, &row, layer});
    return found;
  }();
  return all;
}

void free_control_handles() {
  cvar_handles.erase_if([](const auto&) { return true; });
}

}  // namespace viaduct::mpi::tool

int PMPI_T_cvar_get_num(int* num_cvar) {
  return tool::call(
      [&] { *tool::required(num_cvar) = static_cast<int>(tool::control_variables().size()); });
}
VIADUCT_MPI(T_cvar_get_num);

int PMPI_T_cvar_get_info(int cvar_index, char* name, int* name_len, int* verbosity,
                         MPI_Datatype* datatype, MPI_T_enum* enumtype, char* desc, int* desc_len,
                         int* bind, int* scope) {
  return tool::call([&] {
    const auto& variable = tool::entry(tool::control_variables(), cvar_index);
    const viaduct::base::ConfigVar& row = *variable.row;
    std::string meaning(row.meaning);
    if (!row.unit.empty()) meaning.append(", in ").append(row.unit);
    if (!row.accepted.words.empty()) meaning.append(" (").append(row.accepted.words).append(")");
    tool::give(name, name_len, variable.name);
    tool::give(desc, desc_len, meaning);
    tool::give(verbosity, tool::kVerbosity[variable.layer]);
    tool::give(datatype, MPI_CHAR);
    tool::give_no_enum(enumtype);
    tool::give(bind, MPI_T_BIND_NO_OBJECT);
    tool::give(scope, MPI_T_SCOPE_ALL);
  });
}
VIADUCT_MPI(T_cvar_get_info);

int PMPI_T_cvar_get_index(const char* name, int* cvar_index) {
  return tool::call([&] {
    *tool::required(cvar_index) = tool::index_of(tool::control_variables(), tool::required(name));
  });
}
VIADUCT_MPI(T_cvar_get_index);

int PMPI_T_cvar_handle_alloc(int cvar_index, void*, MPI_T_cvar_handle* handle, int* count) {
  return tool::call([&] {
    const auto& variable = tool::entry(tool::control_variables(), cvar_index);
    *tool::required(handle) = tool::cvar_handles.add(
        std::make_unique<MPI_ABI_T_cvar_handle>(MPI_ABI_T_cvar_handle{&variable}));
    tool::give(count, tool::kMaxValue);
  });
}
VIADUCT_MPI(T_cvar_handle_alloc);

int PMPI_T_cvar_handle_free(MPI_T_cvar_handle* handle) {
  return tool::call([&] {
    tool::cvar_handles.erase(tool::cvar_handles.find(*tool::required(handle)));
    *handle = MPI_T_CVAR_HANDLE_NULL;
  });
}
VIADUCT_MPI(T_cvar_handle_free);

int PMPI_T_cvar_read(MPI_T_cvar_handle handle, void* buf) {
  return tool::call([&] {
    const auto& variable = *tool::cvar_handles.find(handle).variable;
    int room = tool::kMaxValue;
    tool::give(static_cast<char*>(tool::required(buf)), &room,
               tool::table_of(variable).value(variable.name));
  });
}
VIADUCT_MPI(T_cvar_read);

int PMPI_T_cvar_write(MPI_T_cvar_handle handle, const void* buf) {
  return tool::call([&] {
    tool::write(*tool::cvar_handles.find(handle).variable,
                static_cast<const char*>(tool::required(buf)));
  });
}
VIADUCT_MPI(T_cvar_write);
