// MPI_Bcast (MPI 5.0, section 6.4).
#include <algorithm>

#include "libmpi_lite/collective/algorithms.hpp"
#include "libmpi_lite/collective/inter.hpp"
#include "libmpi_lite/collective/sizes.hpp"

namespace viaduct::mpi {

Task tree_broadcast(Team team, Items data, int root) {
  const Tree tree(team, root);
  Pending pending(team.op());
  if (tree.parent() >= 0) pending.add(team.receive(tree.parent(), data));
  co_await pending;
  for (int k = tree.children() - 1; k >= 0; --k) pending.add(team.send(tree.child(k), data));
  co_await pending;
}

namespace {

// From each to the next one, in segments: while one arrives, the one before is on its way out. In
// node order the data crosses the network once for each node.
Task chain_broadcast(Team team, Items data, int root) {
  const int place = team.after(team.me, -root);
  const bool first = place == 0, last = place == team.size - 1;
  Packed packed(data);
  if (first) packed.from_items();

  Pending arriving(team.op()), leaving(team.op());
  const std::size_t total = packed.size();
  const auto segment = [&](std::size_t from) {
    return packed.bytes(from, std::min(kSegment, total - from));
  };
  if (!first && total > 0) arriving.add(team.receive(team.after(team.me, -1), segment(0)));
  for (std::size_t from = 0; from < total; from += kSegment) {
    co_await arriving;
    if (!first && from + kSegment < total)
      arriving.add(team.receive(team.after(team.me, -1), segment(from + kSegment)));
    if (!last) {
      co_await leaving;
      leaving.add(team.send(team.after(team.me, 1), segment(from)));
    }
  }
  co_await leaving;
  if (!first) packed.to_items();
}

Task staged_broadcast(Collective& op, Items data, int root) {
  const Stages stages(op, root);
  if (stages.leading()) co_await tree_broadcast(stages.leaders, data, stages.root);
  co_await tree_broadcast(stages.local, data, stages.head);
}

Task broadcast(Collective& op, Items data, int root) {
  const Plan& plan = plan_of(op.comm());
  const bool crowded = plan.nodes() == 1 && plan.crowded();
  if (length(data) > kTreeBroadcast && op.comm().size() > 2 && !crowded) {
    const Team team = by_node(op);
    const int at =
        team.ranks
            ? static_cast<int>(std::find(team.ranks, team.ranks + team.size, root) - team.ranks)
            : root;
    return chain_broadcast(team, data, at);
  }
  if (plan.nodes() > 1 && plan.staged()) return staged_broadcast(op, data, root);
  return tree_broadcast(everyone(op), data, root);
}

}  // namespace

Ref<Request> start_broadcast(Comm& comm, const Part& data, int root) {
  auto op = make<Collective>(comm);
  const Items items = op->items(data);
  return op->run(comm.inter() ? inter_broadcast(*op, items, root) : broadcast(*op, items, root));
}

}  // namespace viaduct::mpi
