// Everything that can happen to a frame, counted by reason. One row a counter: the enum, the names
// that tools and xstats print, and the documentation are made of this one list. A link has one set
// for itself and one for each slot of its connection table. One owner thread; 64-bit, never reset.
#pragma once

#include "drivers/base/counter_set.hpp"

namespace viaduct::link {

// The drop_* rows stand last: Counters::drops() adds up everything from drop_foreign on.
// clang-format off
#define VIADUCT_LINK_COUNTERS(X)                                                            \
  X(frames_sent,          "frames handed to the device, retransmissions included")          \
  X(frames_received,      "frames taken from the device")                                   \
  X(messages_sent,        "messages accepted by try_send")                                  \
  X(messages_delivered,   "messages that a sink took")                                      \
  X(acks_sent,            "frames that carry acknowledgements only")                        \
  X(retransmits,          "frames sent again, for whatever reason")                         \
  X(fast_retransmits,     "frames sent again because later ones were acknowledged")         \
  X(probes,               "tail-loss probes and timeouts")                                  \
  X(keepalives,           "questions sent to a silent peer")                                \
  X(credit_waits,         "times a lane had frames to send and no credit")                  \
  X(device_full,          "bursts the device took only in part")                            \
  X(peers_up,             "connections made")                                               \
  X(peers_down,           "connections ended, for whatever reason")                         \
  X(retries_sent,         "connection requests answered by a cookie: address not proven")   \
  X(half_open_evicted,    "half-open connections given up for newer ones")                  \
  X(path_mtu_lowered,     "smaller frames tried because full-size ones did not pass")       \
  X(drop_foreign,         "not our EtherType")                                              \
  X(drop_version,         "a version of the protocol we do not speak")                      \
  X(drop_type,            "unknown frame type or lane")                                     \
  X(drop_length,          "shorter or longer than its header says")                         \
  X(drop_checksum,        "CRC32C does not match")                                          \
  X(drop_job,             "handshake of another job")                                       \
  X(drop_incarnation,     "for a connection that has ended or never was")                   \
  X(drop_token,           "wrong token: of an earlier life of a peer, or forged")           \
  X(drop_state,           "not acceptable in this state of the connection")                 \
  X(drop_handshake,       "handshake with impossible values")                               \
  X(drop_ack,             "acknowledges what was never sent, or cannot be")                 \
  X(drop_duplicate,       "received before: retransmitted, duplicated or replayed")         \
  X(drop_credit,          "beyond the credit given")                                        \
  X(drop_message,         "malformed message inside a valid frame")                         \
  X(drop_protocol,        "message for a protocol nobody attached")                         \
  X(drop_peers_full,      "connection request refused: no room for another peer")
// clang-format on

enum class Counter : std::uint8_t {
#define X(name, meaning) name,
  VIADUCT_LINK_COUNTERS(X)
#undef X
      count_
};
inline constexpr std::size_t kCounters = static_cast<std::size_t>(Counter::count_);

inline constexpr std::array<base::CounterInfo, kCounters> kCounterInfo{{
#define X(name, meaning) {#name, meaning},
    VIADUCT_LINK_COUNTERS(X)
#undef X
}};

class Counters : public base::CounterSet<Counter> {
 public:
  // The sum of all drop_* counters.
  std::uint64_t drops() const {
    std::uint64_t sum = 0;
    for (auto c = static_cast<std::size_t>(Counter::drop_foreign); c < kCounters; ++c)
      sum += (*this)[static_cast<Counter>(c)];
    return sum;
  }
};

}  // namespace viaduct::link
