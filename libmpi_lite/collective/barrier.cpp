// MPI_Barrier (MPI 5.0, section 6.3): dissemination over all ranks, or in stages: fan-in on each
// node, dissemination between the nodes, fan-out on each node. Messages carry no data.
#include "libmpi_lite/collective/algorithms.hpp"
#include "libmpi_lite/collective/inter.hpp"

namespace viaduct::mpi {

// Up the tree: a rank reports to its parent when all its children have reported.
Task fan_in(Team team, int root) {
  const Tree tree(team, root);
  Pending pending(team.op());
  for (int k = 0; k < tree.children(); ++k) pending.add(team.receive(tree.child(k), nothing_at()));
  co_await pending;
  if (tree.parent() >= 0) pending.add(team.send(tree.parent(), nothing_at()));
  co_await pending;
}

namespace {

// Dissemination in ceil(log2(size)) rounds: after round k each rank has heard, directly or not,
// from the 2^(k+1) - 1 ranks before it.
Task dissemination(Team team) {
  Pending pending(team.op());
  for (int distance = 1; distance < team.size; distance *= 2) {
    pending.add(team.send(team.after(team.me, distance), nothing_at()));
    pending.add(team.receive(team.after(team.me, -distance), nothing_at()));
    co_await pending;
  }
}

Task staged_barrier(Collective& op) {
  const Stages stages(op);
  co_await fan_in(stages.local, 0);
  if (stages.leading()) co_await dissemination(stages.leaders);
  co_await tree_broadcast(stages.local, nothing_at(), 0);
}

inline Ref<Request> run(Collective& op) {
  if (op.comm().inter()) return op.run(inter_barrier(op));
  if (plan_of(op.comm()).staged()) return op.run(staged_barrier(op));
  return op.run(dissemination(everyone(op)));
}

}  // namespace

Ref<Request> start_barrier(Comm& comm) {
  return run(*make<Collective>(comm, CollectiveKind::barrier));
}

Ref<Request> start_last_barrier(Comm& world) {
  return run(*make<Collective>(world, kLastBarrierTag));
}

}  // namespace viaduct::mpi
