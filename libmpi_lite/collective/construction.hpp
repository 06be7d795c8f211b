// Communicators that are made of others (MPI 5.0, sections 7.4.2 and 7.6.3). All functions are
// collective. They give nullptr where this process is not in the new communicator; it has no handle
// yet, no name, attributes or info. Its error handler is that of the old one.
#pragma once

#include "libmpi_lite/core/comm.hpp"

namespace viaduct::mpi {

// With the same groups, and the topology.
Ref<Comm> duplicate(Comm& comm);
// Of a part of the (local) group.
Ref<Comm> create(Comm& comm, const Ref<Group>& group);
// The same, but only the members of the group take part.
Ref<Comm> create_from_group(Comm& comm, const Ref<Group>& group, int tag);
// One communicator for each color, in the order of the keys. MPI_UNDEFINED: none.
Ref<Comm> split(Comm& comm, int color, int key);

// `peer` and `remote_leader` matter in the local leader only. Throws Error if the groups overlap.
Ref<Comm> create_intercomm(Comm& local, int local_leader, Comm* peer, int remote_leader, int tag);
// The group whose leader says `high` comes second; if both say the same, the one whose leader is
// the later process in MPI_COMM_WORLD.
Ref<Comm> merge(Comm& intercomm, bool high);

}  // namespace viaduct::mpi
