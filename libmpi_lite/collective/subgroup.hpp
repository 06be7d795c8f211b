// A subgroup is the ranks that take part in one stage of a collective, in the order in which the
// stage counts them. The stages are the two levels of a hierarchy (ranks of a node, and one rank of
// each node); a tree tells a rank its parent and children in a subgroup.
//
// Subgroups are values of a coroutine frame; they refer to arrays and trees of the Plan, or arrays
// of the Hierarchy, which must outlive them.
#pragma once

#include <algorithm>

#include "libmpi_lite/collective/collective_request.hpp"
#include "libmpi_lite/collective/plan.hpp"

namespace viaduct::mpi {

class Tree;

struct Subgroup {
  Collective* collective;
  const int* ranks;  // in the communicator, by index in the subgroup; nullptr: all, in rank order
  int size;
  int me;                  // index of this process; -1: it is not in the subgroup
  bool oversubscribed;     // all on one node, where processes share CPUs: trees are stars
  Trees* trees = nullptr;  // nullptr: no algorithm that runs over it has a tree

  Collective& op() const { return *collective; }
  int rank(int index) const { return ranks ? ranks[index] : index; }
  // The index `distance` places after `index`, cyclically; `distance` lies in -size..size.
  int after(int index, int distance) const {
    const int to = index + distance;
    return to < 0 ? to + size : to < size ? to : to - size;
  }
  const Tree& tree(int root) const { return trees->of(*this, root); }
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
  return {&op,
          nullptr,
          comm.size(),
          comm.rank(),
          plan.oversubscribed() && plan.nodes() == 1,
          &plan.all_trees};
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

// This process's place in a tree over a subgroup. A subtree is a row of consecutive places that
// starts at its top, and the subtrees of a process's children follow one another in it. So what a
// subtree has gathered is in order without sorting. If the root has index 0, places are indices.
//
// The tree is binomial, along the edges of the hypercube (hypercube.hpp) whatever the root, and
// ceil(log2(size)) messages one after another reach all processes. Its shape depends on the root:
//
//    * The root is the first member of its group: the places are those of the groups, by label XOR
//      the root's, each group's second member next to the first one, which is its parent.
//    * It is a second member: these are a hypercube of their own, whose places come first. The last
//      child of the root is the first member of its group, the top of the tree of all first
//      members.
//
// In an oversubscribed subgroup the tree is a star, where each process waits for the root only, and
// place p is the index p after the root's. With 8 processes and the root 0:
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
  int children() const { return static_cast<int>(children_.size()); }
  // The index of child k in the subgroup. Children are in the order of places, smallest subtree
  // first.
  int child(int k) const { return at(k).index; }
  // Where the subtree of child k starts, in places after this process's own, and how many places it
  // has.
  int offset(int k) const { return at(k).offset; }
  int width(int k) const { return at(k).width; }
  int place() const { return place_; }
  int width() const { return width_; }  // places of this process's subtree, its own included

 private:
  struct Child {
    int index, offset, width;
  };
  const Child& at(int k) const { return children_[static_cast<std::size_t>(k)]; }

  PoolVector<Child> children_;
  int place_ = 0, parent_ = -1, width_;
};

// The index in the subgroup of the process at that place of the tree with that root.
int index_of_place(const Subgroup& subgroup, int root, int place);

}  // namespace viaduct::mpi
