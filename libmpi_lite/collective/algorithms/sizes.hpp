// Where one algorithm gives way to another, in bytes. All ranks must come to the same choice, so a
// choice may depend only on what is the same everywhere: sizes, the subgroup, the plan. Ranks that
// choose differently, because the program gives them different lengths, notice by the tag
// (Collective::take_long_form).
#pragma once

#include <cstddef>

namespace viaduct::mpi {

// A broadcast goes down a tree up to this length; above, through chains, in segments of kSegment,
// unless the job is oversubscribed.
inline constexpr std::size_t kTreeBroadcast = 128 << 10;
inline constexpr std::size_t kSegment = 64 << 10;
// Gather and scatter: a block of up to this length goes through a tree; above, directly to or from
// the root.
inline constexpr std::size_t kTreeGather = 2 << 10;
// Allgather: up to this length of all blocks together, blocks share messages; above, each block is
// a message.
inline constexpr std::size_t kShortAllgather = 32 << 10;
// Reductions: a vector of up to this length is reduced whole; above, each rank reduces a range.
inline constexpr std::size_t kShortReduce = 16 << 10;
// Alltoall: blocks of up to this length share messages; above, each block is a message.
inline constexpr std::size_t kShortAlltoall = 256;
// With at most so many ranks, alltoall sends each block, and reduce-scatter each range, as a
// message of its own at any size.
inline constexpr int kFewRanks = 8;
// With at most so many ranks, all on one node, each rank sends to each other one at once: barrier,
// short allreduce (vectors of up to kOneStepReduce), gather, scatter and allgather. More messages,
// but one wait. Between nodes, messages cost more, and further partners a connection each.
inline constexpr int kOneStep = 4;
inline constexpr std::size_t kOneStepReduce = 2 << 10;
// Alltoall: a rank exchanges with so many others before it waits for these messages.
inline constexpr int kExchangeWindow = 32;
// Alltoall: how many polls the receives of the others have to ask for their blocks (write
// protocol). Where ranks share CPUs each poll gives way to another rank. More would not harm, as
// nothing ends before the others take part, unless their receives cannot ask.
inline constexpr unsigned kPollsForRequests = 500;

}  // namespace viaduct::mpi
