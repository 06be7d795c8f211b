// MPI_Barrier (MPI 5.0, section 6.3): all ranks exchange messages along a hypercube, or in stages:
// fan-in on each node, the exchange between the nodes, fan-out on each node. A few ranks of one
// node tell each other at once. Messages carry no data.
#include "libmpi_lite/collective/algorithms/algorithms.hpp"
#include "libmpi_lite/collective/algorithms/inter.hpp"
#include "libmpi_lite/collective/hypercube.hpp"

namespace viaduct::mpi {

// Up the tree: a rank reports to its parent when all its children have reported.
Task fan_in(Subgroup subgroup, int root) {
  const Tree& tree = subgroup.tree(root);
  Pending pending(subgroup.op());
  for (int k = 0; k < tree.children(); ++k)
    pending.add(subgroup.receive(tree.child(k), nothing_at()));
  co_await pending;
  if (tree.parent() >= 0) pending.add(subgroup.send(tree.parent(), nothing_at()));
  co_await pending;
}

namespace {

// Recursive doubling between the first members of the groups, and at the same time, by the same
// rule, between the second ones. A second member tells the first one in the first round, and hears
// from it in the last one, which is one more than the doubling takes. By then the first member has
// heard from all first members, but only from the second ones that are an even distance away. It
// does not need the others to release its own second member, which hears from these by itself. For
// itself it repeats the exchange at distance 1. So there are ceil(log2(size)) rounds for any size.
Task exchange_along_cube(Subgroup subgroup) {
  const Hypercube all(subgroup.size);
  Hypercube part = all;  // the labels from `start` on
  int start = 0, label = all.label(subgroup.me);
  Pending pending(subgroup.op()), releases(subgroup.op());
  const auto add_exchange = [&](Pending& to, int partner) {  // `partner`: a label
    to.add(subgroup.send(all.index(start + partner), nothing_at()));
    to.add(subgroup.receive(all.index(start + partner), nothing_at()));
  };
  // A second member goes on among the second members.
  while (label >= part.groups()) {
    label -= part.groups();
    add_exchange(releases, label);
    start += part.groups();
    part = Hypercube(part.pairs());
  }
  const int second = label < part.pairs() ? all.index(start + part.groups() + label) : -1;
  for (int distance = 1; distance < part.groups(); distance *= 2) {
    add_exchange(pending, label ^ distance);
    if (distance == 1 && second >= 0) pending.add(subgroup.receive(second, nothing_at()));
    co_await pending;
  }
  if (part.pairs() > 0) {
    if (second >= 0) pending.add(subgroup.send(second, nothing_at()));
    add_exchange(pending, label ^ 1);
  }
  co_await pending;
  co_await releases;
}

Task staged_barrier(Collective& op) {
  const Hierarchy hierarchy(op);
  co_await fan_in(hierarchy.local, 0);
  if (hierarchy.is_leader()) co_await exchange_along_cube(hierarchy.leaders);
  co_await tree_broadcast(hierarchy.local, nothing_at(), 0);
}

Task tell_all(Subgroup subgroup) {
  Pending pending(subgroup.op());
  add_exchange(pending, subgroup, nothing_at(), [](int) { return nothing_at(); });
  co_await pending;
}

}  // namespace

Ref<Request> start_barrier(Comm& comm) {
  const auto op = make<Collective>(comm, CollectiveKind::barrier);
  if (comm.inter()) return op->run(inter_barrier(*op));
  if (in_one_step(comm)) return op->run(tell_all(all_ranks(*op)));
  if (plan_of(comm).staged()) return op->run(staged_barrier(*op));
  return op->run(exchange_along_cube(all_ranks(*op)));
}

}  // namespace viaduct::mpi
