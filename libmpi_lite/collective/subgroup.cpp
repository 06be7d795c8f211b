// Makes subgroups from the plan of a communicator, and computes places in trees.
#include "libmpi_lite/collective/subgroup.hpp"

#include <algorithm>
#include <bit>

#include "libmpi_lite/collective/hypercube.hpp"

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
  local = {&op,
           members.data(),
           static_cast<int>(members.size()),
           plan.local_index(rank),
           plan.oversubscribed(),
           &plan.local_trees};
  local_leader = root_rank >= 0 && root == node ? plan.local_index(root_rank) : 0;

  // Copied only if the root is not the leader of its node in the plan anyway.
  std::span<const int> leader_ranks = plan.leaders();
  if (root_rank >= 0 && leader_ranks[static_cast<std::size_t>(root)] != root_rank) {
    leader_ranks_.assign(leader_ranks.begin(), leader_ranks.end());
    leader_ranks_[static_cast<std::size_t>(root)] = root_rank;
    leader_ranks = leader_ranks_;
  }
  leaders = {&op,   leader_ranks.data(), plan.nodes(), local.me == local_leader ? node : -1,
             false, &plan.leader_trees};
}

namespace {

// A part of a tree that a search goes down: the labels from `first` on, of which `groups` are the
// first members and `pairs` the second ones; `top` is its top. Labels are relative to `first`.
struct TreePart {
  int first, groups, pairs, top;

  static TreePart of(int first, int size, int top) {
    const Hypercube cube(size);
    return {first, cube.groups(), cube.pairs(), top - first};
  }
  bool top_is_second() const { return top >= groups; }
  // If the top is a second member: the second members, which go first, and the first ones.
  TreePart seconds() const { return of(first + groups, pairs, first + top); }
  TreePart firsts() const { return {first, groups, 0, top - groups}; }
  int dimensions() const { return std::countr_zero(static_cast<unsigned>(groups)); }
  // How many processes are in the groups whose labels differ from the top's in the lowest k bits
  // only. Their places start at the top's; the subtree of the group that differs in bit k follows.
  int places(int k) const {
    const int row = 1 << k, from = top & -row;
    return row + std::clamp(pairs - from, 0, row);
  }
};

}  // namespace

Tree::Tree(const Subgroup& subgroup, int root) : width_(subgroup.size) {
  const int size = subgroup.size;
  if (subgroup.oversubscribed) {
    place_ = subgroup.after(subgroup.me, -root);
    if (place_ == 0) {
      children_.reserve(static_cast<std::size_t>(size));
      for (int i = 1; i < size; ++i) children_.push_back({subgroup.after(root, i), i, 1});
    } else {
      parent_ = root;
      width_ = 1;
    }
    return;
  }

  // The search for this process, first for the part that it is in. Children are found largest
  // first.
  const Hypercube cube(size);
  const int me = cube.label(subgroup.me);
  TreePart part = TreePart::of(0, size, cube.label(root));
  children_.reserve(static_cast<std::size_t>(std::bit_width(static_cast<unsigned>(size))));
  while (part.top_is_second()) {
    const TreePart firsts = part.firsts();
    const Child child{cube.index(part.first + firsts.top), part.pairs, part.groups};
    if (me < part.first + part.groups) {
      parent_ = cube.index(part.first + part.top);
      place_ = child.offset;
      width_ = child.width;
      part = firsts;
    } else {
      if (subgroup.me == root) children_.push_back(child);
      part = part.seconds();
    }
  }
  // Then for its group, one bit of the label after another.
  const int group = (me - part.first) % part.groups;
  int dimensions = part.dimensions();
  while (part.top != group) {
    dimensions = static_cast<int>(std::bit_width(static_cast<unsigned>(part.top ^ group))) - 1;
    parent_ = cube.index(part.first + part.top);
    place_ += part.places(dimensions);
    part.top ^= 1 << dimensions;
    width_ = part.places(dimensions);
  }
  if (me >= part.first + part.groups) {
    parent_ = cube.index(part.first + group);
    ++place_;
    width_ = 1;
    return;
  }
  for (int k = dimensions - 1; k >= 0; --k) {
    TreePart child = part;
    child.top ^= 1 << k;
    children_.push_back({cube.index(part.first + child.top), part.places(k), child.places(k)});
  }
  if (group < part.pairs) children_.push_back({cube.index(part.first + part.groups + group), 1, 1});
  std::reverse(children_.begin(), children_.end());
}

Trees::Trees() = default;
Trees::~Trees() = default;

const Tree& Trees::make(const Subgroup& subgroup, int root) {
  by_root_.resize(static_cast<std::size_t>(subgroup.size));
  auto& tree = by_root_[static_cast<std::size_t>(root)];
  tree = std::make_unique<const Tree>(subgroup, root);
  return *tree;
}

int index_of_place(const Subgroup& subgroup, int root, int place) {
  if (subgroup.oversubscribed) return subgroup.after(root, place);
  const Hypercube cube(subgroup.size);
  TreePart part = TreePart::of(0, subgroup.size, cube.label(root));
  while (part.top_is_second()) {
    const bool second = place < part.pairs;
    if (!second) place -= part.pairs;
    part = second ? part.seconds() : part.firsts();
  }
  for (int k = part.dimensions() - 1; k >= 0; --k) {
    if (place < part.places(k)) continue;
    place -= part.places(k);
    part.top ^= 1 << k;
  }
  return cube.index(part.first + part.top + place * part.groups);  // `place` is 0 or 1 by now
}

}  // namespace viaduct::mpi
