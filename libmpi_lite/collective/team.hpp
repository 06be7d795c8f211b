// The ranks that take part in one stage of a collective, in the order in which the stage counts
// them, and the trees over them.
#pragma once

#include <algorithm>

#include "libmpi_lite/collective/collective_request.hpp"
#include "libmpi_lite/collective/plan.hpp"

namespace viaduct::mpi {

struct Team {
  Collective* collective;
  const int* ranks;  // of the communicator, by their index in the team; nullptr: all of them
  int size;
  int me;               // index of this process; -1: it is not in the team
  bool oversubscribed;  // on one node, and waits are dear

  Collective& op() const { return *collective; }
  int rank(int index) const { return ranks ? ranks[index] : index; }
  // The index `distance` places after that one, round the team; distances lie in -size..size.
  int after(int index, int distance) const {
    const int to = index + distance;
    return to < 0 ? to + size : to < size ? to : to - size;
  }
  Ref<Request> send(int to, const Items& items) const { return op().send(rank(to), items); }
  Ref<Request> receive(int from, const Items& items) const {
    return op().receive(rank(from), items);
  }
};

// All ranks in rank order.
inline Team everyone(Collective& op) {
  Comm& comm = op.comm();
  const Plan& plan = plan_of(comm);
  return {&op, nullptr, comm.size(), comm.rank(), plan.oversubscribed() && plan.nodes() == 1};
}
// All ranks, node after node: for rings.
Team by_node(Collective& op);

// The teams of an operation that works in stages. The root stands for its node, whoever leads it
// otherwise.
class Stages {
 public:
  explicit Stages(Collective& op, int root = -1);
  Stages(const Stages&) = delete;
  Stages& operator=(const Stages&) = delete;

  Team local;    // the ranks on this node, in rank order
  int head;      // index in `local` of the one that stands for this node
  Team leaders;  // those that stand for the nodes, in node order; .me is -1 in other processes
  int root;      // index in `leaders` of the root's node; 0 without a root

  bool leading() const { return leaders.me >= 0; }

 private:
  PoolVector<int> heads_;
};

// This process's place in a tree over a team. Places count from the root: place p is the index p
// after the root's. A subtree is a row of places that starts at its top, and the children of one
// process follow one another in it: what a subtree has gathered is in order without sorting.
//
// Binomial: child k has 2^k places. In an oversubscribed team a star: everybody waits for the root
// only.
class Tree {
 public:
  Tree(const Team& team, int root);

  int parent() const { return parent_; }  // index in the team; -1 at the root
  int children() const { return children_; }
  // By size, the smallest subtree first; that is also the order of places.
  int child(int k) const { return (place_ + step(k) + root_) % size_; }
  // Where the subtree of a child starts, as seen from this process, and how many places it has.
  int offset(int k) const { return step(k); }
  int width(int k) const { return star_ ? 1 : std::min(step(k), size_ - place_ - step(k)); }
  int place() const { return place_; }
  int width() const { return width_; }  // places of this process's own subtree, with itself

 private:
  int step(int k) const { return star_ ? k + 1 : 1 << k; }

  int size_, root_, place_, parent_ = -1, children_ = 0, width_ = 1;
  bool star_;
};

}  // namespace viaduct::mpi
