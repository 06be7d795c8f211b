// Ordered sets of processes (MPI 5.0, chapter 7.3). A process is its rank in MPI_COMM_WORLD.
#pragma once

#include <span>
#include <unordered_map>
#include <vector>

#include "libmpi_lite/core/handle.hpp"

namespace viaduct::mpi {

class Group final : public Counted {
 public:
  // `me`: this process, wherever it is in the list or if it is not.
  Group(std::vector<int> world_ranks, int me);

  int size() const { return static_cast<int>(world_ranks_.size()); }
  int me() const { return me_; }
  int rank() const { return rank_; }  // of this process; MPI_UNDEFINED if it is not a member
  int world_rank(int rank) const { return world_ranks_[static_cast<std::size_t>(rank)]; }
  std::span<const int> world_ranks() const { return world_ranks_; }
  // Where a process is in this group, or MPI_UNDEFINED.
  int rank_of(int world_rank) const;

 private:
  std::vector<int> world_ranks_;
  int me_, rank_;
  bool identity_;                               // rank i is process i: nothing to look up
  mutable std::unordered_map<int, int> ranks_;  // made at the first look-up
};

// Constructors of section 7.3.2. Processes keep the order they have in `a`, then that in `b`.
Ref<Group> unite(const Group& a, const Group& b);
Ref<Group> intersect(const Group& a, const Group& b);
Ref<Group> subtract(const Group& a, const Group& b);
// Those ranks of the group, in that order / all others. Throw Error for ranks that are outside or
// named twice.
Ref<Group> include(const Group& group, std::span<const int> ranks);
Ref<Group> exclude(const Group& group, std::span<const int> ranks);

// Ranks as MPI_Group_range_incl names them: (first, last, stride).
using RankRange = int[3];
std::vector<int> expand(const Group& group, std::span<const RankRange> ranges);

// MPI_IDENT, MPI_SIMILAR or MPI_UNEQUAL.
int compare(const Group& a, const Group& b);

inline HandleTable<Group, HandleKind::group> group_handles;

}  // namespace viaduct::mpi
