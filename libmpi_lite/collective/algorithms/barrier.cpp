// MPI_Barrier (MPI 5.0, section 6.3): dissemination over all ranks, or in stages: fan-in on each
// node, dissemination between the nodes, fan-out on each node. Messages carry no data.
#include "libmpi_lite/collective/algorithms/algorithms.hpp"
#include "libmpi_lite/collective/algorithms/inter.hpp"

namespace viaduct::mpi {

// Up the tree: a rank reports to its parent when all its children have reported.
Task fan_in(Subgroup subgroup, int root) {
  const Tree tree(subgroup, root);
  Pending pending(subgroup.op());
  for (int k = 0; k < tree.children(); ++k)
    pending.add(subgroup.receive(tree.child(k), nothing_at()));
  co_await pending;
  if (tree.parent() >= 0) pending.add(subgroup.send(tree.parent(), nothing_at()));
  co_await pending;
}

namespace {

// Dissemination in ceil(log2(size)) rounds: after round k each rank has heard, directly or not,
// from the 2^(k+1) - 1 ranks before it.
Task dissemination(Subgroup subgroup) {
  Pending pending(subgroup.op());
  for (int distance = 1; distance < subgroup.size; distance *= 2) {
    pending.add(subgroup.send(subgroup.after(subgroup.me, distance), nothing_at()));
    pending.add(subgroup.receive(subgroup.after(subgroup.me, -distance), nothing_at()));
    co_await pending;
  }
}

Task staged_barrier(Collective& op) {
  const Hierarchy hierarchy(op);
  co_await fan_in(hierarchy.local, 0);
  if (hierarchy.is_leader()) co_await dissemination(hierarchy.leaders);
  co_await tree_broadcast(hierarchy.local, nothing_at(), 0);
}

inline Ref<Request> run(Collective& op) {
  if (op.comm().inter()) return op.run(inter_barrier(op));
  if (plan_of(op.comm()).staged()) return op.run(staged_barrier(op));
  return op.run(dissemination(all_ranks(op)));
}

}  // namespace

Ref<Request> start_barrier(Comm& comm) {
  return run(*make<Collective>(comm, CollectiveKind::barrier));
}

Ref<Request> start_last_barrier(Comm& world) {
  return run(*make<Collective>(world, kLastBarrierTag));
}

}  // namespace viaduct::mpi
