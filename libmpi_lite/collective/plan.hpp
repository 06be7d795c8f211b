// Which ranks of a communicator share a node. Worked out at the first collective of the
// communicator, which owns the plan from then on. All ranks come to the same plan, but for
// my_node(); algorithms rely on that.
//
// Node numbers count the nodes of this communicator, in the order of their lowest ranks. The lowest
// rank of a node is its leader.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "libmpi_lite/core/comm.hpp"

namespace viaduct::mpi {

class Tree;
struct Subgroup;

// The trees over one subgroup of a communicator, by root; each is made when it is first needed.
class Trees {
 public:
  Trees();
  ~Trees();
  // `subgroup`: always the same one, but for its Collective. The tree lives as long as this.
  const Tree& of(const Subgroup& subgroup, int root) {
    const auto at = static_cast<std::size_t>(root);
    return at < by_root_.size() && by_root_[at] ? *by_root_[at] : make(subgroup, root);
  }

 private:
  const Tree& make(const Subgroup& subgroup, int root);
  std::vector<std::unique_ptr<const Tree>> by_root_;
};

class Plan final : public CommPlan {
 public:
  // `names[i]`: a number of rank i that is the same for the ranks of one node. `me`: this rank.
  // `oversubscribed`: see oversubscribed(); the same in all processes. `two_stage`:
  // VIADUCT_TWO_STAGE.
  Plan(std::span<const int> names, int me, bool oversubscribed, bool two_stage);

  int nodes() const { return static_cast<int>(leaders_.size()); }
  int node_of(int rank) const { return node_of_[at(rank)]; }
  int my_node() const { return my_node_; }
  // The ranks on a node, in rank order.
  std::span<const int> members(int node) const {
    return std::span(by_node_).subspan(at(starts_[at(node)]),
                                       at(starts_[at(node) + 1] - starts_[at(node)]));
  }
  int local_index(int rank) const { return local_index_[at(rank)]; }  // among the ranks of its node
  std::span<const int> leaders() const { return leaders_; }
  // All ranks, node after node. A ring in this order enters and leaves each node once.
  std::span<const int> by_node() const { return by_node_; }
  // by_node() is 0, 1, 2, ...: then the results of nodes, combined in node order, are in rank
  // order, as reductions with noncommutative operations need it.
  bool ordered() const { return ordered_; }
  // On some machine processes of the job share CPUs, or VIADUCT_OVERSUBSCRIBED says so. Then each
  // wait costs a switch to another process, and the algorithm with the fewest waits is the fastest.
  bool oversubscribed() const { return oversubscribed_; }
  // Algorithms work in stages (the ranks of each node, the leaders, the ranks of each node) rather
  // than over all ranks at once.
  bool staged() const { return staged_; }

  // The trees over all ranks, over the ranks of this node, and over the leaders of all nodes.
  mutable Trees all_trees, local_trees, leader_trees;

 private:
  static std::size_t at(int i) { return static_cast<std::size_t>(i); }

  // node_of_, local_index_: by rank. starts_: by node, where its ranks start in by_node_, and the
  // end. leaders_: by node.
  std::vector<int> node_of_, by_node_, starts_, local_index_, leaders_;
  int my_node_ = 0;
  bool ordered_ = true, oversubscribed_ = false, staged_ = false;
};

// Both only for an intracommunicator. The plan lives as long as the communicator. make_plan() may
// ask the process manager, and throws what that throws.
const Plan& make_plan(Comm& comm);
inline const Plan& plan_of(Comm& comm) {
  if (!comm.plan) [[unlikely]]
    return make_plan(comm);
  return static_cast<const Plan&>(*comm.plan);
}

}  // namespace viaduct::mpi
