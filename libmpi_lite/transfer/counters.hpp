// Counters of transfer/: how many messages, of which sizes, each protocol has carried.
// VIADUCT_STATS=1 prints them at MPI_Finalize (statistics.cpp).
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <string>
#include <vector>

#include "drivers/base/counter_set.hpp"

namespace viaduct::mpi {

enum class Protocol : std::uint8_t {
  eager,       // in the control message itself
  rendezvous,  // RTS, CTS, data
  write,       // RTR, data: a Remote Write in the words of MPI/MBCF
};
inline constexpr std::size_t kProtocols = 3;
inline constexpr const char* kProtocolNames[kProtocols] = {"eager", "rendezvous", "remote write"};

// Names of its counters for tools: messages, bytes.
inline constexpr base::CounterInfo kProtocolCounterInfo[kProtocols][2] = {
    {{"eager_messages", "messages sent in one control message each"},
     {"eager_bytes", "their data"}},
    {{"rendezvous_messages", "messages sent after the receiver had answered"},
     {"rendezvous_bytes", "their data"}},
    {{"write_messages", "messages written into receives that had asked for it"},
     {"write_bytes", "their data"}}};

struct Traffic {
  std::uint64_t messages = 0, bytes = 0;  // bytes of data, without heads

  Traffic& operator+=(const Traffic& other) {
    messages += other.messages;
    bytes += other.bytes;
    return *this;
  }
};

// Messages by size, as the histograms of MPI-StarT have them (Fig. 3): class 0 is empty messages,
// class n has 2^(n-1) bytes up to 2^n - 1, and the last class all that are longer.
inline constexpr std::size_t kSizeClasses = 34;
constexpr std::size_t size_class(std::uint64_t bytes) {
  return std::min(static_cast<std::size_t>(std::bit_width(bytes)), kSizeClasses - 1);
}
using TrafficBySize = std::array<Traffic, kSizeClasses>;

// What was sent, by Protocol and size.
struct SentTraffic {
  std::array<TrafficBySize, kProtocols> by{};

  void add(Protocol p, std::int64_t bytes) {
    const auto n = static_cast<std::uint64_t>(bytes);
    by[static_cast<std::size_t>(p)][size_class(n)] += {1, n};
  }
  Traffic of(Protocol p) const {
    Traffic sum;
    for (const Traffic& t : by[static_cast<std::size_t>(p)]) sum += t;
    return sum;
  }
  Traffic all() const {
    Traffic sum;
    for (std::size_t p = 0; p < kProtocols; ++p) sum += of(static_cast<Protocol>(p));
    return sum;
  }
  SentTraffic& operator+=(const SentTraffic& other) {
    for (std::size_t p = 0; p < kProtocols; ++p)
      for (std::size_t c = 0; c < kSizeClasses; ++c) by[p][c] += other.by[p][c];
    return *this;
  }
};

// Of one channel.
struct TransferCounters {
  SentTraffic sent;
  std::uint64_t unexpected = 0;   // messages that arrived before their receives
  std::uint64_t rtrs_sent = 0;    // RTRs that this process has sent...
  std::uint64_t rtrs_missed = 0;  // ... in vain: the message came by another protocol
  std::uint64_t malformed = 0;    // control messages that no correct sender could have sent

  void add(Protocol p, std::int64_t bytes) { sent.add(p, bytes); }
};

// All counters of one channel: its own, and those of TransferCounters, whose part is "transfer".
struct ChannelCounters {
  const char* channel;
  std::vector<base::NamedCounter> counters;
};

// A line for each part with what is not zero ("link: frames_sent 12, drop_job 3").
std::vector<std::string> lines_of(const std::vector<base::NamedCounter>& counters);

// What one process has sent, or all processes of a job together. Plain numbers: processes send it
// to each other as it lies in memory.
struct SentTotals {
  SentTraffic within, between;  // nodes (a message of a process to itself is within)
  std::uint64_t processes = 1;  // summed up here
  std::uint64_t peers = 0;      // on other nodes, with which messages were exchanged

  SentTotals& operator+=(const SentTotals& other) {
    within += other.within;
    between += other.between;
    processes += other.processes;
    peers += other.peers;
    return *this;
  }
};

}  // namespace viaduct::mpi
