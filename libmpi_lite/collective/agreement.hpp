// The messages between processes that make a communicator: they agree on its context, and two
// groups exchange their lists of members. construction.cpp puts these steps together. The functions
// agree_on_context() for a communicator or a group are declared in core/comm.hpp.
//
// All functions are collective over the processes that they name. All wait until they are done, and
// throw Error when they fail. If a process had been lost before, they fail at all processes that
// take part.
#pragma once

#include <span>
#include <vector>

#include "libmpi_lite/transfer/transfer.hpp"

namespace viaduct::mpi {

// A tag in the collective context for a user's tag; from 2^30 on, where no collective has its tags.
// The highest bits of the user's tag are lost. That does no harm: processes that share a
// communicator make others one after the other, so two such messages are not mixed up.
inline int agreement_tag(int tag) {
  constexpr int kFirst = 1 << 30;
  return kFirst | (tag & (kFirst - 1));
}

// How two groups talk to each other: only their leaders exchange messages.
struct Leaders {
  Comm* local;     // the communicator of this group
  int leader;      // of this group, its rank in `local`
  Envelope other;  // significant at the leader: where to reach the other group's leader
};
Leaders leaders_of(Comm& intercomm);  // rank 0 on both sides

// MPI_Bcast over an intracommunicator; waits.
void broadcast(Comm& comm, std::span<int> data, int root);
// Returns the list of the other group's leader. `ours` is significant at the leader only.
std::vector<int> exchange_lists(const Leaders& leaders, const std::vector<int>& ours);
// As agree_on_context(), for two groups that need not have a communicator yet.
std::uint32_t agree_on_context(const Leaders& leaders);

// Starts to give a context to `made`, a duplicate of `comm` that has none yet. Does not wait: when
// the request is complete, the communicator may be used. Any number may be under way at the same
// time, for different communicators in any order.
Ref<Request> start_settling(Comm& comm, Ref<Comm> made);

}  // namespace viaduct::mpi
