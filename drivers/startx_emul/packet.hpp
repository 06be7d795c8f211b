// The StarT-X packet: two 32-bit header words and 2 to 22 payload words (MPI-StarT, SC98,
// section 2). Header word 0 is the link's message header (length, protocol, kind), so the smallest
// packet is 16 bytes on the wire. Header word 1 belongs to the user.
//
// These are plain structures without a thread rule of their own. c_api.cpp asserts that they have
// the layout of the structures in rte_pmd_startx.h, so that C programs read and write them in
// place.
#pragma once

#include <cstdint>

#include "drivers/link/message.hpp"

namespace viaduct::startx {

// Payload words of 32 bits: 8 to 88 bytes.
inline constexpr std::size_t kMinWords = 2;
inline constexpr std::size_t kMaxWords = 22;

// High may delay low, never the reverse. Each priority has a lane of the link to itself.
enum class Priority : std::uint8_t { high, low };
inline constexpr std::size_t kPriorities = 2;

// The message mechanism that sent a packet. The receiver puts the packet into the receive queue of
// the same mechanism.
enum class Mechanism : std::uint8_t { pio, queue };

// A packet to send. The caller owns it; the NIU copies it into a frame.
struct Packet {
  std::uint32_t tag = 0;                     // header word 1, not interpreted
  std::uint8_t words = 2;                    // payload words in use, kMinWords..kMaxWords
  link::Order order = link::Order::ordered;  // delivery is exactly once in either order
  std::uint32_t payload[kMaxWords];
};

// An entry of a transmit queue (cacheable queues). The user fills it in place.
struct Outgoing {
  link::PeerId to;
  Packet packet;
};

// A received packet, as it lies in the receive queue. The queue owns it until the user pops it.
struct Received {
  link::PeerId from;
  std::uint32_t tag;   // header word 1 of the sender
  std::uint8_t words;  // payload words in use
  link::Order order;
  std::uint32_t payload[kMaxWords];  // words behind those in use are left from older packets
};

}  // namespace viaduct::startx
