// The bare Ethernet frames of the layers raw and packet, which also carry orders between real hosts
// (control.cpp).
#pragma once

#include <cstring>

#include "drivers/link/types.hpp"
#include "tools/pingpong/layers/datagram.hpp"

namespace viaduct::pingpong {

// 0x88b6 as stored: IEEE 802 local experimental EtherType 2. The link uses the other one, 0x88b5,
// so that both may use a wire at once.
inline constexpr std::uint16_t kRawEtherType = 0xb688;

// The start of a frame: Ethernet header and PacketHead.
struct [[gnu::packed]] RawHead {
  std::uint8_t to[6];
  std::uint8_t from[6];
  std::uint16_t ether_type;
  PacketHead packet;
};
static_assert(sizeof(RawHead) == 22);

inline RawHead raw_head(const link::Address& from, const link::Address& to, PacketKind kind,
                        std::uint8_t turn) {
  RawHead head{};
  std::memcpy(head.to, to.bytes.data(), 6);
  std::memcpy(head.from, from.bytes.data(), 6);
  head.ether_type = kRawEtherType;
  head.packet.kind = kind;
  head.packet.turn = turn;
  return head;
}

}  // namespace viaduct::pingpong
