// What the layers without a protocol of their own (raw, udp) put in front of each packet, to know
// which message it belongs to.
#pragma once

#include <cstddef>
#include <cstdint>

namespace viaduct::pingpong {

enum class PacketKind : std::uint8_t { data = 1, finish = 2, order = 3, answer = 4 };

struct PacketHead {
  PacketKind kind;
  std::uint8_t turn;      // Wire::turn
  std::uint16_t length;   // payload bytes
  std::uint32_t message;  // number of the message; a reply has that of its question
};
static_assert(sizeof(PacketHead) == 8);

// A message of `bytes` in as few packets as possible, as equal as possible.
struct Split {
  Split() = default;
  Split(std::size_t bytes, std::size_t most_in_a_packet)
      : packets(static_cast<std::uint32_t>((bytes + most_in_a_packet - 1) / most_in_a_packet)),
        small(bytes / packets),
        larger(static_cast<std::uint32_t>(bytes % packets)) {}
  // Payload of packet number `i` of a message.
  std::uint16_t size(std::uint32_t i) const {
    return static_cast<std::uint16_t>(small + (i < larger ? 1 : 0));
  }

  std::uint32_t packets = 1;
  std::size_t small = 0;
  std::uint32_t larger = 0;  // so many of them are one byte larger
};

// Puts messages together again: a message is complete when as many packets with its number have
// come as it has. Packets of another message mean that the rest of this one is lost.
class Assembly {
 public:
  void begin(std::uint32_t packets) {
    packets_ = packets;
    have_ = 0;
  }
  // True when this packet completes its message.
  bool take(std::uint32_t message) {
    if (packets_ == 1) return true;
    if (message != message_) {
      message_ = message;
      have_ = 0;
    }
    return ++have_ == packets_;
  }

 private:
  std::uint32_t packets_ = 1, have_ = 0, message_ = 0;
};

}  // namespace viaduct::pingpong
