// Groups: ordered sets of processes (MPI 5.0, section 7.3). A process is named by its rank in
// MPI_COMM_WORLD ("world rank"). Immutable. Communicators, the handle table and other holders keep
// a group alive (Ref).
#pragma once

#include <span>
#include <unordered_map>
#include <vector>

#include "libmpi_lite/core/session.hpp"

namespace viaduct::mpi {

class Group final : public Counted {
 public:
  // `world_ranks`: the members in order, each once. `me`: the world rank of this process, whether
  // it is a member or not.
  // `session`: the one that the group came from, if it did.
  Group(std::vector<int> world_ranks, int me, Ref<Session> session = nullptr);

  const Ref<Session>& session() const { return session_; }
  int size() const { return static_cast<int>(world_ranks_.size()); }
  int me() const { return me_; }
  int rank() const { return rank_; }  // of this process; MPI_UNDEFINED if it is not a member
  int world_rank(int rank) const { return world_ranks_[static_cast<std::size_t>(rank)]; }
  std::span<const int> world_ranks() const { return world_ranks_; }
  // The rank of a process in this group, or MPI_UNDEFINED. The first call may build a table.
  int rank_of(int world_rank) const;

 private:
  std::vector<int> world_ranks_;
  int me_, rank_;
  bool identity_;  // rank i is process i: nothing to look up
  Ref<Session> session_;
  mutable std::unordered_map<int, int> ranks_;  // world rank -> rank, made at the first look-up
};

// The set operations of section 7.3.2. Members keep the order that they have in `a`; then come
// those of `b` that are not in `a`, in the order of `b`.
Ref<Group> unite(const Group& a, const Group& b);
Ref<Group> intersect(const Group& a, const Group& b);
Ref<Group> subtract(const Group& a, const Group& b);
// The members with those ranks, in that order; all other members, in the order of the group. Throw
// Error (MPI_ERR_RANK) for ranks that are outside the group or named twice.
Ref<Group> include(const Group& group, std::span<const int> ranks);
Ref<Group> exclude(const Group& group, std::span<const int> ranks);

// A range of ranks as MPI_Group_range_incl names it: first, last, stride.
using RankRange = int[3];
// The ranks of all ranges in a row, perhaps some more than once. Throws Error for a range that is
// impossible or reaches ranks outside the group.
std::vector<int> expand(const Group& group, std::span<const RankRange> ranges);

// MPI_IDENT: same members, same order; MPI_SIMILAR: same members; else MPI_UNEQUAL.
int compare(const Group& a, const Group& b);

inline HandleTable<Group, HandleKind::group> group_handles;

}  // namespace viaduct::mpi
