// The flat algorithms over intercommunicators. Ranks are those of the other group, comm().peers()
// in number; a root in the other group is a rank, one in this group is MPI_ROOT at the root itself
// and MPI_PROC_NULL beside it.
#include "libmpi_lite/collective/algorithms/inter.hpp"

#include <utility>

namespace viaduct::mpi {
namespace {

// Reduces the vectors of the other group, in its rank order, and calls done(result).
//
// Two buffers take turns: while one rank's vector arrives in one, the other holds the result so
// far. Vectors arrive one after the other, so memory does not grow with the group.
template <class Done>
Task reduce_theirs(Collective& op, const Reduction& reduction, Done done) {
  const Reduction::VectorBuffers one(reduction, reduction.count()),
      two(reduction, reduction.count());
  void *so_far = one.data(), *next = two.data();
  Pending pending(op);
  for (int rank = 0; rank < op.comm().peers(); ++rank) {
    pending.add(op.receive(rank, reduction.items(next)));
    co_await pending;
    if (rank > 0) reduction.combine(so_far, next, reduction.count());
    std::swap(so_far, next);
  }
  done(so_far);
}

}  // namespace

Task inter_barrier(Collective& op) {
  Pending pending(op);
  for (int rank = 0; rank < op.comm().peers(); ++rank) {
    pending.add(op.send(rank, nothing_at()));
    pending.add(op.receive(rank, nothing_at()));
  }
  co_await pending;
}

Task inter_broadcast(Collective& op, Items data, int root) {
  Pending pending(op);
  if (root == MPI_ROOT)
    for (int rank = 0; rank < op.comm().peers(); ++rank) pending.add(op.send(rank, data));
  else if (root != MPI_PROC_NULL)
    pending.add(op.receive(root, data));
  co_await pending;
}

Task inter_gather(Collective& op, Items mine, Spread into, int root) {
  Pending pending(op);
  if (root == MPI_ROOT)
    for (int rank = 0; rank < op.comm().peers(); ++rank) pending.add(op.receive(rank, into[rank]));
  else if (root != MPI_PROC_NULL)
    pending.add(op.send(root, mine));
  co_await pending;
}

Task inter_scatter(Collective& op, Spread from, Items mine, int root) {
  Pending pending(op);
  if (root == MPI_ROOT)
    for (int rank = 0; rank < op.comm().peers(); ++rank) pending.add(op.send(rank, from[rank]));
  else if (root != MPI_PROC_NULL)
    pending.add(op.receive(root, mine));
  co_await pending;
}

Task inter_allgather(Collective& op, Items mine, Spread into) {
  Pending pending(op);
  for (int rank = 0; rank < op.comm().peers(); ++rank) pending.add(op.receive(rank, into[rank]));
  for (int rank = 0; rank < op.comm().peers(); ++rank) pending.add(op.send(rank, mine));
  co_await pending;
}

Task inter_alltoall(Collective& op, Spread from, Spread into) {
  Pending pending(op);
  for (int rank = 0; rank < op.comm().peers(); ++rank) pending.add(op.receive(rank, into[rank]));
  for (int rank = 0; rank < op.comm().peers(); ++rank) pending.add(op.send(rank, from[rank]));
  co_await pending;
}

Task inter_reduce(Collective& op, Reduction reduction, const void* mine, void* into, int root) {
  if (root == MPI_PROC_NULL) co_return;
  if (root == MPI_ROOT) {
    co_await reduce_theirs(op, reduction, [&](void* result) {
      copy(op, reduction.items(result), reduction.items(into));
    });
    co_return;
  }
  Pending pending(op);
  pending.add(op.send(root, reduction.items(mine)));
  co_await pending;
}

Task inter_allreduce(Collective& op, Reduction reduction, const void* mine, void* into) {
  const Range all{0, reduction.count()};
  return inter_reduce_scatter(op, reduction, mine, all, into);
}

// A rank does not know the counts of the other group, so it sends the whole vector to each rank,
// and each rank takes its range of the result.
Task inter_reduce_scatter(Collective& op, Reduction reduction, const void* mine, Range range,
                          void* into) {
  Pending leaving(op);
  for (int rank = 0; rank < op.comm().peers(); ++rank)
    leaving.add(op.send(rank, reduction.items(mine)));
  co_await reduce_theirs(op, reduction, [&](void* result) {
    copy(op, reduction.items(result, range), reduction.items(into, {0, range.count}));
  });
  co_await leaving;
}

}  // namespace viaduct::mpi
