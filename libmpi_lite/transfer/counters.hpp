// Counters of transfer/: how many messages each protocol has carried. VIADUCT_STATS=1 prints them
// at MPI_Finalize (statistics.cpp).
#pragma once

#include <array>
#include <cstdint>

namespace viaduct::mpi {

enum class Protocol : std::uint8_t {
  eager,       // in the control message itself
  rendezvous,  // RTS, CTS, data
  write,       // RTR, data: a Remote Write in the words of MPI/MBCF
};
inline constexpr std::size_t kProtocols = 3;
inline constexpr const char* kProtocolNames[kProtocols] = {"eager", "rendezvous", "remote write"};

struct Traffic {
  std::uint64_t messages = 0, bytes = 0;  // bytes of data, without heads
};

// Of one channel.
struct TransferCounters {
  std::array<Traffic, kProtocols> sent{};  // by Protocol
  std::uint64_t unexpected = 0;            // messages that arrived before their receives
  std::uint64_t rtrs_sent = 0;             // RTRs that this process has sent...
  std::uint64_t rtrs_missed = 0;           // ... in vain: the message came by another protocol
  std::uint64_t malformed = 0;  // control messages that no correct sender could have sent

  void add(Protocol p, std::int64_t bytes) {
    Traffic& t = sent[static_cast<std::size_t>(p)];
    ++t.messages;
    t.bytes += static_cast<std::uint64_t>(bytes);
  }
};

}  // namespace viaduct::mpi
