// Encoding and checked parsing of the connection protocol's bytes. Nothing here trusts a length, an
// enumerator or a code from the network; stream.cpp ends a connection whose bytes parse() rejects.
#include "libvipl/connection/wire.hpp"

#include <algorithm>
#include <bit>
#include <cstring>

namespace viaduct::vipl {

// The structs are copied to and from the wire as they are.
static_assert(std::endian::native == std::endian::little);

namespace {

constexpr std::uint32_t kMax24Bits = 0xffffff;  // queue pair and packet sequence numbers

// By memcpy, because the bytes of a message need not be aligned.
template <typename Struct>
Struct read(std::span<const std::byte> bytes) {
  Struct out;
  std::memcpy(&out, bytes.data(), sizeof out);
  return out;
}

template <typename Struct>
void put(MessageBytes& to, const Struct& body) {
  std::memcpy(to.bytes.data() + to.size, &body, sizeof body);
  to.size += sizeof body;
}

WireEndpoint wire(const Endpoint& endpoint) {
  WireEndpoint out{};
  const auto nic = endpoint.nic.bytes();
  const auto discriminator = endpoint.discriminator.bytes();
  std::copy(nic.begin(), nic.end(), out.nic);
  std::copy(discriminator.begin(), discriminator.end(), out.discriminator);
  out.discriminator_length = static_cast<std::uint8_t>(discriminator.size());
  return out;
}

// False: the discriminator would be longer than any program may have one.
bool parse(const WireEndpoint& wire, Endpoint& endpoint) {
  if (wire.discriminator_length > Discriminator::kMax) return false;
  endpoint.nic = NicAddress::from(wire.nic);
  endpoint.discriminator =
      *Discriminator::from(std::span(wire.discriminator).first(wire.discriminator_length));
  return true;
}

WireCard wire(const EndpointInfo& card) {
  WireCard out{};
  std::copy(card.queue_pair.gid.begin(), card.queue_pair.gid.end(), out.gid);
  out.number = card.queue_pair.number;
  out.psn = card.queue_pair.psn;
  out.mtu = card.queue_pair.mtu;
  out.max_transfer_size = card.max_transfer_size;
  out.reliability = card.reliability;
  out.flags = static_cast<std::uint8_t>((card.has_qos ? kCardQos : 0) |
                                        (card.rdma_write ? kCardRdmaWrite : 0) |
                                        (card.rdma_read ? kCardRdmaRead : 0));
  out.reads_served = card.reads_served;
  return out;
}

// False: no device has such numbers, or no such reliability level exists.
bool parse(const WireCard& wire, EndpointInfo& card) {
  if (wire.number > kMax24Bits || wire.psn > kMax24Bits) return false;
  if (wire.reliability != VIP_SERVICE_UNRELIABLE &&
      wire.reliability != VIP_SERVICE_RELIABLE_DELIVERY &&
      wire.reliability != VIP_SERVICE_RELIABLE_RECEPTION)
    return false;
  std::copy(std::begin(wire.gid), std::end(wire.gid), card.queue_pair.gid.begin());
  card.queue_pair.number = wire.number;
  card.queue_pair.psn = wire.psn;
  card.queue_pair.mtu = wire.mtu;
  card.max_transfer_size = wire.max_transfer_size;
  card.reliability = wire.reliability;
  card.has_qos = (wire.flags & kCardQos) != 0;
  card.rdma_write = (wire.flags & kCardRdmaWrite) != 0;
  card.rdma_read = (wire.flags & kCardRdmaRead) != 0;
  card.reads_served = wire.reads_served;
  return true;
}

// Bytes of the body of a message of this type. nullopt: there is no such type.
std::optional<std::size_t> body_size(std::uint8_t type) {
  switch (static_cast<MessageType>(type)) {
    case MessageType::held:
    case MessageType::refused:
    case MessageType::ready:
    case MessageType::known: return 0;
    case MessageType::ended: return sizeof(WireTally);
    case MessageType::accepted: return sizeof(WireCard);
    case MessageType::alias: return sizeof(WireAlias);
  }
  return std::nullopt;
}

// Whether `code` is one that the message's type defines. Later casts to Refusal and CloseReason
// rely on it.
bool code_fits(const WireMessage& head) {
  switch (static_cast<MessageType>(head.type)) {
    case MessageType::refused:
      return head.code >= static_cast<std::uint8_t>(Refusal::no_match) &&
             head.code <= static_cast<std::uint8_t>(Refusal::other_qos);
    case MessageType::ended: return head.code <= kLastCloseReason;
    default: return head.code == 0;
  }
}

}  // namespace

Parsed parse(std::span<const std::byte, sizeof(WireRequest)> bytes, Request& request) {
  const auto in = read<WireRequest>(bytes);
  if (in.magic != kMagic) return Parsed::malformed;
  if (in.version != kVersion) return Parsed::other_version;
  if (in.model > static_cast<std::uint8_t>(Model::peer_to_peer)) return Parsed::malformed;
  request.model = static_cast<Model>(in.model);
  request.silent = in.silent;
  request.nonce = in.nonce;
  const bool well = parse(in.callee, request.callee) && parse(in.caller, request.caller) &&
                    parse(in.card, request.card);
  return well ? Parsed::valid : Parsed::malformed;
}

RequestBytes encode(const Request& request) {
  WireRequest out{};
  out.magic = kMagic;
  out.version = kVersion;
  out.model = static_cast<std::uint8_t>(request.model);
  out.silent = request.silent;
  out.nonce = request.nonce;
  out.callee = wire(request.callee);
  out.caller = wire(request.caller);
  out.card = wire(request.card);
  return std::bit_cast<RequestBytes>(out);
}

// The type is checked as soon as the head is there: rubbish is not waited for.
bool parse(std::span<const std::byte> bytes, Message& message, std::size_t& used) {
  used = 0;
  if (bytes.size() < sizeof(WireMessage)) return true;
  const auto head = read<WireMessage>(bytes);
  const auto body = body_size(head.type);
  if (!body || !code_fits(head)) return false;
  if (bytes.size() < sizeof head + *body) return true;
  message = {};
  message.type = static_cast<MessageType>(head.type);
  message.code = head.code;
  bytes = bytes.subspan(sizeof head);
  if (message.type == MessageType::alias) {
    const auto alias = read<WireAlias>(bytes);
    message.name = alias.name;
    message.key = alias.key;
  } else if (message.type == MessageType::ended) {
    const auto tally = read<WireTally>(bytes);
    message.tally = {.received = tally.received, .sent = tally.sent};
  } else if (message.type == MessageType::accepted) {
    if (!parse(read<WireCard>(bytes), message.card)) return false;
  }
  used = sizeof head + *body;
  return true;
}

MessageBytes encode(const Message& message) {
  MessageBytes out{{}, 0};
  put(out, WireMessage{static_cast<std::uint8_t>(message.type), message.code, 0});
  if (message.type == MessageType::alias) put(out, WireAlias{message.name, message.key});
  if (message.type == MessageType::ended)
    put(out, WireTally{message.tally.received, message.tally.sent});
  if (message.type == MessageType::accepted) put(out, wire(message.card));
  return out;
}

VIP_RETURN result_of(Refusal refusal) {
  switch (refusal) {
    case Refusal::no_match: return VIP_NO_MATCH;
    case Refusal::rejected: return VIP_REJECT;
    case Refusal::other_version: return VIP_NOT_REACHABLE;
    case Refusal::other_reliability: return VIP_INVALID_RELIABILITY_LEVEL;
    case Refusal::other_transfer_size: return VIP_INVALID_MTU;
    case Refusal::other_qos: return VIP_INVALID_QOS;
  }
  return VIP_NOT_REACHABLE;
}

}  // namespace viaduct::vipl
