// Where one algorithm gives way to another, in bytes. All processes must come to the same choice,
// so it may depend on nothing but what is the same everywhere: sizes, the team, the plan.
#pragma once

#include <cstddef>

namespace viaduct::mpi {

// A broadcast goes down a tree; above, through chains in segments, unless the job is
// oversubscribed.
inline constexpr std::size_t kTreeBroadcast = 128 << 10;
inline constexpr std::size_t kSegment = 64 << 10;
// A block travels through others on its way to or from a root; above, directly.
inline constexpr std::size_t kTreeGather = 2 << 10;
// All blocks together: gathered in few messages; above, one message for each block.
inline constexpr std::size_t kShortAllgather = 32 << 10;
// A vector is reduced whole; above, each rank reduces a part.
inline constexpr std::size_t kShortReduce = 16 << 10;
// Blocks to many ranks share messages; above, each has its own.
inline constexpr std::size_t kShortAlltoall = 256;
inline constexpr int kFewRanks = 8;  // so few ranks get a message each at any size
// Messages that a process has under way at once when it exchanges with all others.
inline constexpr int kExchangeWindow = 32;

}  // namespace viaduct::mpi
