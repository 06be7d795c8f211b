// The StarT-X packet: two 32-bit header words and 2 to 22 payload words (MPI-StarT, SC98,
// section 2). Header word 0 is the link's message header (length, protocol, kind), so the smallest
// packet is 16 bytes on the wire; header word 1 belongs to the user.
#pragma once

#include <cstdint>

#include "drivers/link/message.hpp"

namespace viaduct::startx {

inline constexpr std::size_t kMinWords = 2;
inline constexpr std::size_t kMaxWords = 22;

enum class Priority : std::uint8_t { high, low };
inline constexpr std::size_t kPriorities = 2;

// Which of the two message mechanisms, hence which receive queue, a packet belongs to.
enum class Mechanism : std::uint8_t { pio, queue };

// A packet to send. Owned by the caller.
struct Packet {
  std::uint32_t tag = 0;   // header word 1, not interpreted
  std::uint8_t words = 2;  // payload words in use, kMinWords..kMaxWords
  link::Order order = link::Order::ordered;
  std::uint32_t payload[kMaxWords];
};

// An entry of a transmit queue.
struct Outgoing {
  link::PeerId to;
  Packet packet;
};

// A received packet, as it lies in the receive queue.
struct Received {
  link::PeerId from;
  std::uint32_t tag;
  std::uint8_t words;
  link::Order order;
  std::uint32_t payload[kMaxWords];  // the words in use; what is behind them is left over
};

}  // namespace viaduct::startx
