// What a NIU and its remote DMA count. Each row of the list is one counter; the enum, and the names
// that tools and the rawdev's xstats print, are generated from it (X macro).
//
// niu.cpp computes the first eight counters from mechanism and priority, so their order is fixed.
// All counters belong to the owner thread of the link; nothing resets them.
#pragma once

#include "drivers/base/counter_set.hpp"

namespace viaduct::startx {

// clang-format off
#define VIADUCT_STARTX_COUNTERS(X)                                                            \
  X(pio_high_sent,        "PIO packets of high priority the link took over")                  \
  X(pio_low_sent,         "PIO packets of low priority the link took over")                   \
  X(queue_high_sent,      "packets of the high transmit queue the link took over")            \
  X(queue_low_sent,       "packets of the low transmit queue the link took over")             \
  X(pio_high_received,    "packets put into the high PIO receive queue")                      \
  X(pio_low_received,     "packets put into the low PIO receive queue")                       \
  X(queue_high_received,  "packets put into the high receive queue")                          \
  X(queue_low_received,   "packets put into the low receive queue")                           \
  X(receive_queue_full,   "times a full receive queue pushed a packet back")                  \
  X(transmit_waits,       "times a transmit queue had to wait for the link")                  \
  X(drop_kind,            "messages of a kind that does not exist")                           \
  X(drop_length,          "messages whose length is impossible for their kind")               \
  X(drop_lane,            "messages on a lane their kind does not use")                       \
  X(drop_outgoing,        "packets committed with an impossible word count")                  \
  X(drop_peer_down,       "committed packets whose destination had ended")                    \
  X(events_lost,          "connection events overwritten before they were taken")             \
  X(rdma_requests_sent,   "RDMA requests sent")                                               \
  X(rdma_requests_received, "RDMA requests received")                                         \
  X(rdma_requests_busy,   "times a request was pushed back: no room to remember it")          \
  X(rdma_grants_sent,     "grants sent")                                                      \
  X(rdma_refusals_sent,   "transfers refused: longer than the post, or the right was gone")   \
  X(rdma_data_sent,       "data messages sent")                                               \
  X(rdma_data_received,   "data messages placed in memory")                                   \
  X(rdma_bytes_sent,      "bytes sent from registered memory")                                \
  X(rdma_bytes_received,  "bytes placed in registered memory")                                \
  X(rdma_sends_completed, "transfers sent, whatever their status")                            \
  X(rdma_receives_completed, "transfers received, whatever their status")                     \
  X(rdma_waits,           "pump rounds in which the link took nothing")                       \
  X(rdma_drop_right,      "data without the right to write: slot, key or peer is wrong")      \
  X(rdma_drop_range,      "data outside its right: offset, length or more than was granted")  \
  X(rdma_drop_control,    "grants, refusals or dones that answer nothing")
// clang-format on

// In the order of the list.
enum class Counter : std::uint8_t {
#define X(name, meaning) name,
  VIADUCT_STARTX_COUNTERS(X)
#undef X
      count_
};
inline constexpr std::size_t kCounters = static_cast<std::size_t>(Counter::count_);

// Name and meaning of each counter, in the order of the enum.
using base::CounterInfo;
inline constexpr std::array<base::CounterInfo, kCounters> kCounterInfo{{
#define X(name, meaning) {#name, meaning},
    VIADUCT_STARTX_COUNTERS(X)
#undef X
}};

using Counters = base::CounterSet<Counter>;

}  // namespace viaduct::startx
