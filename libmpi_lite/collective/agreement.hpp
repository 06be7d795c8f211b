// What processes have to tell each other when they make a communicator.
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

// Waits; throws Error when the operation has failed.
void finish(Ref<Request> request);

// Over an intracommunicator.
void broadcast(Comm& comm, std::span<int> data, int root);
// Of varying length: only the root knows it.
void broadcast(Comm& comm, std::vector<int>& data, int root);

// Two processes tell each other; both call it.
std::vector<int> exchange(const Envelope& with, std::vector<int> ours);
// The two groups of an intercommunicator: rank 0 of each has something to tell the other group.
// Gives what the other one's had.
std::vector<int> exchange_between_groups(Comm& intercomm, std::vector<int> ours);

// The largest context of those that are the next free one of some process; intracommunicators.
// Whoever agrees on one (it is the same in all processes that will use it) takes it.
std::uint32_t largest_next_context(Comm& comm);
std::uint32_t take_context(std::uint32_t context);

}  // namespace viaduct::mpi
