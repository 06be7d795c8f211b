// MPI_Reduce (MPI 5.0, section 6.9): short vectors by trees, in two stages if there are several
// nodes; long ones by a reduce-scatter whose ranges the root collects.

#include "libmpi_lite/collective/algorithms/algorithms.hpp"
#include "libmpi_lite/collective/algorithms/inter.hpp"
#include "libmpi_lite/collective/algorithms/sizes.hpp"

namespace viaduct::mpi {

// Each child's vector arrives in a buffer of its own. Then the vectors are combined from left to
// right: this process comes first, and its children's subtrees follow one another, so the order of
// the subgroup is kept. The result moves into the last buffer, as combine() writes to its right
// operand.
Task tree_reduce(Subgroup subgroup, Reduction reduction, const void* mine, void* into, int root) {
  const Tree& tree = subgroup.tree(root);
  const MPI_Count count = reduction.count();
  const Reduction::VectorBuffers buffers(reduction, count, tree.children());
  Pending pending(subgroup.op());
  for (int k = 0; k < tree.children(); ++k)
    pending.add(subgroup.receive(tree.child(k), reduction.items(buffers.vector(k))));
  co_await pending;

  const void* so_far = mine;
  for (int k = 0; k < tree.children(); ++k) {
    reduction.combine(so_far, buffers.vector(k), count);
    so_far = buffers.vector(k);
  }
  if (tree.parent() < 0) {
    copy(subgroup.op(), reduction.items(so_far), reduction.items(into));
  } else {
    pending.add(subgroup.send(tree.parent(), reduction.items(so_far)));
    co_await pending;
  }
}

namespace {

// On each node to its leader, then between the leaders. `node`: the leader's result on its way to
// the root; at the root itself it goes to `into` at once.
Task staged_reduce(Collective& op, Reduction reduction, const void* mine, void* into, int root) {
  const Hierarchy hierarchy(op, root);
  const bool passing = hierarchy.is_leader() && op.comm().rank() != root;
  const Reduction::VectorBuffers node(reduction, passing ? reduction.count() : 0);
  void* const result = passing ? node.data() : into;
  co_await tree_reduce(hierarchy.local, reduction, mine, result, hierarchy.local_leader);
  if (hierarchy.is_leader())
    co_await tree_reduce(hierarchy.leaders, reduction, result, into, hierarchy.root);
}

// To any root by a tree. In stages only if that keeps the rank order, or the order does not matter.
Task short_reduce(Collective& op, const Reduction& reduction, const void* mine, void* into,
                  int root) {
  const Plan& plan = plan_of(op.comm());
  const bool in_stages =
      plan.nodes() > 1 && plan.staged() && (reduction.commutative() || plan.ordered());
  return in_stages ? staged_reduce(op, reduction, mine, into, root)
                   : tree_reduce(all_ranks(op), reduction, mine, into, root);
}

// For noncommutative operations: a tree keeps the rank order only if rank 0 is its root, so rank 0
// sends the result on to the root.
Task ordered_reduce(Collective& op, Reduction reduction, const void* mine, void* into, int root) {
  const int rank = op.comm().rank();
  const Reduction::VectorBuffers buffer(reduction, rank == 0 ? reduction.count() : 0);
  co_await short_reduce(op, reduction, mine, buffer.data(), 0);
  Pending pending(op);
  if (rank == 0) pending.add(op.send(root, reduction.items(buffer.data())));
  if (rank == root) pending.add(op.receive(0, reduction.items(into)));
  co_await pending;
}

// Each rank reduces a range, and the root collects the ranges. The root's own goes straight to its
// place in `into`.
Task long_reduce(Collective& op, Reduction reduction, const void* mine, void* into, int root) {
  const Subgroup subgroup = long_reduce_subgroup(op, reduction);
  const Ranges ranges = even_ranges(reduction.count(), subgroup.size);
  const Range own = ranges[static_cast<std::size_t>(subgroup.me)];
  const bool at_root = op.comm().rank() == root;
  const Reduction::VectorBuffers buffer(reduction, at_root ? 0 : own.count);
  void* const result = at_root ? const_cast<void*>(reduction.items(into, own).data) : buffer.data();
  co_await long_reduce_scatter(subgroup, reduction, mine, ranges, result);

  Pending pending(op);
  if (at_root) {
    for (int i = 0; i < subgroup.size; ++i)
      if (i != subgroup.me)
        pending.add(
            subgroup.receive(i, reduction.items(into, ranges[static_cast<std::size_t>(i)])));
  } else {
    pending.add(op.send(root, reduction.items(result, {0, own.count})));
  }
  co_await pending;
}

// The long form needs an item for each rank at least, and more than two ranks to be worth while.
Task reduce(Collective& op, const Reduction& reduction, const void* mine, void* into, int root) {
  if (mine == MPI_IN_PLACE) mine = into;
  if (reduction.bytes() > kShortReduce && reduction.count() >= op.comm().size() &&
      op.comm().size() > 2) {
    op.take_long_form();
    return long_reduce(op, reduction, mine, into, root);
  }
  return reduction.commutative() || root == 0 ? short_reduce(op, reduction, mine, into, root)
                                              : ordered_reduce(op, reduction, mine, into, root);
}

}  // namespace

Ref<Request> start_reduce(Comm& comm, const Part& from, void* into, const Op& function, int root) {
  auto op = make<Collective>(comm, CollectiveKind::reduce);
  const Reduction reduction(*op, function, from.type, from.count);
  return op->run(comm.inter() ? inter_reduce(*op, reduction, from.data, into, root)
                              : reduce(*op, reduction, from.data, into, root));
}

}  // namespace viaduct::mpi
