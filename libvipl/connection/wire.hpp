// The bytes of the connection protocol (docs/wire.md): one request, then messages both ways. The
// structs are the layouts; hosts are little-endian, as everywhere in Viaduct.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "libvipl/connection/address.hpp"
#include "libvipl/connection/connection_user.hpp"

namespace viaduct::vipl {

enum class Model : std::uint8_t { client_server = 0, peer_to_peer = 1 };

// The first bytes on a connection, from the side that made it.
struct Request {
  Model model = Model::client_server;
  std::uint8_t silent = 0;  // calls before this one that nobody answered, modulo 256
  std::uint64_t nonce = 0;  // names the attempt; breaks the tie between equal addresses
  Endpoint callee, caller;
  Card card;
};

inline constexpr std::uint32_t kMagic = 0x43504956;  // "VIPC"
inline constexpr std::uint16_t kVersion = 2;
// Memory handles that stand for another key, at a time, of one side.
inline constexpr std::size_t kMaxAliases = 16384;

struct WireEndpoint {
  std::uint8_t nic[NicAddress::kBytes];  // network order, as in a VIP_NET_ADDRESS
  std::uint8_t discriminator_length;
  std::uint8_t reserved;
  std::uint8_t discriminator[Discriminator::kMax];
};
static_assert(sizeof(WireEndpoint) == 24);

struct WireCard {
  std::uint8_t gid[16];
  std::uint64_t max_transfer_size;
  std::uint32_t number, psn, mtu;
  std::uint16_t reliability;
  std::uint8_t flags;
  std::uint8_t reads_served;
};
static_assert(sizeof(WireCard) == 40);
inline constexpr std::uint8_t kCardQos = 1, kCardRdmaWrite = 2, kCardRdmaRead = 4;

struct WireRequest {
  std::uint32_t magic;
  std::uint16_t version;
  std::uint8_t model;
  std::uint8_t silent;
  std::uint64_t nonce;
  WireEndpoint callee, caller;
  WireCard card;
};
static_assert(sizeof(WireRequest) == 104);

using RequestBytes = std::array<std::byte, sizeof(WireRequest)>;

enum class Parsed { well, other_version, rubbish };
Parsed parse(std::span<const std::byte, sizeof(WireRequest)> bytes, Request& request);
RequestBytes encode(const Request& request);

enum class MessageType : std::uint8_t {
  held = 1,      // callee: somebody has the request and will answer
  refused = 2,   // callee: code is a Refusal; the end
  accepted = 3,  // callee: card
  ready = 4,     // caller: connected as well
  alias = 5,     // either: name, key
  known = 6,     // either: an alias has been noted
  ended = 7,     // either: code is a Loss; tally; the end
};

enum class Refusal : std::uint8_t {
  no_match = 1,
  rejected = 2,
  other_version = 3,
  other_reliability = 4,
  other_transfer_size = 5,
  other_qos = 6,
};

struct Message {
  MessageType type = MessageType::held;
  std::uint8_t code = 0;            // refused, ended
  std::uint32_t name = 0, key = 0;  // alias
  Card card = {};                   // accepted
  Tally tally = {};                 // ended
};

struct WireMessage {
  std::uint8_t type;
  std::uint8_t code;
  std::uint16_t reserved;
};
struct WireAlias {
  std::uint32_t name, key;
};
struct WireTally {
  std::uint64_t received, sent;
};
inline constexpr std::size_t kLongestMessage = sizeof(WireMessage) + sizeof(WireCard);

// Takes the first message of `bytes` apart. `used` stays 0 while it is not yet complete. False:
// nothing that this side can understand.
bool parse(std::span<const std::byte> bytes, Message& message, std::size_t& used);

struct MessageBytes {
  std::array<std::byte, kLongestMessage> bytes;
  std::size_t size;
  std::span<const std::byte> span() const { return {bytes.data(), size}; }
};
MessageBytes encode(const Message& message);

VIP_RETURN result_of(Refusal refusal);

}  // namespace viaduct::vipl
