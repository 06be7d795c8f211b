// The algorithms that several collectives are made of, each over a team. All processes of the team
// call them with the same team, root and sizes.
#pragma once

#include "libmpi_lite/collective/reduction.hpp"
#include "libmpi_lite/collective/team.hpp"

namespace viaduct::mpi {

// ---- barrier.cpp
Task fan_in(Team team, int root);  // the root goes on when all have come

// ---- broadcast.cpp
Task tree_broadcast(Team team, Items data, int root);

// ---- gather.cpp: blocks whose lengths all know
struct Lengths {
  std::size_t each;                   // bytes, if all are the same
  const std::size_t* list = nullptr;  // else: by index in the team

  std::size_t operator[](int index) const { return list ? list[index] : each; }
  // Of `n` places of a tree rooted at `root`, from that one.
  std::size_t of_places(const Team& team, int root, int place, int n) const;
};
// At the root all blocks end up in `all`, packed, in the order of places (so its own comes first).
Task tree_gather(Team team, Items mine, Lengths lengths, std::byte* all, int root);
Task tree_scatter(Team team, const std::byte* all, Lengths lengths, Items mine, int root);

// ---- allgather.cpp: block i comes from index i, where it is in its place already
using Blocks = PoolVector<Items>;
Task doubling_allgather(Team team, const Blocks& blocks);  // few messages
Task ring_allgather(Team team, const Blocks& blocks);      // to one neighbour only
Task direct_allgather(Team team, const Blocks& blocks);    // one wait
Task long_allgather(Team team, const Blocks& blocks);      // the better one of the last two

// ---- reduce.cpp
// In rank order if the team is and the root is its first member. `into` is significant at the root
// and may be `mine` there.
Task tree_reduce(Team team, const Reduction& reduction, const void* mine, void* into, int root);

// ---- allreduce.cpp: in and out in `vector`; in rank order if the team is
Task doubling_allreduce(Team team, const Reduction& reduction, void* vector);
// By the algorithm that suits the size. `mine` may be `into`.
Task allreduce(Collective& op, const Reduction& reduction, const void* mine, void* into);

// ---- reduce_scatter.cpp: index i gets the result of range i, where `into` points to
// In the team's order.
Task direct_reduce_scatter(Team team, const Reduction& reduction, const void* mine,
                           const Ranges& ranges, void* into);
// Commutative operations only.
Task ring_reduce_scatter(Team team, const Reduction& reduction, const void* mine,
                         const Ranges& ranges, void* into);
// The better one of both for long vectors, and the team for it. Ranges by index of that team.
Team long_reduce_team(Collective& op, const Reduction& reduction);
Task long_reduce_scatter(Team team, const Reduction& reduction, const void* mine,
                         const Ranges& ranges, void* into);

}  // namespace viaduct::mpi
