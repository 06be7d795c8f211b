// What an MBCF engine counts. One row is one counter: the enum, and the names that tools and xstats
// print, are made of this list (an X macro). requests_* count at the initiator; *_served,
// *_received, bytes_* and refused_* at the target; drop_* count messages that no correct peer sends
// or that come too late, and are ignored.
#pragma once

#include "drivers/base/counter_set.hpp"

namespace viaduct::mbcf {

// clang-format off
#define VIADUCT_MBCF_COUNTERS(X)                                                            \
  X(requests_issued,    "requests handed to the link")                                      \
  X(requests_completed, "requests of ours answered as executed")                            \
  X(requests_refused,   "requests of ours that were refused")                               \
  X(requests_lost,      "requests of ours whose peer ended first")                          \
  X(failures_lost,      "failures of silent requests that nobody took in time")             \
  X(writes_served,      "writes executed for others, combinations included")                \
  X(reads_served,       "reads executed for others")                                        \
  X(atomics_served,     "atomic operations executed for others")                            \
  X(entries_received,   "FIFO entries received, those on writes included")                  \
  X(signals_received,   "signals received, those on writes included")                       \
  X(fences_served,      "fences answered")                                                  \
  X(bytes_written,      "bytes written into our segments")                                  \
  X(bytes_read,         "bytes read from our segments")                                     \
  X(bytes_appended,     "bytes of FIFO entries received")                                   \
  X(fifo_waits,         "times an append had to wait for credit")                         \
  X(fifo_grants,        "times we gave a writer credit")                                    \
  X(fifo_recalls,       "times we asked a writer for its credit back")                      \
  X(entries_abandoned,  "FIFO entries that their writer did not live to finish")            \
  X(events_lost,        "connection events overwritten before they were taken")             \
  X(answer_waits,       "requests put off because their answer could not be sent")          \
  X(refused_no_key,     "requests of others refused: a key that was never given out")       \
  X(refused_withdrawn,  "requests of others refused: withdrawn")                            \
  X(refused_no_right,   "requests of others refused: the segment does not allow it")        \
  X(refused_out_of_range, "requests of others refused: bytes outside the segment")          \
  X(refused_misaligned, "requests of others refused: misaligned word")                      \
  X(refused_wrong_kind, "requests of others refused: the key names something else")         \
  X(refused_no_credit,  "FIFO entries of others refused: no credit for them")               \
  X(refused_too_long,   "FIFO entries of others refused: larger than the FIFO")             \
  X(drop_kind,          "messages of a kind that does not exist")                           \
  X(drop_length,        "messages whose length is impossible for their kind")               \
  X(drop_lane,          "messages on a lane or in an order their kind does not use")        \
  X(drop_field,         "messages with a field that has no such value")                     \
  X(drop_stream,        "pieces of a long request that is not under way")                   \
  X(drop_answer,        "answers and data that no request of ours waits for")               \
  X(drop_credit,        "credit messages about a FIFO that is not open")
// clang-format on

enum class Counter : std::uint8_t {
#define X(name, meaning) name,
  VIADUCT_MBCF_COUNTERS(X)
#undef X
      count_
};
inline constexpr std::size_t kCounters = static_cast<std::size_t>(Counter::count_);

using base::CounterInfo;
inline constexpr std::array<base::CounterInfo, kCounters> kCounterInfo{{
#define X(name, meaning) {#name, meaning},
    VIADUCT_MBCF_COUNTERS(X)
#undef X
}};

using Counters = base::CounterSet<Counter>;

}  // namespace viaduct::mbcf
