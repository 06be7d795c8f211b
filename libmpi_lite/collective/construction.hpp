// Communicators that are made of others (MPI 5.0, sections 7.4.2 and 7.6.3), for api/. All
// functions are collective, wait until they are done (but for one), and throw Error when they fail.
// They return nullptr where this process is not in the new communicator. The new communicator has
// no handle, name, attributes or info yet; its error handler is that of the old one.
#pragma once

#include "libmpi_lite/core/request.hpp"

namespace viaduct::mpi {

// MPI_Comm_dup without attributes and info: the same groups and topology.
Ref<Comm> duplicate(Comm& comm);
// MPI_Comm_idup: does not wait. `made` may be used once the request is complete.
Ref<Request> start_duplicate(Comm& comm, Ref<Comm>& made);
// MPI_Comm_create: of a part of the (local) group.
Ref<Comm> create(Comm& comm, const Ref<Group>& group);
// MPI_Comm_create_group: the same, but only the members of `group` take part. `tag` tells calls
// apart that are under way at the same time.
Ref<Comm> create_from_group(Comm& comm, const Ref<Group>& group, int tag);
// MPI_Comm_split: one communicator for each color, its ranks in the order of the keys.
// MPI_UNDEFINED: this process is in none.
Ref<Comm> split(Comm& comm, int color, int key);

// MPI_Intercomm_create. `peer` and `remote_leader` are significant at the local leader only. Throws
// Error if the groups overlap.
Ref<Comm> create_intercomm(Comm& local, int local_leader, Comm* peer, int remote_leader, int tag);
// MPI_Intercomm_merge. The group whose leader says `high` comes second; if both say the same, the
// group whose leader is the later process in MPI_COMM_WORLD.
Ref<Comm> merge(Comm& intercomm, bool high);

}  // namespace viaduct::mpi
