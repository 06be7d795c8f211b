// The algorithms that several collectives are made of, each over a team (subgroup). All processes
// of the team must call them with the same team, root and sizes. `root` is an index in the team.
//
// Each is a coroutine that ends when this process has done its part; others may not have done
// theirs. Arguments that are references or pointers must stay valid until it ends. A message that
// fails does not end it: see Pending (task.hpp).
#pragma once

#include "libmpi_lite/collective/reduction.hpp"
#include "libmpi_lite/collective/team.hpp"

namespace viaduct::mpi {

// ---- barrier.cpp
Task fan_in(Team team, int root);  // at the root it ends when all have called it

// ---- broadcast.cpp
Task tree_broadcast(Team team, Items data, int root);

// ---- gather.cpp: blocks whose lengths all processes know
struct Lengths {
  std::size_t each;                   // bytes of each block, if `list` is nullptr
  const std::size_t* list = nullptr;  // bytes, by index in the team

  std::size_t operator[](int index) const { return list ? list[index] : each; }
  // The bytes of `n` consecutive places of a tree rooted at `root`, from `place` on.
  std::size_t of_places(const Team& team, int root, int place, int n) const;
};
// `all` is significant at the root only: the packed blocks of all processes, in the order of
// places, so the root's own comes first.
Task tree_gather(Team team, Items mine, Lengths lengths, std::byte* all, int root);
Task tree_scatter(Team team, const std::byte* all, Lengths lengths, Items mine, int root);

// ---- allgather.cpp: block i comes from index i, where it is in its place already
using Blocks = PoolVector<Items>;                          // by index in the team
Task doubling_allgather(Team team, const Blocks& blocks);  // log2(size) messages, one copy more
Task ring_allgather(Team team, const Blocks& blocks);      // size - 1 steps, to one neighbour only
Task direct_allgather(Team team, const Blocks& blocks);    // all messages at once, one wait
Task long_allgather(Team team, const Blocks& blocks);      // the better one of the last two

// ---- reduce.cpp
// Combines in rank order if the team is in rank order and the root is its first member. `into` is
// significant at the root only, and may be `mine` there.
Task tree_reduce(Team team, const Reduction& reduction, const void* mine, void* into, int root);

// ---- allreduce.cpp
// `vector` is both input and result. Combines in rank order if the team is in rank order.
Task doubling_allreduce(Team team, const Reduction& reduction, void* vector);
// Over the whole communicator, by the algorithm that suits the size. `mine` may be `into`.
Task allreduce(Collective& op, const Reduction& reduction, const void* mine, void* into);

// ---- reduce_scatter.cpp: index i gets the result of range i of the vector, at the start of `into`
// Combines in the order of the team.
Task direct_reduce_scatter(Team team, const Reduction& reduction, const void* mine,
                           const Ranges& ranges, void* into);
// For commutative operations only.
Task ring_reduce_scatter(Team team, const Reduction& reduction, const void* mine,
                         const Ranges& ranges, void* into);
// The better one of the two for long vectors, and the team for it. `ranges` are by index in that
// team.
Team long_reduce_team(Collective& op, const Reduction& reduction);
Task long_reduce_scatter(Team team, const Reduction& reduction, const void* mine,
                         const Ranges& ranges, void* into);

}  // namespace viaduct::mpi
