// What is on the wire. docs/wire.md draws these headers and states the rules.
// All integers are little-endian, except the EtherType.
#pragma once

#include <bit>
#include <cstddef>
#include <cstring>
#include <optional>

#include "drivers/base/crc32c.hpp"
#include "drivers/link/message.hpp"

namespace viaduct::link {

static_assert(std::endian::native == std::endian::little, "wire structs are used in place");

inline constexpr std::uint16_t kEtherType = 0xb588;  // 0x88b5 (IEEE local experimental), as stored
inline constexpr std::uint8_t kVersion = 3;
// A window's frames and the bits of a selective acknowledgement; a power of two.
inline constexpr std::uint32_t kMaxWindow = 512;
inline constexpr std::size_t kBitmapWords = kMaxWindow / 64;
// Every port must take Ethernet payloads of this size; used until the peer's MTU is known.
inline constexpr std::size_t kMinMtu = 576;

enum class FrameType : std::uint8_t {
  data = 1,
  ack = 2,
  hello = 3,    // connection request: who I am; without a cookie and then with it
  welcome = 4,  // connection accept: who I am, and that I heard you
  retry = 5,    // answer to a request without a cookie: repeat it with this one
  goodbye = 6,
};

// LinkHeader::lane_flags
inline constexpr std::uint8_t kLaneMask = 0x03;
inline constexpr std::uint8_t kFlagUnordered = 0x04;
inline constexpr std::uint8_t kFlagWant = 0x08;    // more is waiting than the credit allows
inline constexpr std::uint8_t kFlagAnswer = 0x10;  // acknowledge at once
inline constexpr std::uint8_t kFlagsKnown = 0x1f;

// Short: a packet ring of the kernel's puts 66 bytes before a frame, so that one of up to 62 bytes
// lies in a single cache line.
struct [[gnu::packed]] FrameHeader {
  // The route: the same in all frames from one peer to another.
  std::uint8_t to[6];
  std::uint8_t from[6];
  std::uint16_t ether_type;
  std::uint16_t connection;  // the receiver's name for the sender
  std::uint32_t token;       // the receiver's secret for this connection
  // The rest: each frame's own.
  std::uint8_t version_type;  // version << 4 | FrameType
  std::uint8_t lane_flags;
  std::uint16_t length;    // bytes of payload after this header; Ethernet padding may follow
  std::uint32_t sequence;  // data: the frame's number in its lane
  std::uint32_t ack;       // data: every frame of this lane before this one has arrived
  std::uint16_t credit;    // data: how many frames of this lane you may send, from `ack` on
  std::uint32_t checksum;  // CRC32C: docs/wire.md
};
inline constexpr std::size_t kEthernetHeader = 14;
inline constexpr std::size_t kFrameHeader = 38;
inline constexpr std::size_t kLinkHeader = kFrameHeader - kEthernetHeader;
inline constexpr std::size_t kRoute = 20;
static_assert(sizeof(FrameHeader) == kFrameHeader && offsetof(FrameHeader, version_type) == kRoute,
              "wire layout");

// With a header that has at least its route. A sum over a route is made once a connection.
inline bool same_route(const FrameHeader& a, const FrameHeader& b) {
  return std::memcmp(&a, &b, kRoute) == 0;
}
// `seed`: another secret of the receiver's (Handshake); 0 for a hello.
inline std::uint32_t route_checksum(const FrameHeader& h, std::uint32_t seed) {
  return base::crc32c(reinterpret_cast<const std::byte*>(&h), kRoute, base::crc32c_word(seed, 0));
}
// Continues the sum over seed, route and payload. The rest counts as 16 bytes, the last two 0: one
// step less than its 14.
inline std::uint32_t frame_checksum(const FrameHeader& h, std::uint32_t sum) {
  std::uint64_t words[2];
  std::memcpy(words, reinterpret_cast<const std::byte*>(&h) + kRoute, sizeof words);
  return base::crc32c_word(words[1] & 0xffff'ffff'ffff, base::crc32c_word(words[0], sum));
}

// A frame's own part of the header.
struct FrameFields {
  FrameType type;
  std::uint8_t lane_flags;
  std::uint16_t length;
  std::uint32_t sequence = 0, ack = 0;
  std::uint16_t credit = 0;
};

// Writes the header. `sum`: over seed, route and payload; without one the checksum is 0. Made in
// registers and stored in wide words: reading back fields that have only just been stored waits
// until they have left the store buffer.
inline void write_header(std::byte* to, const FrameHeader& route, const FrameFields& fields,
                         std::optional<std::uint32_t> sum) {
  const std::uint64_t words[2] = {
      std::uint64_t{kVersion << 4 | static_cast<unsigned>(fields.type)} |
          std::uint64_t{fields.lane_flags} << 8 | std::uint64_t{fields.length} << 16 |
          std::uint64_t{fields.sequence} << 32,
      fields.ack | std::uint64_t{fields.credit} << 32};
  const std::uint32_t checksum =
      sum ? base::crc32c_word(words[1], base::crc32c_word(words[0], *sum)) : 0;
  std::memcpy(to, &route, kRoute);
  std::memcpy(to + kRoute, words, sizeof words);
  std::memcpy(to + offsetof(FrameHeader, checksum), &checksum, sizeof checksum);
}

// A data frame's payload is a row of messages, each behind one of these.
struct [[gnu::packed]] MessageHeader {
  std::uint16_t length;   // bytes after this header
  std::uint8_t protocol;  // link::Protocol
  std::uint8_t kind;      // the protocol's own
};
inline constexpr std::size_t kMessageHeader = 4;
static_assert(sizeof(MessageHeader) == kMessageHeader, "wire layout");

// Writes head ++ body as one message and continues the sum over it, in the same pass as the copy.
inline std::uint32_t write_message(std::byte* to, MessageType type, std::span<const std::byte> head,
                                   std::span<const std::byte> body, std::uint32_t sum) {
  const MessageHeader header{static_cast<std::uint16_t>(head.size() + body.size()),
                             static_cast<std::uint8_t>(type.protocol), type.kind};
  std::memcpy(to, &header, kMessageHeader);
  to += kMessageHeader;
  sum = base::crc32c_word(std::bit_cast<std::uint32_t>(header), sum);
  // In the pieces that its fields were stored in: see write_header.
  const std::byte* from = head.data();
  std::size_t left = head.size();
  for (; left >= sizeof(std::uint32_t); left -= sizeof(std::uint32_t)) {
    std::uint32_t word;
    std::memcpy(&word, from, sizeof word);
    std::memcpy(to, &word, sizeof word);
    sum = base::crc32c_word(word, sum);
    from += sizeof word;
    to += sizeof word;
  }
  if (left != 0) [[unlikely]]
    sum = base::crc32c_copy(to, from, left, sum);
  if (!body.empty()) sum = base::crc32c_copy(to + left, body.data(), body.size(), sum);
  return sum;
}

// An ack frame's payload is one of these for each lane it speaks of, `words` bitmap words behind
// each. Bit i of the bitmap: frame ack + 1 + i has arrived.
struct [[gnu::packed]] AckBlock {
  std::uint8_t lane_flags;  // kFlagWant
  std::uint8_t words;
  std::uint16_t credit;
  std::uint32_t ack;
};
static_assert(sizeof(AckBlock) == 8, "wire layout");

// Payload of hello, welcome and retry. Zeros behind it pad a hello that has a cookie and its
// welcome to `mtu`, so that a connection stands only where frames of that size pass both ways.
struct [[gnu::packed]] Handshake {
  std::uint64_t job_key;
  std::uint64_t incarnation;       // this life of the sender
  std::uint64_t echo;              // welcome, retry: the receiver's incarnation
  std::uint64_t cookie;            // retry: put this into your hello; hello: what a retry has told
  std::uint32_t token;             // put this into every frame to me...
  std::uint32_t seed;              // ... and begin its checksum with this
  std::uint32_t sequence[kLanes];  // number of my first frame in each lane
  std::uint16_t window[kLanes];    // frames you may always send me in each lane
  std::uint16_t connection;        // put this into every frame to me
  std::uint16_t mtu;               // Ethernet payload: hello, retry: the largest that I can take;
                                   // hello with a cookie, welcome: the largest on this connection
  std::uint8_t flags;              // kHandshake...
  std::uint8_t reserved;
};
static_assert(sizeof(Handshake) == 64, "wire layout");
inline constexpr std::uint8_t kHandshakeNoChecksum = 0x01;  // I do without checksums if you do too
inline constexpr std::uint8_t kHandshakeNoRoom = 0x02;      // retry: I have as many peers as I can

}  // namespace viaduct::link
