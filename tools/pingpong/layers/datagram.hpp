// The header that the unreliable layers (raw, packet, udp) put in front of each packet, to know
// which message it belongs to; messages cut into packets, and put together again.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

namespace viaduct::pingpong {

// What a frame or datagram carries: a part of a message, the end of a turn, or (control.cpp) an
// order or answer.
enum class PacketKind : std::uint8_t { data = 1, finish = 2, order = 3, answer = 4 };

// On the wire as it is, little-endian.
struct PacketHead {
  PacketKind kind;
  std::uint8_t turn;      // TurnConfig::turn
  std::uint16_t length;   // payload bytes
  std::uint32_t message;  // number of the message; a reply has that of its question
};
static_assert(sizeof(PacketHead) == 8);

// A message of `bytes` cut into as few packets as possible, whose sizes differ by one byte at most.
struct Split {
  Split() = default;
  Split(std::size_t bytes, std::size_t max_payload)
      : packets(static_cast<std::uint32_t>((bytes + max_payload - 1) / max_payload)),
        small(bytes / packets),
        larger(static_cast<std::uint32_t>(bytes % packets)) {}
  // Payload of packet number `i` of a message.
  std::uint16_t size(std::uint32_t i) const {
    return static_cast<std::uint16_t>(small + (i < larger ? 1 : 0));
  }

  std::uint32_t packets = 1;
  std::size_t small = 0;     // payload bytes of a packet, or one less
  std::uint32_t larger = 0;  // so many of them are one byte larger
};

// Puts messages together again: a message is complete when as many packets with its number have
// come as a message has. A packet of another message means that the rest of the last one is lost.
// Packets are counted, not identified, so a duplicate would count as well.
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

// The messages of an unreliable layer in one turn, sent and received, and what the layer answers
// for them as a Transport (transport.hpp). The client numbers its messages; the server answers each
// with its number.
class UnreliableMessages {
 public:
  static constexpr bool kLossy = true;

  bool ready() const { return true; }
  bool drained() const { return true; }
  std::uint64_t arrived() const { return arrived_; }
  std::uint64_t bytes() const { return bytes_; }
  bool finished() const { return finished_; }

 protected:
  explicit UnreliableMessages(bool client) : client_(client) {}

  void begin_messages(std::size_t message_bytes, std::size_t max_payload) {
    split_ = Split(message_bytes, max_payload);
    assembly_.begin(split_.packets);
  }
  // Before each attempt to send a message that is answered, or the rest of one.
  void number_message() {
    if (client_ && next_ == 0) ++message_;
  }
  // The next packet has been sent. True: it was the last one of its message.
  bool advance() {
    if (++next_ < split_.packets) return false;
    next_ = 0;
    return true;
  }
  // A packet of this turn has come, with so many bytes of payload. True: its message is complete,
  // and is no reply that has been given up.
  bool take(const PacketHead& head, std::size_t payload) {
    if (head.kind != PacketKind::data) [[unlikely]] {
      finished_ = finished_ || head.kind == PacketKind::finish;
      return false;
    }
    bytes_ += std::min<std::size_t>(head.length, payload);
    if (client_ && head.message != message_) return false;
    if (!assembly_.take(head.message)) return false;
    if (!client_) message_ = head.message;
    ++arrived_;
    return true;
  }

  const bool client_;
  Split split_;
  std::uint32_t next_ = 0;     // packet of the current message to be sent next
  std::uint32_t message_ = 0;  // number of the message being sent or answered

 private:
  Assembly assembly_;
  std::uint64_t arrived_ = 0, bytes_ = 0;
  bool finished_ = false;
};

}  // namespace viaduct::pingpong
