// What processes have to tell each other when they make a communicator. All functions wait, and
// throw Error when they fail; for want of a process that had been lost before they do so in all
// processes that take part.
#pragma once

#include <span>
#include <vector>

#include "libmpi_lite/transfer/transfer.hpp"

namespace viaduct::mpi {

// Tags in the collective context from here on are not those of collectives. Processes that share a
// communicator make others one after the other, so tags that fall together do no harm.
inline int agreement_tag(int tag) {
  constexpr int kFirst = 1 << 30;
  return kFirst | (tag & (kFirst - 1));
}

// How two groups talk to each other: this one, its leader, and at the leader where to find the
// other group's.
struct Leaders {
  Comm* local;
  int leader;
  Envelope other;
};
Leaders leaders_of(Comm& intercomm);  // rank 0 on both sides

// Over an intracommunicator.
void broadcast(Comm& comm, std::span<int> data, int root);
// The leaders' lists, handed to the processes of the other group.
std::vector<int> exchange_lists(const Leaders& leaders, const std::vector<int>& ours);
// As agree_on_context(), for two groups that need not have a communicator yet.
std::uint32_t agree_on_context(const Leaders& leaders);

}  // namespace viaduct::mpi
