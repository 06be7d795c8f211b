// What the VI channel counts (VIADUCT_STATS). One row is one counter.
#pragma once

#include "drivers/base/counter_set.hpp"

namespace viaduct::mpi {

// clang-format off
#define VIADUCT_VI_COUNTERS(X)                                                         \
  X(vis_made,       "Virtual Interfaces made")                                         \
  X(vis_connected,  "... connected")                                                   \
  X(vis_closed,     "... closed in order, to make room for others")                    \
  X(vis_withdrawn,  "connection requests taken back, to answer another process first") \
  X(vis_peak,       "most Virtual Interfaces at a time")                               \
  X(sends_waited,   "sends that had to wait for a connection, the first of each wait") \
  X(credit_waits,   "sends that had to wait for credits or for earlier sends")         \
  X(credits_sent,   "messages with nothing but credits")                               \
  X(rdma_writes,    "RDMA writes for long transfers")                                  \
  X(pieces_sent,    "messages with a part of a long transfer")                         \
  X(drop_malformed, "messages that no correct process sends")
// clang-format on

enum class ViCounter : std::uint8_t {
#define X(name, meaning) name,
  VIADUCT_VI_COUNTERS(X)
#undef X
      count_
};

inline constexpr std::array<base::CounterInfo, static_cast<std::size_t>(ViCounter::count_)>
    kViCounterInfo{{
#define X(name, meaning) {#name, meaning},
        VIADUCT_VI_COUNTERS(X)
#undef X
    }};
#undef VIADUCT_VI_COUNTERS

}  // namespace viaduct::mpi
