// What is on the wire: packed structs that the link reads and writes in place, and the checksum.
// docs/wire.md draws these headers and states the rules. All integers are little-endian, except the
// EtherType. In the comments on fields, "I" is the sender of the frame and "you" its receiver.
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
// The most frames in a window, and so the bits of a selective acknowledgement. A power of two, as
// RxLane's bitmap takes sequence numbers modulo this.
inline constexpr std::uint32_t kMaxWindow = 512;
inline constexpr std::size_t kBitmapWords = kMaxWindow / 64;
// Every port must take Ethernet payloads of this many bytes. Messages for a peer whose MTU is not
// known yet are packed into frames of this size.
inline constexpr std::size_t kMinMtu = 576;

enum class FrameType : std::uint8_t {
  data = 1,
  ack = 2,
  hello = 3,    // connection request: names the sender; first without a cookie, then with it
  welcome = 4,  // connection accept: names the sender, and echoes the requester's incarnation
  retry = 5,    // answer to a request without a good cookie: repeat the request with this cookie
  goodbye = 6,  // the sender has closed the connection; no answer
};

// FrameHeader::lane_flags: the lane in the low bits, and flags.
inline constexpr std::uint8_t kLaneMask = 0x03;
inline constexpr std::uint8_t kFlagUnordered = 0x04;
inline constexpr std::uint8_t kFlagWant = 0x08;    // more is waiting than the credit allows
inline constexpr std::uint8_t kFlagAnswer = 0x10;  // acknowledge at once
inline constexpr std::uint8_t kFlagsKnown = 0x1f;

// The header of every frame, Ethernet header included. The header is short because the kernel's
// packet ring puts 66 bytes before a frame: a frame of up to 62 bytes then lies in a single
// cache line. A second line would add 0.1 to 0.2 us to a round trip (docs/link.md).
struct [[gnu::packed]] FrameHeader {
  // The route: the same in all frames of a connection in one direction. One comparison of these 20
  // bytes tells the receiver that a frame belongs to the connection.
  std::uint8_t to[6];
  std::uint8_t from[6];
  std::uint16_t ether_type;
  std::uint16_t connection;  // the receiver's name for the sender
  std::uint32_t token;       // the receiver's secret for this connection
  // The rest differs from frame to frame.
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
inline constexpr std::size_t kRoute = 20;  // bytes of the header's route
static_assert(sizeof(FrameHeader) == kFrameHeader && offsetof(FrameHeader, version_type) == kRoute,
              "wire layout");

// Of the messages in a data frame, which all have the same.
inline Order order_of(const FrameHeader& h) {
  return (h.lane_flags & kFlagUnordered) != 0 ? Order::unordered : Order::ordered;
}
// Both headers must have at least their route in memory.
inline bool same_route(const FrameHeader& a, const FrameHeader& b) {
  return std::memcmp(&a, &b, kRoute) == 0;
}
// The CRC of seed and route, with which the checksum of every frame begins; computed once for each
// connection and direction. `seed`: a second secret of the receiver's (Handshake); 0 for a hello.
inline std::uint32_t route_checksum(const FrameHeader& h, std::uint32_t seed) {
  return base::crc32c(reinterpret_cast<const std::byte*>(&h), kRoute, base::crc32c_word(seed, 0));
}
// A frame's checksum: continues `sum`, the CRC of seed, route and payload, over the rest of the
// header. The rest has 14 bytes before the checksum and counts as 16, the last two 0, because two
// words of eight bytes take fewer CRC instructions than 14 bytes. The rest comes last so that the
// payload can be summed before sequence number and acknowledgement are known.
inline std::uint32_t frame_checksum(const FrameHeader& h, std::uint32_t sum) {
  std::uint64_t words[2];
  std::memcpy(words, reinterpret_cast<const std::byte*>(&h) + kRoute, sizeof words);
  return base::crc32c_word(words[1] & 0xffff'ffff'ffff, base::crc32c_word(words[0], sum));
}

// The part of the header that differs from frame to frame; the fields are those of FrameHeader.
struct FrameFields {
  FrameType type;
  std::uint8_t lane_flags;
  std::uint16_t length;
  std::uint32_t sequence = 0, ack = 0;
  std::uint16_t credit = 0;
};

// Writes the header to `to`. `sum`: the CRC of seed, route and payload; without a sum the checksum
// field is 0. The function builds the fields in registers and stores them as wide words: to sum
// narrow fields that have only just been stored, a wide load would wait until the stores have left
// the store buffer (no store forwarding).
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

// A data frame's payload is a row of messages, each behind a header of this form.
struct [[gnu::packed]] MessageHeader {
  std::uint16_t length;   // bytes after this header
  std::uint8_t protocol;  // link::Protocol
  std::uint8_t kind;      // the protocol's own
};
inline constexpr std::size_t kMessageHeader = 4;
static_assert(sizeof(MessageHeader) == kMessageHeader, "wire layout");

// Writes head ++ body as one message to `to`, which must have room for kMessageHeader more bytes
// than these. Continues `sum` over header and message in the same pass as the copy, and returns the
// sum.
inline std::uint32_t write_message(std::byte* to, MessageType type, std::span<const std::byte> head,
                                   std::span<const std::byte> body, std::uint32_t sum) {
  const MessageHeader header{static_cast<std::uint16_t>(head.size() + body.size()),
                             static_cast<std::uint8_t>(type.protocol), type.kind};
  std::memcpy(to, &header, kMessageHeader);
  to += kMessageHeader;
  sum = base::crc32c_word(std::bit_cast<std::uint32_t>(header), sum);
  // The caller has only just stored the fields of the head. Four bytes at a time, because the store
  // buffer forwards a load as wide as the store, or narrower, at once; a wider load waits (see
  // write_header).
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

// The payload of an ack frame is a row of these, at most one a lane, each followed by `words`
// 64-bit words of bitmap. Bit i of the bitmap says that frame ack + 1 + i has arrived (selective
// acknowledgement).
struct [[gnu::packed]] AckBlock {
  std::uint8_t lane_flags;  // the lane, and kFlagWant: I have frames waiting and no credit
  std::uint8_t words;       // of bitmap, 0 to kBitmapWords; the last is not 0
  std::uint16_t credit;     // how many frames of this lane you may send, from `ack` on
  std::uint32_t ack;        // every frame of this lane before this number has arrived
};
static_assert(sizeof(AckBlock) == 8, "wire layout");

// The payload of hello, welcome and retry. A hello with a cookie, and its welcome, are padded with
// zeros to a frame of `mtu`, so a connection comes up only where frames of that size pass both
// ways.
struct [[gnu::packed]] Handshake {
  std::uint64_t job_key;
  std::uint64_t incarnation;       // tells this run of the sender from earlier ones
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
