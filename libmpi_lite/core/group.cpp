// Group operations. Each look-up of a process takes constant time, so that an operation on two
// groups takes time in proportion to their sizes.
#include "libmpi_lite/core/group.hpp"

#include <mpi.h>

#include <algorithm>
#include <string>

#include "libmpi_lite/core/error.hpp"

namespace viaduct::mpi {

Group::Group(std::vector<int> world_ranks, int me, Ref<Session> session)
    : world_ranks_(std::move(world_ranks)),
      me_(me),
      rank_(MPI_UNDEFINED),
      identity_(true),
      session_(std::move(session)) {
  for (int i = 0; i < size(); ++i) {
    if (world_rank(i) == me) rank_ = i;
    if (world_rank(i) != i) identity_ = false;
  }
}

int Group::rank_of(int world_rank) const {
  if (identity_) return world_rank >= 0 && world_rank < size() ? world_rank : MPI_UNDEFINED;
  // Built on demand: most groups are only used from rank to process, or are identities.
  if (ranks_.empty())
    for (int i = 0; i < size(); ++i) ranks_.emplace(this->world_rank(i), i);
  const auto it = ranks_.find(world_rank);
  return it == ranks_.end() ? MPI_UNDEFINED : it->second;
}

namespace {

bool contains(const Group& group, int world_rank) {
  return group.rank_of(world_rank) != MPI_UNDEFINED;
}

// Those members of `a` that are in `b`, or those that are not.
std::vector<int> members(const Group& a, const Group& b, bool in_b) {
  std::vector<int> ranks;
  for (const int r : a.world_ranks())
    if (contains(b, r) == in_b) ranks.push_back(r);
  return ranks;
}

// Marks the ranks that are named. Throws Error for ranks outside the group or named twice.
std::vector<bool> named(const Group& group, std::span<const int> ranks) {
  std::vector<bool> in(static_cast<std::size_t>(group.size()));
  for (const int rank : ranks) {
    if (rank < 0 || rank >= group.size())
      throw Error(MPI_ERR_RANK, "rank " + std::to_string(rank) +
                                    " is not in the group, which has " +
                                    std::to_string(group.size()) + " processes");
    if (in[static_cast<std::size_t>(rank)])
      throw Error(MPI_ERR_RANK, "rank " + std::to_string(rank) + " is named twice");
    in[static_cast<std::size_t>(rank)] = true;
  }
  return in;
}

}  // namespace

Ref<Group> unite(const Group& a, const Group& b) {
  std::vector<int> ranks(a.world_ranks().begin(), a.world_ranks().end());
  const std::vector<int> new_ones = members(b, a, false);
  ranks.insert(ranks.end(), new_ones.begin(), new_ones.end());
  return make<Group>(std::move(ranks), a.me(), a.session());
}

Ref<Group> intersect(const Group& a, const Group& b) {
  return make<Group>(members(a, b, true), a.me(), a.session());
}

Ref<Group> subtract(const Group& a, const Group& b) {
  return make<Group>(members(a, b, false), a.me(), a.session());
}

Ref<Group> include(const Group& group, std::span<const int> ranks) {
  named(group, ranks);
  std::vector<int> chosen;
  for (const int rank : ranks) chosen.push_back(group.world_rank(rank));
  return make<Group>(std::move(chosen), group.me(), group.session());
}

Ref<Group> exclude(const Group& group, std::span<const int> ranks) {
  const std::vector<bool> out = named(group, ranks);
  std::vector<int> left;
  for (int rank = 0; rank < group.size(); ++rank)
    if (!out[static_cast<std::size_t>(rank)]) left.push_back(group.world_rank(rank));
  return make<Group>(std::move(left), group.me(), group.session());
}

std::vector<int> expand(const Group& group, std::span<const RankRange> ranges) {
  std::vector<int> ranks;
  for (const RankRange& range : ranges) {
    // In 64 bits: sums of what a program may have passed overflow an int.
    const std::int64_t first = range[0], last = range[1], stride = range[2];
    const auto refuse = [&](int code, const char* why) {
      throw Error(code, "range (" + std::to_string(first) + ", " + std::to_string(last) + ", " +
                            std::to_string(stride) + ") " + why);
    };
    if (stride == 0) refuse(MPI_ERR_ARG, "has a stride of 0");
    if ((first < last && stride < 0) || (first > last && stride > 0))
      refuse(MPI_ERR_ARG, "has a stride that leads away from its end");
    // Only the ranks that are reached have to exist (section 7.3.2); `last` need not be one.
    const std::int64_t reached = first + (last - first) / stride * stride;
    if (std::min(first, reached) < 0 || std::max(first, reached) >= group.size())
      refuse(MPI_ERR_RANK, "reaches ranks that are not in the group");
    for (std::int64_t rank = first; stride > 0 ? rank <= last : rank >= last; rank += stride)
      ranks.push_back(static_cast<int>(rank));
  }
  return ranks;
}

int compare(const Group& a, const Group& b) {
  if (std::ranges::equal(a.world_ranks(), b.world_ranks())) return MPI_IDENT;
  if (a.size() != b.size()) return MPI_UNEQUAL;
  return members(a, b, true).size() == static_cast<std::size_t>(a.size()) ? MPI_SIMILAR
                                                                          : MPI_UNEQUAL;
}

}  // namespace viaduct::mpi
