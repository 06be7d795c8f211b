// Makes subgroups from the plan of a communicator, and computes places in trees.
#include "libmpi_lite/collective/subgroup.hpp"

#include <algorithm>
#include <bit>

namespace viaduct::mpi {

Subgroup by_node(Collective& op) {
  const Plan& plan = plan_of(op.comm());
  if (plan.ordered()) return all_ranks(op);
  const std::span<const int> ranks = plan.by_node();
  const auto me = std::find(ranks.begin(), ranks.end(), op.comm().rank());
  return {&op, ranks.data(), op.comm().size(), static_cast<int>(me - ranks.begin()), false};
}

Hierarchy::Hierarchy(Collective& op, int root_rank) {
  const Plan& plan = plan_of(op.comm());
  const int rank = op.comm().rank(), node = plan.my_node();
  root = root_rank < 0 ? 0 : plan.node_of(root_rank);

  const std::span<const int> members = plan.members(node);
  local = {&op, members.data(), static_cast<int>(members.size()), plan.local_index(rank),
           plan.oversubscribed()};
  local_leader = root_rank >= 0 && root == node ? plan.local_index(root_rank) : 0;

  // Copied only if the root is not the leader of its node in the plan anyway.
  std::span<const int> leader_ranks = plan.leaders();
  if (root_rank >= 0 && leader_ranks[static_cast<std::size_t>(root)] != root_rank) {
    leader_ranks_.assign(leader_ranks.begin(), leader_ranks.end());
    leader_ranks_[static_cast<std::size_t>(root)] = root_rank;
    leader_ranks = leader_ranks_;
  }
  leaders = {&op, leader_ranks.data(), plan.nodes(), local.me == local_leader ? node : -1, false};
}

Tree::Tree(const Subgroup& subgroup, int root)
    : size_(subgroup.size),
      root_(root),
      place_(subgroup.after(subgroup.me, -root)),
      star_(subgroup.oversubscribed) {
  if (star_) {
    if (place_ == 0) {
      children_ = size_ - 1;
      width_ = size_;
    } else {
      parent_ = root;
    }
    return;
  }
  const auto place = static_cast<unsigned>(place_), size = static_cast<unsigned>(size_);
  // The subtree of place p has the places below p + (lowest set bit of p); the root's has all.
  const unsigned reach = place == 0 ? std::bit_ceil(size) : place & -place;
  if (place != 0) parent_ = (place_ - static_cast<int>(reach) + root) % size_;
  width_ = static_cast<int>(std::min(reach, size - place));
  for (unsigned step = 1; step < reach && place + step < size; step <<= 1) ++children_;
}

}  // namespace viaduct::mpi
