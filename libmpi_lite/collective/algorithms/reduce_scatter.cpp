// MPI_Reduce_scatter and MPI_Reduce_scatter_block (MPI 5.0, section 6.10), and the reduce-scatter
// that the long forms of reduce and allreduce consist of. With many ranks, MPI_Reduce_scatter
// reduces short vectors whole.
#include <algorithm>

#include "libmpi_lite/collective/algorithms/algorithms.hpp"
#include "libmpi_lite/collective/algorithms/inter.hpp"
#include "libmpi_lite/collective/algorithms/sizes.hpp"

namespace viaduct::mpi {

// Each process sends every other one the range that is theirs: one wait, and any operation. The
// memory for the vectors that arrive is the range's size times the subgroup's, about one whole
// vector if the ranges are even. Sends come first, as the others wait for them.
Task direct_reduce_scatter(Subgroup subgroup, Reduction reduction, const void* mine, Ranges ranges,
                           void* into) {
  const auto range = [&](int i) { return ranges[static_cast<std::size_t>(i)]; };
  const MPI_Count count = range(subgroup.me).count;
  const Reduction::VectorBuffers buffers(reduction, count, subgroup.size - 1);
  const auto buffer = [&](int i) {  // what index i sends; this process's own is in `into`
    return i == subgroup.me ? into : buffers.vector(i < subgroup.me ? i : i - 1);
  };

  Pending pending(subgroup.op());
  for (int i = 1; i < subgroup.size; ++i) {
    const int to = subgroup.after(subgroup.me, i);
    pending.add(subgroup.send(to, reduction.items(mine, range(to))));
  }
  for (int i = 1; i < subgroup.size; ++i) {
    const int from = subgroup.after(subgroup.me, -i);
    pending.add(subgroup.receive(from, {reduction.items(buffer(from), {0, count})}));
  }
  copy(subgroup.op(), reduction.items(mine, range(subgroup.me)), reduction.items(into, {0, count}));
  co_await pending;

  for (int i = 1; i < subgroup.size; ++i) reduction.combine(buffer(i - 1), buffer(i), count);
  copy(subgroup.op(), reduction.items(buffer(subgroup.size - 1), {0, count}),
       reduction.items(into, {0, count}));
}

// The partial result of each range goes round the ring, and each process adds its own. So the
// operands of each range are combined in another order: the operation must be commutative. A range
// starts at the process after its owner, and reaches the owner last.
Task ring_reduce_scatter(Subgroup subgroup, Reduction reduction, const void* mine, Ranges ranges,
                         void* into) {
  const auto range = [&](int distance) {  // of the process at that distance before this one
    return ranges[static_cast<std::size_t>(subgroup.after(subgroup.me, -distance))];
  };
  MPI_Count most = 0;
  for (const Range& r : ranges) most = std::max(most, r.count);
  const Reduction::VectorBuffers one(reduction, most), two(reduction, most);
  void *so_far = one.data(), *next = two.data();

  Pending pending(subgroup.op());
  pending.add(subgroup.receive(subgroup.after(subgroup.me, -1),
                               reduction.items(so_far, {0, range(2).count})));
  pending.add(subgroup.send(subgroup.after(subgroup.me, 1), reduction.items(mine, range(1))));
  co_await pending;
  for (int step = 2; step < subgroup.size; ++step) {
    const Range arrived = range(step), arriving = range(step + 1);
    reduction.combine(reduction.items(mine, arrived).data, so_far, arrived.count);
    pending.add(subgroup.receive(subgroup.after(subgroup.me, -1),
                                 reduction.items(next, {0, arriving.count})));
    pending.add(
        subgroup.send(subgroup.after(subgroup.me, 1), reduction.items(so_far, {0, arrived.count})));
    co_await pending;
    std::swap(so_far, next);
  }
  const Range own = range(0);
  reduction.combine(reduction.items(mine, own).data, so_far, own.count);
  copy(subgroup.op(), reduction.items(so_far, {0, own.count}),
       reduction.items(into, {0, own.count}));
}

namespace {

// As with allgather: in a ring in node order, each link between nodes carries everything once.
bool ring_is_better(const Collective& op, const Reduction& reduction) {
  return plan_of(op.comm()).nodes() > 1 && reduction.commutative();
}

// By index in the subgroup, from the counts by rank: `counts`, or `each` for all.
Ranges ranges_of(const Subgroup& subgroup, const MPI_Count each, Counts counts) {
  PoolVector<MPI_Count> starts(1, 0);  // by rank
  for (int rank = 0; rank < subgroup.size; ++rank)
    starts.push_back(starts.back() + (counts ? counts[rank] : each));
  Ranges ranges;
  for (int i = 0; i < subgroup.size; ++i) {
    const auto rank = static_cast<std::size_t>(subgroup.rank(i));
    ranges.push_back({starts[rank], starts[rank + 1] - starts[rank]});
  }
  return ranges;
}

Task reduce_scatter(Collective& op, Reduction reduction, const void* mine, void* into,
                    MPI_Count each, Counts counts) {
  const Subgroup subgroup = long_reduce_subgroup(op, reduction);
  const Ranges ranges = ranges_of(subgroup, each, counts);
  const Range own = ranges[static_cast<std::size_t>(subgroup.me)];
  if (mine == MPI_IN_PLACE) mine = into;
  if (subgroup.size > kFewRanks && reduction.bytes() <= kShortReduce) {
    const Reduction::VectorBuffers whole(reduction, reduction.count());
    co_await allreduce(op, reduction, mine, whole.data());
    copy(op, reduction.items(whole.data(), own), reduction.items(into, {0, own.count}));
  } else {
    op.take_long_form();
    // In place, the result belongs at the start of the buffer that the ranges are sent from, so it
    // must not go there before all have been sent.
    const Reduction::VectorBuffers buffer(reduction, mine == into ? own.count : 0);
    void* const result = mine == into ? buffer.data() : into;
    co_await long_reduce_scatter(subgroup, reduction, mine, ranges, result);
    if (mine == into)
      copy(op, reduction.items(result, {0, own.count}), reduction.items(into, {0, own.count}));
  }
}

Ref<Request> start(Comm& comm, const Part& whole, void* into, const Op& function, MPI_Count each,
                   Counts counts) {
  auto op = make<Collective>(comm, CollectiveKind::reduce_scatter);
  const Reduction reduction(*op, function, whole.type, whole.count);
  if (!comm.inter()) return op->run(reduce_scatter(*op, reduction, whole.data, into, each, counts));
  // The vectors come from the other group; the counts tell how they are spread over this one.
  MPI_Count first = 0;
  for (int rank = 0; rank < comm.rank(); ++rank) first += counts ? counts[rank] : each;
  const Range own{first, counts ? counts[comm.rank()] : each};
  return op->run(inter_reduce_scatter(*op, reduction, whole.data, own, into));
}

}  // namespace

Subgroup long_reduce_subgroup(Collective& op, const Reduction& reduction) {
  return ring_is_better(op, reduction) ? by_node(op) : all_ranks(op);
}

Task long_reduce_scatter(Subgroup subgroup, const Reduction& reduction, const void* mine,
                         const Ranges& ranges, void* into) {
  return ring_is_better(subgroup.op(), reduction)
             ? ring_reduce_scatter(subgroup, reduction, mine, ranges, into)
             : direct_reduce_scatter(subgroup, reduction, mine, ranges, into);
}

Ref<Request> start_reduce_scatter(Comm& comm, const void* from, void* into, Counts counts,
                                  MPI_Datatype type, const Op& op) {
  MPI_Count total = 0;
  for (int rank = 0; rank < comm.size(); ++rank) total += counts[rank];
  return start(comm, {from, total, type}, into, op, 0, counts);
}

Ref<Request> start_reduce_scatter_block(Comm& comm, const Part& from, void* into, const Op& op) {
  return start(comm, {from.data, from.count * comm.size(), from.type}, into, op, from.count,
               nullptr);
}

}  // namespace viaduct::mpi
