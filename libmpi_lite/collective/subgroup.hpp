// A subgroup is the ranks that take part in one stage of a collective, in the order in which the
// stage counts them. The stages are the two levels of a hierarchy (ranks of a node, and one rank of
// each node); a tree tells a rank its parent and children in a subgroup.
//
// Subgroups and trees are values of a coroutine frame; they refer to arrays of the Plan, or of the
// Hierarchy, which must outlive them.
#pragma once

#include <algorithm>

#include "libmpi_lite/collective/collective_request.hpp"
#include "libmpi_lite/collective/plan.hpp"

namespace viaduct::mpi {

struct Subgroup {
  Collective* collective;
  const int* ranks;  // in the communicator, by index in the subgroup; nullptr: all, in rank order
  int size;
  int me;               // index of this process; -1: it is not in the subgroup
  bool oversubscribed;  // all on one node, where processes share CPUs: trees are stars

  Collective& op() const { return *collective; }
  int rank(int index) const { return ranks ? ranks[index] : index; }
  // The index `distance` places after `index`, cyclically; `distance` lies in -size..size.
  int after(int index, int distance) const {
    const int to = index + distance;
    return to < 0 ? to + size : to < size ? to : to - size;
  }
  // `to` and `from` are indices in the subgroup.
  Ref<Request> send(int to, const Items& items) const { return op().send(rank(to), items); }
  Ref<Request> receive(int from, const Items& items) const {
    return op().receive(rank(from), items);
  }
};

// All ranks in rank order.
inline Subgroup all_ranks(Collective& op) {
  Comm& comm = op.comm();
  const Plan& plan = plan_of(comm);
  return {&op, nullptr, comm.size(), comm.rank(), plan.oversubscribed() && plan.nodes() == 1};
}
// All ranks, node after node: for rings, which then enter and leave each node once.
Subgroup by_node(Collective& op);

// The subgroups of an operation that works in stages. The leader of a node is its leader in the
// plan; on the root's node it is the root, so that its data need not take one step more.
class Hierarchy {
 public:
  explicit Hierarchy(Collective& op, int root = -1);  // `root`: a rank; -1: no root
  Hierarchy(const Hierarchy&) = delete;
  Hierarchy& operator=(const Hierarchy&) = delete;

  Subgroup local;    // the ranks on this node, in rank order
  int local_leader;  // index in `local` of the leader of this node
  Subgroup leaders;  // the leaders of all nodes, in node order; .me is -1 in other processes
  int root;          // index in `leaders` of the root's node; 0 without a root

  bool is_leader() const { return leaders.me >= 0; }  // this process is the leader of its node

 private:
  PoolVector<int> leader_ranks_;  // behind leaders.ranks, if the root replaces its node's leader
};

// This process's place in a tree over a subgroup. Places count from the root: place p is the index
// p after the root's. A subtree is a row of consecutive places that starts at its top, and the
// subtrees of a process's children follow one another in it. So what a subtree has gathered is in
// order without sorting.
//
// The tree is binomial: child k has 2^k places, or what is left. In an oversubscribed subgroup it
// is a star, where each process waits for the root only. With 8 places:
//
//        binomial         star
//        0                0
//        |-- 1            |-- 1
//        |-- 2 -- 3       |-- 2
//        '-- 4 -- 5       :
//            '-- 6 -- 7   '-- 7
class Tree {
 public:
  Tree(const Subgroup& subgroup, int root);  // `root`: an index in the subgroup

  int parent() const { return parent_; }  // index in the subgroup; -1 at the root
  int children() const { return children_; }
  // The index of child k in the subgroup. Children are in the order of places, smallest subtree
  // first.
  int child(int k) const { return (place_ + step(k) + root_) % size_; }
  // Where the subtree of child k starts, in places after this process's own, and how many places it
  // has.
  int offset(int k) const { return step(k); }
  int width(int k) const { return star_ ? 1 : std::min(step(k), size_ - place_ - step(k)); }
  int place() const { return place_; }
  int width() const { return width_; }  // places of this process's subtree, its own included

 private:
  int step(int k) const { return star_ ? k + 1 : 1 << k; }

  int size_, root_, place_, parent_ = -1, children_ = 0, width_ = 1;
  bool star_;
};

}  // namespace viaduct::mpi
