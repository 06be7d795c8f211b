// MPI_Bcast (MPI 5.0, section 6.4): short data by trees, in two stages if there are several nodes;
// long data in segments along chains.
#include <algorithm>

#include "libmpi_lite/collective/algorithms/algorithms.hpp"
#include "libmpi_lite/collective/algorithms/inter.hpp"
#include "libmpi_lite/collective/algorithms/sizes.hpp"

namespace viaduct::mpi {

// The largest subtree is served first, as it takes longest from there on.
Task tree_broadcast(Subgroup subgroup, Items data, int root) {
  const Tree& tree = subgroup.tree(root);
  Pending pending(subgroup.op());
  if (tree.parent() >= 0) pending.add(subgroup.receive(tree.parent(), data));
  co_await pending;
  for (int k = tree.children() - 1; k >= 0; --k) pending.add(subgroup.send(tree.child(k), data));
  co_await pending;
}

namespace {

// The neighbours of this process in the chains, as ranks of the communicator; -1: none.
struct Links {
  int parent = -1;  // sends the data to this process
  // Get the data from it: the leader of the next node, the next rank of the node.
  int next_node = -1, next = -1;
};

// Arranges a subgroup in a row from the root on, and finds the ranks before and after this process.
void link_up(const Subgroup& subgroup, int root, int& before, int& after) {
  const int place = subgroup.after(subgroup.me, -root);
  if (place > 0) before = subgroup.rank(subgroup.after(subgroup.me, -1));
  if (place < subgroup.size - 1) after = subgroup.rank(subgroup.after(subgroup.me, 1));
}

// All segments but the last have kSegment bytes, and the last has fewer, or the one before it has
// more. So a rank that expects another number of segments receives one of another length, notices
// the disagreement, and does not wait for further ones.
std::size_t segment_length(std::size_t left) {
  constexpr std::size_t kPage = 4096;
  return left == 2 * kSegment ? kSegment + kPage : std::min(kSegment, left);
}

// While one segment arrives, the one before is on its way out. `arriving` and `leaving` are
// separate, so that the next receive is posted before the wait for the sends.
Task segmented_broadcast(Collective& op, Items data, Links links) {
  const bool first = links.parent < 0;
  Packed packed(data);
  if (first) packed.from_items();

  Pending arriving(op), leaving(op);
  const std::size_t total = packed.size();
  const auto segment = [&](std::size_t from) {
    return packed.bytes(from, segment_length(total - from));
  };
  if (!first && total > 0) arriving.add(op.receive(links.parent, segment(0)));
  for (std::size_t from = 0, next; from < total; from = next) {
    next = from + segment_length(total - from);
    co_await arriving;
    if (!first && next < total) arriving.add(op.receive(links.parent, segment(next)));
    co_await leaving;
    for (const int to : {links.next_node, links.next})
      if (to >= 0) leaving.add(op.send(to, segment(from)));
  }
  co_await leaving;
  if (!first) packed.to_items();
}

// A chain of the leaders of the nodes, and on each node a chain of its ranks from the leader on.
// Not a coroutine itself: the links are computed now, so the Hierarchy need not outlive the call.
Task chain_broadcast(Collective& op, Items data, int root) {
  Links links;
  if (plan_of(op.comm()).staged()) {
    const Hierarchy hierarchy(op, root);
    if (hierarchy.is_leader())
      link_up(hierarchy.leaders, hierarchy.root, links.parent, links.next_node);
    link_up(hierarchy.local, hierarchy.local_leader, links.parent, links.next);
  } else {
    link_up(all_ranks(op), root, links.parent, links.next);
  }
  return segmented_broadcast(op, data, links);
}

Task staged_broadcast(Collective& op, Items data, int root) {
  const Hierarchy hierarchy(op, root);
  if (hierarchy.is_leader()) co_await tree_broadcast(hierarchy.leaders, data, hierarchy.root);
  co_await tree_broadcast(hierarchy.local, data, hierarchy.local_leader);
}

// With two ranks a chain gains nothing. In an oversubscribed job each segment would cost a switch
// to another process.
Task broadcast(Collective& op, Items data, int root) {
  const Plan& plan = plan_of(op.comm());
  if (length(data) > kTreeBroadcast && op.comm().size() > 2 && !plan.oversubscribed()) {
    op.take_long_form();
    return chain_broadcast(op, data, root);
  }
  if (plan.nodes() > 1 && plan.staged()) return staged_broadcast(op, data, root);
  return tree_broadcast(all_ranks(op), data, root);
}

}  // namespace

Ref<Request> start_broadcast(Comm& comm, const Part& data, int root) {
  auto op = make<Collective>(comm, CollectiveKind::broadcast);
  const Items items = op->items(data);
  return op->run(comm.inter() ? inter_broadcast(*op, items, root) : broadcast(*op, items, root));
}

}  // namespace viaduct::mpi
