// What went which way; VIADUCT_STATS=1 prints it at MPI_Finalize.
#pragma once

#include <array>
#include <cstdint>

namespace viaduct::mpi {

enum class Protocol : std::uint8_t {
  eager,       // in the control message itself
  rendezvous,  // announced, granted, moved
  write,       // the receiver asked first: a Remote Write
};
inline constexpr std::size_t kProtocols = 3;
inline constexpr const char* kProtocolNames[kProtocols] = {"eager", "rendezvous", "remote write"};

struct Traffic {
  std::uint64_t messages = 0, bytes = 0;
};

// Of one channel: what this process has sent.
struct TransferCounters {
  std::array<Traffic, kProtocols> sent{};
  std::uint64_t unexpected = 0;    // received before their receives
  std::uint64_t wants = 0;         // receives that asked to be written into...
  std::uint64_t wants_missed = 0;  // ... and got a message that came another way
  std::uint64_t malformed = 0;     // control messages that nobody could have meant

  void add(Protocol p, std::int64_t bytes) {
    Traffic& t = sent[static_cast<std::size_t>(p)];
    ++t.messages;
    t.bytes += static_cast<std::uint64_t>(bytes);
  }
};

}  // namespace viaduct::mpi
