// MPI_Allreduce (MPI 5.0, section 6.9.6): short vectors by recursive doubling, in stages if there
// are several nodes, or by an exchange of all vectors if the ranks are few and on one node; long
// ones by reduce-scatter and allgather. Every rank gets the very same bits: where several ranks
// compute the same value, they combine the same operands in the same order.
#include <utility>

#include "libmpi_lite/collective/algorithms/algorithms.hpp"
#include "libmpi_lite/collective/algorithms/inter.hpp"
#include "libmpi_lite/collective/algorithms/sizes.hpp"
#include "libmpi_lite/collective/hypercube.hpp"

namespace viaduct::mpi {

// Recursive doubling between the groups of the hypercube. In those of two members, the second one
// gives its vector to the first one at the start, and gets the result at the end. A first member
// always holds the result of a row of consecutive processes, and combines it with that of the row
// beside it, so the order of the subgroup is kept.
Task doubling_allreduce(Subgroup subgroup, Reduction reduction, void* vector) {
  // combine() writes to its right operand, so the buffers change roles when ours is the left one.
  const Reduction::VectorBuffers buffer(reduction, reduction.count());
  void *so_far = vector, *theirs = buffer.data();
  const auto combine_with = [&](bool they_are_left) {
    reduction.combine(they_are_left ? theirs : so_far, they_are_left ? so_far : theirs,
                      reduction.count());
    if (!they_are_left) std::swap(so_far, theirs);
  };
  const Hypercube cube(subgroup.size);
  const int group = cube.label(subgroup.me);

  Pending pending(subgroup.op());
  if (group >= cube.groups()) {
    pending.add(subgroup.send(subgroup.me - 1, reduction.items(vector)));
    co_await pending;
    pending.add(subgroup.receive(subgroup.me - 1, reduction.items(vector)));
    co_await pending;
    co_return;
  }
  const bool has_second = group < cube.pairs();
  if (has_second) {
    pending.add(subgroup.receive(subgroup.me + 1, reduction.items(theirs)));
    co_await pending;
    combine_with(false);
  }
  for (int distance = 1; distance < cube.groups(); distance *= 2) {
    const int partner = cube.index(group ^ distance);
    pending.add(subgroup.send(partner, reduction.items(so_far)));
    pending.add(subgroup.receive(partner, reduction.items(theirs)));
    co_await pending;
    combine_with(partner < subgroup.me);
  }
  if (has_second) pending.add(subgroup.send(subgroup.me + 1, reduction.items(so_far)));
  if (so_far != vector) copy(subgroup.op(), reduction.items(so_far), reduction.items(vector));
  co_await pending;
}

namespace {

// On each node to its leader, between the leaders, and back.
Task staged_allreduce(Collective& op, Reduction reduction, const void* mine, void* into) {
  const Hierarchy hierarchy(op);
  co_await tree_reduce(hierarchy.local, reduction, mine, into, 0);
  if (hierarchy.is_leader() && hierarchy.leaders.size > 1)
    co_await doubling_allreduce(hierarchy.leaders, reduction, into);
  co_await tree_broadcast(hierarchy.local, reduction.items(into), 0);
}

Task flat_allreduce(Collective& op, const Reduction& reduction, const void* mine, void* into) {
  copy(op, reduction.items(mine), reduction.items(into));
  return doubling_allreduce(all_ranks(op), reduction, into);
}

// Each rank reduces a range, and sends it to all others.
Task long_allreduce(Collective& op, Reduction reduction, const void* mine, void* into) {
  const Subgroup subgroup = long_reduce_subgroup(op, reduction);
  const Ranges ranges = even_ranges(reduction.count(), subgroup.size);
  Blocks blocks;
  blocks.reserve(ranges.size());
  for (const Range& range : ranges) blocks.push_back(reduction.items(into, range));
  void* const own = const_cast<void*>(blocks[static_cast<std::size_t>(subgroup.me)].data);
  co_await long_reduce_scatter(subgroup, reduction, mine, ranges, own);
  co_await long_allgather(subgroup, std::move(blocks));
}

}  // namespace

Task allreduce(Collective& op, const Reduction& reduction, const void* mine, void* into) {
  const Plan& plan = plan_of(op.comm());
  if (mine == MPI_IN_PLACE) mine = into;
  if (reduction.bytes() > kShortReduce && reduction.count() >= op.comm().size()) {
    op.take_long_form();
    return long_allreduce(op, reduction, mine, into);
  }
  if (reduction.bytes() <= kOneStepReduce && in_one_step(op.comm())) {
    if (op.comm().size() <= 2) return flat_allreduce(op, reduction, mine, into);
    // As if the range of each rank were the whole vector.
    const Range whole{0, reduction.count()};
    const Subgroup subgroup = all_ranks(op);
    return direct_reduce_scatter(subgroup, reduction, mine,
                                 Ranges(static_cast<std::size_t>(subgroup.size), whole), into);
  }
  if (plan.staged() && (reduction.commutative() || plan.ordered()))
    return staged_allreduce(op, reduction, mine, into);
  return flat_allreduce(op, reduction, mine, into);
}

Ref<Request> start_allreduce(Comm& comm, const Part& from, void* into, const Op& function) {
  auto op = make<Collective>(comm, CollectiveKind::allreduce);
  const Reduction reduction(*op, function, from.type, from.count);
  return op->run(comm.inter() ? inter_allreduce(*op, reduction, from.data, into)
                              : allreduce(*op, reduction, from.data, into));
}

}  // namespace viaduct::mpi
