// Makes teams from the plan of a communicator, and computes places in trees.
#include "libmpi_lite/collective/team.hpp"

#include <algorithm>
#include <bit>

namespace viaduct::mpi {

Team by_node(Collective& op) {
  const Plan& plan = plan_of(op.comm());
  if (plan.ordered()) return everyone(op);
  const std::span<const int> ranks = plan.by_node();
  const auto me = std::find(ranks.begin(), ranks.end(), op.comm().rank());
  return {&op, ranks.data(), op.comm().size(), static_cast<int>(me - ranks.begin()), false};
}

Stages::Stages(Collective& op, int root_rank) {
  const Plan& plan = plan_of(op.comm());
  const int rank = op.comm().rank(), node = plan.my_node();
  root = root_rank < 0 ? 0 : plan.node_of(root_rank);

  const std::span<const int> members = plan.members(node);
  local = {&op, members.data(), static_cast<int>(members.size()), plan.local_index(rank),
           plan.oversubscribed()};
  head = root_rank >= 0 && root == node ? plan.local_index(root_rank) : 0;

  // Copied only if the root is not the leader of its node anyway.
  std::span<const int> heads = plan.leaders();
  if (root_rank >= 0 && heads[static_cast<std::size_t>(root)] != root_rank) {
    heads_.assign(heads.begin(), heads.end());
    heads_[static_cast<std::size_t>(root)] = root_rank;
    heads = heads_;
  }
  leaders = {&op, heads.data(), plan.nodes(), local.me == head ? node : -1, false};
}

Tree::Tree(const Team& team, int root)
    : size_(team.size),
      root_(root),
      place_(team.after(team.me, -root)),
      star_(team.oversubscribed) {
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
