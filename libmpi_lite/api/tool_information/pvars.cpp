// Performance variables (MPI 5.0, section 15.3.7): the counters of the channels and of the layers
// below them. They run from MPI_Init on, whatever tools do, and none can be written or reset.
// Reading one costs the time of collecting the counters of all channels.
#include <algorithm>

#include "libmpi_lite/api/tool_information/tool.hpp"
#include "libmpi_lite/transfer/engine.hpp"

using namespace viaduct::mpi;
using tool::ToolError;

struct MPI_ABI_T_pvar_session {};

struct MPI_ABI_T_pvar_handle {
  const MPI_ABI_T_pvar_session* session;
  int variable;
};

namespace viaduct::mpi::tool {
namespace {

Handles<MPI_ABI_T_pvar_session> sessions;
Handles<MPI_ABI_T_pvar_handle> pvar_handles;

MPI_ABI_T_pvar_session& session_of(MPI_T_pvar_session session) {
  return sessions.find(session, MPI_T_ERR_INVALID_SESSION);
}

MPI_ABI_T_pvar_handle& handle_of(MPI_T_pvar_session session, MPI_T_pvar_handle handle) {
  MPI_ABI_T_pvar_handle& found = pvar_handles.find(handle);
  if (found.session != &session_of(session)) throw ToolError{MPI_T_ERR_INVALID_HANDLE};
  return found;
}

int class_of(const PerformanceVariable& variable) {
  return variable.level ? MPI_T_PVAR_CLASS_LEVEL : MPI_T_PVAR_CLASS_COUNTER;
}

// Starting, stopping, writing: nothing of it is for these variables. A request for all handles of a
// session leaves out those that it does not fit (section 15.3.7).
void refuse_for(MPI_T_pvar_session session, MPI_T_pvar_handle handle, int code) {
  session_of(session);
  if (handle == MPI_T_PVAR_ALL_HANDLES) return;
  handle_of(session, handle);
  throw ToolError{code};
}

}  // namespace

const std::vector<PerformanceVariable>& performance_variables() {
  static std::vector<PerformanceVariable> all;
  if (!all.empty() || Process::phase() != Process::Phase::running) return all;
  const auto channels = Transfer::self().all_counters();
  for (std::size_t c = 0; c < channels.size(); ++c) {
    const std::string channel = channels[c].channel;
    for (std::size_t i = 0; i < channels[c].counters.size(); ++i) {
      const base::NamedCounter& counter = channels[c].counters[i];
      std::string name = channel;
      name.append("_").append(counter.part).append("_").append(counter.name);
      all.push_back({name, counter.meaning, channel, c, i, counter.level});
    }
  }
  return all;
}

void free_sessions() {
  pvar_handles.erase_if([](const auto&) { return true; });
  sessions.erase_if([](const auto&) { return true; });
}

}  // namespace viaduct::mpi::tool

int PMPI_T_pvar_get_num(int* num_pvar) {
  return tool::call(
      [&] { *tool::required(num_pvar) = static_cast<int>(tool::performance_variables().size()); });
}
VIADUCT_MPI(T_pvar_get_num);

int PMPI_T_pvar_get_info(int pvar_index, char* name, int* name_len, int* verbosity, int* var_class,
                         MPI_Datatype* datatype, MPI_T_enum* enumtype, char* desc, int* desc_len,
                         int* bind, int* readonly, int* continuous, int* atomic) {
  return tool::call([&] {
    const auto& variable = tool::entry(tool::performance_variables(), pvar_index);
    tool::give(name, name_len, variable.name);
    tool::give(desc, desc_len, variable.meaning);
    tool::give(verbosity, MPI_T_VERBOSITY_TUNER_DETAIL);
    tool::give(var_class, tool::class_of(variable));
    tool::give(datatype, MPI_UNSIGNED_LONG_LONG);
    tool::give_no_enum(enumtype);
    tool::give(bind, MPI_T_BIND_NO_OBJECT);
    tool::give(readonly, 1);
    tool::give(continuous, 1);
    tool::give(atomic, 0);
  });
}
VIADUCT_MPI(T_pvar_get_info);

int PMPI_T_pvar_get_index(const char* name, int var_class, int* pvar_index) {
  return tool::call([&] {
    const auto& all = tool::performance_variables();
    const int found = tool::index_of(all, tool::required(name));
    if (tool::class_of(all[static_cast<std::size_t>(found)]) != var_class)
      throw ToolError{MPI_T_ERR_INVALID_NAME};
    *tool::required(pvar_index) = found;
  });
}
VIADUCT_MPI(T_pvar_get_index);

int PMPI_T_pvar_session_create(MPI_T_pvar_session* session) {
  return tool::call([&] {
    *tool::required(session) = tool::sessions.add(std::make_unique<MPI_ABI_T_pvar_session>());
  });
}
VIADUCT_MPI(T_pvar_session_create);

int PMPI_T_pvar_session_free(MPI_T_pvar_session* session) {
  return tool::call([&] {
    MPI_ABI_T_pvar_session& found = tool::session_of(*tool::required(session));
    tool::pvar_handles.erase_if([&](const auto& handle) { return handle.session == &found; });
    tool::sessions.erase(found);
    *session = MPI_T_PVAR_SESSION_NULL;
  });
}
VIADUCT_MPI(T_pvar_session_free);

int PMPI_T_pvar_handle_alloc(MPI_T_pvar_session session, int pvar_index, void*,
                             MPI_T_pvar_handle* handle, int* count) {
  return tool::call([&] {
    const auto& owner = tool::session_of(session);
    tool::entry(tool::performance_variables(), pvar_index);
    *tool::required(handle) = tool::pvar_handles.add(
        std::make_unique<MPI_ABI_T_pvar_handle>(MPI_ABI_T_pvar_handle{&owner, pvar_index}));
    tool::give(count, 1);
  });
}
VIADUCT_MPI(T_pvar_handle_alloc);

int PMPI_T_pvar_handle_free(MPI_T_pvar_session session, MPI_T_pvar_handle* handle) {
  return tool::call([&] {
    tool::pvar_handles.erase(tool::handle_of(session, *tool::required(handle)));
    *handle = MPI_T_PVAR_HANDLE_NULL;
  });
}
VIADUCT_MPI(T_pvar_handle_free);

int PMPI_T_pvar_start(MPI_T_pvar_session session, MPI_T_pvar_handle handle) {
  return tool::call([&] { tool::refuse_for(session, handle, MPI_T_ERR_PVAR_NO_STARTSTOP); });
}
VIADUCT_MPI(T_pvar_start);

int PMPI_T_pvar_stop(MPI_T_pvar_session session, MPI_T_pvar_handle handle) {
  return tool::call([&] { tool::refuse_for(session, handle, MPI_T_ERR_PVAR_NO_STARTSTOP); });
}
VIADUCT_MPI(T_pvar_stop);

int PMPI_T_pvar_read(MPI_T_pvar_session session, MPI_T_pvar_handle handle, void* buf) {
  return tool::call([&] {
    const auto& variable =
        tool::entry(tool::performance_variables(), tool::handle_of(session, handle).variable);
    tool::required(buf);
    if (Process::phase() != Process::Phase::running) throw ToolError{MPI_T_ERR_NOT_ACCESSIBLE};
    const auto channels = Transfer::self().all_counters();
    *static_cast<unsigned long long*>(buf) =
        channels[variable.channel_index].counters[variable.counter_index].value;
  });
}
VIADUCT_MPI(T_pvar_read);

int PMPI_T_pvar_write(MPI_T_pvar_session session, MPI_T_pvar_handle handle, const void*) {
  return tool::call([&] { tool::refuse_for(session, handle, MPI_T_ERR_PVAR_NO_WRITE); });
}
VIADUCT_MPI(T_pvar_write);

int PMPI_T_pvar_reset(MPI_T_pvar_session session, MPI_T_pvar_handle handle) {
  return tool::call([&] { tool::refuse_for(session, handle, MPI_T_ERR_PVAR_NO_WRITE); });
}
VIADUCT_MPI(T_pvar_reset);

int PMPI_T_pvar_readreset(MPI_T_pvar_session session, MPI_T_pvar_handle handle, void*) {
  return tool::call([&] { tool::refuse_for(session, handle, MPI_T_ERR_PVAR_NO_ATOMIC); });
}
VIADUCT_MPI(T_pvar_readreset);
