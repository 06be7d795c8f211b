// Communicators made of others (MPI 5.0, sections 7.4.2 and 7.6.3). Arguments are checked here;
// agreement on members and contexts is in collective/construction.cpp.
//
// Choices where the standard leaves one: the only hardware that MPI_Comm_split_type knows is the
// node ("mpi_shared_memory"), that is, processes that see one /proc and are in one network
// namespace (docs/mpi.md). It knows no process sets by name; sessions do.
#include <algorithm>
#include <utility>

#include "libmpi_lite/api/arguments/arguments.hpp"
#include "libmpi_lite/api/arguments/hints.hpp"
#include "libmpi_lite/collective/collective.hpp"
#include "libmpi_lite/collective/construction.hpp"
#include "libmpi_lite/core/keyval.hpp"

using namespace viaduct::mpi;

namespace {

// The handle of a duplicate. It exists before attributes are copied, because the copy callbacks
// take it; if one fails, the new communicator is gone again.
MPI_Comm give_handle(MPI_Comm comm, const Ref<Comm>& made, const Info* hints) {
  if (hints) store_hints(*made, *hints);
  const MPI_Comm handle = new_comm_handle(made);
  try {
    copy_comm_attributes(comm, handle);
  } catch (...) {
    comm_handles.remove(reinterpret_cast<std::uintptr_t>(handle));
    throw;
  }
  return handle;
}

// MPI_Comm_dup and MPI_Comm_dup_with_info.
int duplicate(const char* function, MPI_Comm comm, MPI_Info info, MPI_Comm* newcomm) {
  return call_creating_comm(function, comm, newcomm, [&](Comm& c) {
    check_pointer(newcomm, "newcomm");
    const Info* hints = check_hints(info);
    *newcomm = give_handle(comm, duplicate(c), hints);
  });
}

// MPI_Comm_idup and MPI_Comm_idup_with_info. The program has the handle at once, and may use it
// when the request is complete; the attributes are those that `comm` has now (section 7.4.2).
int start_duplicate(const char* function, MPI_Comm comm, MPI_Info info, MPI_Comm* newcomm,
                    MPI_Request* request) {
  return call_creating_comm(function, comm, newcomm, [&](Comm& c) {
    check_pointer(newcomm, "newcomm");
    check_pointer(request, "request");
    const Info* hints = check_hints(info);
    Ref<Comm> made;
    Ref<Request> settled = start_duplicate(c, made);
    *newcomm = give_handle(comm, made, hints);
    *request = new_handle<MPI_Request>(request_handles, std::move(settled));
  });
}

// The members of a new communicator must be in the old one's (local) group (section 7.4.2).
Ref<Group> check_subgroup(const Comm& comm, MPI_Group group) {
  Group& g = check_group(group);
  if (subtract(g, *comm.group())->size() > 0)
    fail(MPI_ERR_GROUP, "argument group has processes that are not in argument comm");
  return Ref<Group>(&g);
}

// ---- MPI_Comm_split_type -----------------------------------------------------------------------

constexpr const char* kResourceType = "mpi_hw_resource_type";
constexpr const char* kSharedMemory = "mpi_shared_memory";

// The number of this process's node: the lowest rank in MPI_COMM_WORLD that runs on it. Fits as a
// color.
int node() {
  return Process::self().node_of(Process::self().rank());
}

// Whether the hints ask for a split by nodes: mpi_hw_resource_type = mpi_shared_memory.
bool asks_for_shared_memory(const Info* hints) {
  return hints && std::ranges::find(hints->entries, std::pair<std::string, std::string>(
                                                        kResourceType, kSharedMemory)) !=
                      hints->entries.end();
}

// MPI_COMM_TYPE_HW_UNGUIDED: the info object tells the program what the parts share.
void set_resource_type(MPI_Info info) {
  if (info == MPI_INFO_NULL) return;
  auto& entries = check_info(info).entries;
  std::erase_if(entries, [](const auto& entry) { return entry.first == kResourceType; });
  entries.emplace_back(kResourceType, kSharedMemory);
}

// The color of this process in the split; MPI_UNDEFINED gives MPI_COMM_NULL, also for a resource
// type that this library does not know.
int color_of_type(int split_type, MPI_Info info) {
  const Info* hints = check_hints(info);
  switch (split_type) {
    case MPI_COMM_TYPE_SHARED:
    case MPI_COMM_TYPE_HW_UNGUIDED: return node();
    case MPI_COMM_TYPE_HW_GUIDED:
    case MPI_COMM_TYPE_RESOURCE_GUIDED:  // process sets are known by name to sessions only
      return asks_for_shared_memory(hints) ? node() : MPI_UNDEFINED;
    case MPI_UNDEFINED: return MPI_UNDEFINED;
    default:
      fail(MPI_ERR_ARG, "argument split_type is %d; it must be one of MPI_COMM_TYPE_*", split_type);
  }
}

}  // namespace

int PMPI_Comm_dup(MPI_Comm comm, MPI_Comm* newcomm) {
  return duplicate("MPI_Comm_dup", comm, MPI_INFO_NULL, newcomm);
}
VIADUCT_MPI(Comm_dup);

int PMPI_Comm_dup_with_info(MPI_Comm comm, MPI_Info info, MPI_Comm* newcomm) {
  return duplicate("MPI_Comm_dup_with_info", comm, info, newcomm);
}
VIADUCT_MPI(Comm_dup_with_info);

int PMPI_Comm_idup(MPI_Comm comm, MPI_Comm* newcomm, MPI_Request* request) {
  return start_duplicate("MPI_Comm_idup", comm, MPI_INFO_NULL, newcomm, request);
}
VIADUCT_MPI(Comm_idup);

int PMPI_Comm_idup_with_info(MPI_Comm comm, MPI_Info info, MPI_Comm* newcomm,
                             MPI_Request* request) {
  return start_duplicate("MPI_Comm_idup_with_info", comm, info, newcomm, request);
}
VIADUCT_MPI(Comm_idup_with_info);

int PMPI_Comm_create(MPI_Comm comm, MPI_Group group, MPI_Comm* newcomm) {
  return call_creating_comm("MPI_Comm_create", comm, newcomm, [&](Comm& c) {
    check_pointer(newcomm, "newcomm");
    *newcomm = new_comm_handle(create(c, check_subgroup(c, group)));
  });
}
VIADUCT_MPI(Comm_create);

// Collective over the group only; `tag` keeps concurrent calls of other threads or groups apart.
int PMPI_Comm_create_group(MPI_Comm comm, MPI_Group group, int tag, MPI_Comm* newcomm) {
  return call_creating_comm("MPI_Comm_create_group", comm, newcomm, [&](Comm& c) {
    check_intra(c);
    check_pointer(newcomm, "newcomm");
    const Ref<Group> g = check_subgroup(c, group);
    if (tag < 0) fail(MPI_ERR_TAG, "argument tag is %d; it must not be negative", tag);
    *newcomm =
        g->rank() == MPI_UNDEFINED ? MPI_COMM_NULL : new_comm_handle(create_from_group(c, g, tag));
  });
}
VIADUCT_MPI(Comm_create_group);

int PMPI_Comm_split(MPI_Comm comm, int color, int key, MPI_Comm* newcomm) {
  return call_creating_comm("MPI_Comm_split", comm, newcomm, [&](Comm& c) {
    check_pointer(newcomm, "newcomm");
    if (color < 0 && color != MPI_UNDEFINED)
      fail(MPI_ERR_ARG, "argument color is %d; it must be MPI_UNDEFINED or not negative", color);
    *newcomm = new_comm_handle(split(c, color, key));
  });
}
VIADUCT_MPI(Comm_split);

int PMPI_Comm_split_type(MPI_Comm comm, int split_type, int key, MPI_Info info, MPI_Comm* newcomm) {
  return call_creating_comm("MPI_Comm_split_type", comm, newcomm, [&](Comm& c) {
    check_pointer(newcomm, "newcomm");
    Ref<Comm> part = split(c, color_of_type(split_type, info), key);
    if (part && split_type == MPI_COMM_TYPE_HW_UNGUIDED) {
      // The standard wants parts that are strictly smaller than the communicator (section 7.4.2).
      // With one node there is none, and the result is MPI_COMM_NULL.
      if (part->size() == c.size() && part->peers() == c.peers())
        part = nullptr;
      else
        set_resource_type(info);
    }
    *newcomm = new_comm_handle(std::move(part));
  });
}
VIADUCT_MPI(Comm_split_type);

// The only hardware resource that the library knows is the node, which a process stays on.
int PMPI_Get_hw_resource_info(MPI_Info* hw_info) {
  return call_any_time("MPI_Get_hw_resource_info", [&] {
    check_pointer(hw_info, "hw_info");
    Ref<Info> info = make<Info>();
    info->entries.emplace_back(kSharedMemory, "true");
    *hw_info = new_handle<MPI_Info>(info_handles, std::move(info));
  });
}
VIADUCT_MPI(Get_hw_resource_info);

int PMPI_Intercomm_create(MPI_Comm local_comm, int local_leader, MPI_Comm peer_comm,
                          int remote_leader, int tag, MPI_Comm* newintercomm) {
  return call_creating_comm("MPI_Intercomm_create", local_comm, newintercomm, [&](Comm& local) {
    check_intra(local, "local_comm");
    check_rank(local_leader, local.size(), "local_leader");
    if (tag < 0) fail(MPI_ERR_TAG, "argument tag is %d; it must not be negative", tag);
    check_pointer(newintercomm, "newintercomm");
    // `peer_comm` and `remote_leader` are significant at the local leader only.
    Comm* peer = nullptr;
    if (local.rank() == local_leader) {
      peer = &check_comm(peer_comm, "peer_comm");
      check_rank(remote_leader, peer->peers(), "remote_leader");
    }
    *newintercomm =
        new_comm_handle(create_intercomm(local, local_leader, peer, remote_leader, tag));
  });
}
VIADUCT_MPI(Intercomm_create);

// The group that passes a true `high` comes second in the ranks of the result.
int PMPI_Intercomm_merge(MPI_Comm intercomm, int high, MPI_Comm* newintracomm) {
  return call_creating_comm("MPI_Intercomm_merge", intercomm, newintracomm, [&](Comm& c) {
    check_inter(c);
    check_pointer(newintracomm, "newintracomm");
    *newintracomm = new_comm_handle(merge(c, high != 0));
  });
}
VIADUCT_MPI(Intercomm_merge);
