// MPI_Scan and MPI_Exscan (MPI 5.0, section 6.11): recursive doubling, in stages if there are
// several nodes and they follow one another in rank order. Both are the same algorithm, prefix(),
// with and without the process's own vector in the result.
#include <optional>

#include "libmpi_lite/collective/algorithms/algorithms.hpp"

namespace viaduct::mpi {
namespace {

// Where a result goes, if it is wanted. Not a plain pointer, as nullptr is a buffer: MPI_BOTTOM.
using Result = std::optional<void*>;

// Doubling: after round k `all` is the result of the 2^(k+1) processes up to this one, and `before`
// the result of the same processes without this one. `all` is both input and result. The first
// process of the subgroup has nothing before it, and its `before` stays untouched.
Task prefix(Subgroup subgroup, Reduction reduction, void* all, Result before) {
  const Reduction::VectorBuffers buffer(reduction, reduction.count());
  const MPI_Count count = reduction.count();
  bool any_before = false;
  Pending pending(subgroup.op());
  for (int distance = 1; distance < subgroup.size; distance *= 2) {
    const bool from_left = subgroup.me >= distance;
    if (subgroup.me + distance < subgroup.size)
      pending.add(subgroup.send(subgroup.me + distance, reduction.items(all)));
    if (from_left)
      pending.add(subgroup.receive(subgroup.me - distance, reduction.items(buffer.data())));
    co_await pending;
    if (!from_left) continue;
    if (before && any_before)
      reduction.combine(buffer.data(), *before, count);
    else if (before)
      copy(subgroup.op(), reduction.items(buffer.data()), reduction.items(*before));
    any_before = true;
    reduction.combine(buffer.data(), all, count);
  }
}

// The last rank of each node has the node's result. These ranks compute the result of all nodes
// before their own, and broadcast it on their node. `ahead` gets that result; on the first node it
// stays untouched.
Task nodes_before(Collective& op, const Hierarchy& hierarchy, const Reduction& reduction,
                  const void* node_result, void* ahead) {
  const Plan& plan = plan_of(op.comm());
  PoolVector<int> last;
  for (int node = 0; node < plan.nodes(); ++node) last.push_back(plan.members(node).back());
  const int local_last = hierarchy.local.size - 1;
  if (hierarchy.local.me == local_last) {
    const Reduction::VectorBuffers all(reduction, reduction.count());
    copy(op, reduction.items(node_result), reduction.items(all.data()));
    const Subgroup subgroup{&op, last.data(), plan.nodes(), plan.my_node(), false};
    co_await prefix(subgroup, reduction, all.data(), ahead);
  }
  if (plan.my_node() > 0)
    co_await tree_broadcast(hierarchy.local, reduction.items(ahead), local_last);
}

// Within each node first; then what comes before the node is combined into the results, from the
// left.
Task staged_prefix(Collective& op, Reduction reduction, void* all, Result before) {
  const Hierarchy hierarchy(op);
  const Reduction::VectorBuffers ahead(reduction, reduction.count());
  co_await prefix(hierarchy.local, reduction, all, before);
  co_await nodes_before(op, hierarchy, reduction, all, ahead.data());
  if (plan_of(op.comm()).my_node() == 0) co_return;
  reduction.combine(ahead.data(), all, reduction.count());
  if (!before) co_return;
  if (hierarchy.local.me > 0)
    reduction.combine(ahead.data(), *before, reduction.count());
  else
    copy(op, reduction.items(ahead.data()), reduction.items(*before));
}

Task any_prefix(Collective& op, const Reduction& reduction, void* all, Result before) {
  const Plan& plan = plan_of(op.comm());
  // The rank order is part of the result, so stages are possible only where nodes follow one
  // another in rank order. On a single node, even an oversubscribed one, stages would not save
  // waits: fewer than log2(size) would mean to send everything to one rank.
  return plan.nodes() > 1 && plan.staged() && plan.ordered()
             ? staged_prefix(op, reduction, all, before)
             : prefix(all_ranks(op), reduction, all, before);
}

Task scan(Collective& op, const Reduction& reduction, const void* mine, void* into) {
  if (mine != MPI_IN_PLACE) copy(op, reduction.items(mine), reduction.items(into));
  return any_prefix(op, reduction, into, std::nullopt);
}

Task exscan(Collective& op, Reduction reduction, const void* mine, void* into) {
  const Reduction::VectorBuffers all(reduction, reduction.count());
  copy(op, reduction.items(mine == MPI_IN_PLACE ? into : mine), reduction.items(all.data()));
  // Rank 0's buffer is not touched (section 6.11.2): nothing comes before it.
  co_await any_prefix(op, reduction, all.data(), into);
}

}  // namespace

Ref<Request> start_scan(Comm& comm, const Part& from, void* into, const Op& function) {
  auto op = make<Collective>(comm, CollectiveKind::scan);
  const Reduction reduction(*op, function, from.type, from.count);
  return op->run(scan(*op, reduction, from.data, into));
}

Ref<Request> start_exscan(Comm& comm, const Part& from, void* into, const Op& function) {
  auto op = make<Collective>(comm, CollectiveKind::exscan);
  const Reduction reduction(*op, function, from.type, from.count);
  return op->run(exscan(*op, reduction, from.data, into));
}

}  // namespace viaduct::mpi
