// The algorithms that several collectives are made of, each over a subgroup. All processes of
// the subgroup must call them with the same subgroup, root and sizes. `root` is an index in the
// subgroup.
//
// Each is a coroutine that ends when this process has done its part; others may not have done
// theirs. Data that arguments point to must stay valid until it ends. All else is passed by value,
// so that an operation can return the coroutine that does all of its work, and needs no frame of
// its own around it. A message that fails does not end it: see Pending (task.hpp).
#pragma once

#include "libmpi_lite/collective/algorithms/reduction.hpp"
#include "libmpi_lite/collective/algorithms/sizes.hpp"
#include "libmpi_lite/collective/subgroup.hpp"

namespace viaduct::mpi {

// Whether each rank of the communicator may send to each other one at once: see kOneStep.
inline bool in_one_step(Comm& comm) {
  return comm.size() <= kOneStep && plan_of(comm).nodes() == 1;
}
// Adds the messages by which each process sends `mine` to each other one; that of index i goes to
// into(i). Each starts with another one, so that they do not all send to the same one.
template <class Into>
void add_exchange(Pending& pending, const Subgroup& subgroup, const Items& mine, Into into) {
  for (int i = 1; i < subgroup.size; ++i)
    pending.add(subgroup.send(subgroup.after(subgroup.me, i), mine));
  for (int i = 1; i < subgroup.size; ++i) {
    const int from = subgroup.after(subgroup.me, -i);
    pending.add(subgroup.receive(from, into(from)));
  }
}

// ---- barrier.cpp
Task fan_in(Subgroup subgroup, int root);  // at the root it ends when all have called it

// ---- broadcast.cpp
Task tree_broadcast(Subgroup subgroup, Items data, int root);

// ---- gather.cpp: blocks whose lengths all processes know
struct Lengths {
  std::size_t each;                   // bytes of each block, if `list` is nullptr
  const std::size_t* list = nullptr;  // bytes, by index in the subgroup

  std::size_t operator[](int index) const { return list ? list[index] : each; }
  // The bytes of `n` consecutive places of a tree rooted at `root`, from `place` on.
  std::size_t of_places(const Subgroup& subgroup, int root, int place, int n) const;
};
// `all` is significant at the root only: the packed blocks of all processes, in the order of
// places, so the root's own comes first.
Task tree_gather(Subgroup subgroup, Items mine, Lengths lengths, std::byte* all, int root);
Task tree_scatter(Subgroup subgroup, const std::byte* all, Lengths lengths, Items mine, int root);

// ---- allgather.cpp: block i comes from index i, where it is in its place already
using Blocks = PoolVector<Items>;  // by index in the subgroup
// ceil(log2(size)) messages (see Doubling), one copy more.
Task doubling_allgather(Subgroup subgroup, Blocks blocks);
// size - 1 steps, to one neighbour only.
Task ring_allgather(Subgroup subgroup, Blocks blocks);
// All messages at once, one wait.
Task direct_allgather(Subgroup subgroup, Blocks blocks);
// The better one of the last two.
Task long_allgather(Subgroup subgroup, Blocks blocks);

// ---- reduce.cpp
// Combines in rank order if the subgroup is in rank order and the root is its first member. `into`
// is significant at the root only, and may be `mine` there.
Task tree_reduce(Subgroup subgroup, Reduction reduction, const void* mine, void* into, int root);

// ---- allreduce.cpp
// `vector` is both input and result. Combines in rank order if the subgroup is in rank order.
Task doubling_allreduce(Subgroup subgroup, Reduction reduction, void* vector);
// Over the whole communicator, by the algorithm that suits the size. `mine` may be `into` or
// MPI_IN_PLACE.
Task allreduce(Collective& op, const Reduction& reduction, const void* mine, void* into);

// ---- reduce_scatter.cpp: index i gets the result of range i of the vector, at the start of `into`
// Combines in the order of the subgroup.
Task direct_reduce_scatter(Subgroup subgroup, Reduction reduction, const void* mine, Ranges ranges,
                           void* into);
// For commutative operations only.
Task ring_reduce_scatter(Subgroup subgroup, Reduction reduction, const void* mine, Ranges ranges,
                         void* into);
// The better one of the two for long vectors, and the subgroup for it. `ranges` are by index in
// that subgroup.
Subgroup long_reduce_subgroup(Collective& op, const Reduction& reduction);
Task long_reduce_scatter(Subgroup subgroup, const Reduction& reduction, const void* mine,
                         const Ranges& ranges, void* into);

}  // namespace viaduct::mpi
