// Wire format of the connection protocol: one connection request, then messages in both directions
// over the same TCP connection. docs/wire.md draws every field.
//
// The structs named Wire... are the exact layouts on the wire. Integers are little-endian, because
// all hosts of Viaduct are; only NIC addresses are in network order. parse() checks everything that
// comes from the network; encode() never fails. No function here has state, so any thread may call
// any of them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "libvipl/connection/address.hpp"
#include "libvipl/connection/connection_user.hpp"

namespace viaduct::vipl {

// The two connection models of VIPL. A request of one never matches a listener of the other.
enum class Model : std::uint8_t { client_server = 0, peer_to_peer = 1 };

// The connection request (REQ of InfiniBand's connection manager): the first bytes on a TCP
// connection, from the side that opened it.
struct Request {
  Model model = Model::client_server;
  // How many earlier requests of this attempt got no answer at all, modulo 256.
  std::uint8_t silent = 0;
  // The random name of the attempt. It also breaks the tie between peers of equal address.
  std::uint64_t nonce = 0;
  Endpoint callee, caller;  // callee: the listener's address as the caller knows it
  EndpointInfo card;        // the caller's queue pair and attributes
};

inline constexpr std::uint32_t kMagic = 0x43504956;  // "VIPC"
inline constexpr std::uint16_t kVersion = 2;
// Aliases that one side may have in force at a time, see MessageType::alias. The limit bounds what
// a misbehaving peer can make this side store.
inline constexpr std::size_t kMaxAliases = 16384;

// An Endpoint on the wire.
struct WireEndpoint {
  std::uint8_t nic[NicAddress::kBytes];  // network order, as in a VIP_NET_ADDRESS
  std::uint8_t discriminator_length;
  std::uint8_t reserved;
  std::uint8_t discriminator[Discriminator::kMax];  // the first discriminator_length count
};
static_assert(sizeof(WireEndpoint) == 24);

// An EndpointInfo on the wire. docs/wire.md gives the units.
struct WireCard {
  std::uint8_t gid[16];
  std::uint64_t max_transfer_size;
  std::uint32_t number, psn, mtu;  // 24 bits, 24 bits, bytes of a packet
  std::uint16_t reliability;       // VIP_SERVICE_..., exactly one bit
  std::uint8_t flags;              // kCard...
  std::uint8_t reads_served;
};
static_assert(sizeof(WireCard) == 40);
// Bits of WireCard::flags: the VI has a QoS; the VI allows RDMA writes, RDMA reads of the other
// side.
inline constexpr std::uint8_t kCardQos = 1, kCardRdmaWrite = 2, kCardRdmaRead = 4;

// A Request on the wire.
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

// What parse() found: a valid request; a request of another protocol version, which is refused with
// that reason; anything else, which is dropped without an answer.
enum class Parsed { valid, other_version, malformed };
// Fills in `request` if it returns Parsed::valid; otherwise `request` may be half written.
Parsed parse(std::span<const std::byte, sizeof(WireRequest)> bytes, Request& request);
RequestBytes encode(const Request& request);

// The messages behind the request, and the side that sends each. The words in capitals are those of
// InfiniBand's connection manager (IB CM).
enum class MessageType : std::uint8_t {
  held = 1,      // callee: a waiting program has the request (IB CM: MRA)
  refused = 2,   // callee: code is a Refusal; the last message (REJ)
  accepted = 3,  // callee: card; its queue pair is ready to receive and send (REP)
  ready = 4,     // caller: its queue pair is ready too (RTU)
  alias = 5,     // either: memory handle `name` stands for remote key `key` from now on
  known = 6,     // either: acknowledges one alias
  ended = 7,     // either: code is a CloseReason, then the tally; the last message (DREQ)
};

// Why a request was refused. Each value becomes one return code of VipConnectRequest, see
// result_of().
enum class Refusal : std::uint8_t {
  no_match = 1,  // no program listens for this callee
  rejected = 2,  // VipConnectReject
  other_version = 3,
  other_reliability = 4,
  other_transfer_size = 5,  // MaxTransferSize differs
  other_qos = 6,
};

// A message in memory. Only the fields of its type are sent.
struct Message {
  MessageType type = MessageType::held;
  std::uint8_t code = 0;            // refused, ended
  std::uint32_t name = 0, key = 0;  // alias
  EndpointInfo card = {};           // accepted
  Tally tally = {};                 // ended
};

// The head of every message. The body, if the type has one, follows at once.
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
// The card is the longest of all bodies.
inline constexpr std::size_t kLongestMessage = sizeof(WireMessage) + sizeof(WireCard);

// Parses the first message of `bytes`. `used` becomes the number of bytes that it took, or 0 while
// the message is not yet complete. False: the bytes are no message that this protocol has, and the
// connection must end.
bool parse(std::span<const std::byte> bytes, Message& message, std::size_t& used);

// An encoded message, of at most kLongestMessage bytes, without an allocation.
struct MessageBytes {
  std::array<std::byte, kLongestMessage> bytes;
  std::size_t size;
  std::span<const std::byte> span() const { return {bytes.data(), size}; }
};
MessageBytes encode(const Message& message);

// The return code for the program whose request was refused.
VIP_RETURN result_of(Refusal refusal);

}  // namespace viaduct::vipl
