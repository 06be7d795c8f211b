// The bytes of the protocol, and addresses as programs write them.
#include "libvipl/connection/wire.hpp"

#include <gtest/gtest.h>

#include <cstring>
#include <random>

#include "libvipl/connection/socket/deadline.hpp"

namespace viaduct::vipl {
namespace {

EndpointInfo sample_card() {
  EndpointInfo card;
  for (std::size_t i = 0; i < card.queue_pair.gid.size(); ++i)
    card.queue_pair.gid[i] = static_cast<std::uint8_t>(i + 1);
  card.queue_pair.number = 0x123456;
  card.queue_pair.psn = 0xfffffe;
  card.queue_pair.mtu = 4096;
  card.max_transfer_size = 0x1122334455;
  card.reliability = VIP_SERVICE_RELIABLE_RECEPTION;
  card.rdma_read = true;
  card.reads_served = 16;
  return card;
}

Endpoint endpoint(const char* discriminator, std::uint8_t host) {
  const auto* bytes = reinterpret_cast<const std::uint8_t*>(discriminator);
  return {{{10, 0, 0, host}, 18650}, *Discriminator::from({bytes, std::strlen(discriminator)})};
}

Request sample_request() {
  return {.model = Model::peer_to_peer,
          .silent = 3,
          .nonce = 0x0123456789abcdef,
          .callee = endpoint("callee", 1),
          .caller = endpoint("0123456789abcdef", 2),
          .card = sample_card()};
}

void expect_equal(const EndpointInfo& a, const EndpointInfo& b) {
  EXPECT_EQ(a.queue_pair.gid, b.queue_pair.gid);
  EXPECT_EQ(a.queue_pair.number, b.queue_pair.number);
  EXPECT_EQ(a.queue_pair.psn, b.queue_pair.psn);
  EXPECT_EQ(a.queue_pair.mtu, b.queue_pair.mtu);
  EXPECT_EQ(a.max_transfer_size, b.max_transfer_size);
  EXPECT_EQ(a.reliability, b.reliability);
  EXPECT_EQ(a.has_qos, b.has_qos);
  EXPECT_EQ(a.rdma_write, b.rdma_write);
  EXPECT_EQ(a.rdma_read, b.rdma_read);
  EXPECT_EQ(a.reads_served, b.reads_served);
}

Parsed parse_changed(std::size_t at, std::uint8_t value) {
  RequestBytes bytes = encode(sample_request());
  bytes[at] = std::byte{value};
  Request request;
  return parse(bytes, request);
}

TEST(ConnectionWire, RequestsComeBack) {
  for (unsigned flags = 0; flags < 8; ++flags) {
    Request out = sample_request();
    out.card.has_qos = (flags & 1) != 0;
    out.card.rdma_write = (flags & 2) != 0;
    out.card.rdma_read = (flags & 4) != 0;
    Request in;
    ASSERT_EQ(parse(encode(out), in), Parsed::valid);
    EXPECT_EQ(in.model, out.model);
    EXPECT_EQ(in.silent, out.silent);
    EXPECT_EQ(in.nonce, out.nonce);
    EXPECT_EQ(in.callee, out.callee);
    EXPECT_EQ(in.caller, out.caller);
    expect_equal(in.card, out.card);
  }
}

TEST(ConnectionWire, BadRequestsAreSeen) {
  EXPECT_EQ(parse_changed(0, 'X'), Parsed::malformed);
  EXPECT_EQ(parse_changed(4, kVersion + 1), Parsed::other_version);
  EXPECT_EQ(parse_changed(offsetof(WireRequest, model), 2), Parsed::malformed);
  EXPECT_EQ(parse_changed(offsetof(WireRequest, callee) + 6, 17), Parsed::malformed);
  EXPECT_EQ(parse_changed(offsetof(WireRequest, caller) + 6, 255), Parsed::malformed);
  const std::size_t card = offsetof(WireRequest, card);
  EXPECT_EQ(parse_changed(card + offsetof(WireCard, number) + 3, 1), Parsed::malformed);
  EXPECT_EQ(parse_changed(card + offsetof(WireCard, psn) + 3, 1), Parsed::malformed);
  for (const std::uint8_t level : {0, 3, 5, 6, 7, 8})
    EXPECT_EQ(parse_changed(card + offsetof(WireCard, reliability), level), Parsed::malformed);
}

TEST(ConnectionWire, MessagesComeBackWhereverTheyAreCut) {
  std::vector<Message> out(6);
  out[0] = {.type = MessageType::held};
  out[1] = {.type = MessageType::refused, .code = static_cast<std::uint8_t>(Refusal::other_qos)};
  out[2] = {.type = MessageType::accepted, .card = sample_card()};
  out[3] = {.type = MessageType::ready};
  out[4] = {.type = MessageType::alias, .name = 7, .key = 0xfffffffe};
  out[5] = {.type = MessageType::ended, .code = kLastCloseReason, .tally = {0x123456789abcdef0, 7}};
  for (const Message& message : out) {
    const MessageBytes bytes = encode(message);
    Message in;
    std::size_t used = 1;
    for (std::size_t size = 0; size < bytes.size; ++size) {
      ASSERT_TRUE(parse(bytes.span().first(size), in, used));
      ASSERT_EQ(used, 0u);
    }
    ASSERT_TRUE(parse(bytes.span(), in, used));
    EXPECT_EQ(used, bytes.size);
    EXPECT_EQ(in.type, message.type);
    EXPECT_EQ(in.code, message.code);
    EXPECT_EQ(in.tally, message.tally);
    EXPECT_EQ(in.name, message.name);
    EXPECT_EQ(in.key, message.key);
    expect_equal(in.card, message.card);
  }
}

TEST(ConnectionWire, BadMessagesAreSeen) {
  const auto well = [](std::uint8_t type, std::uint8_t code) {
    std::array<std::byte, kLongestMessage> bytes{std::byte{type}, std::byte{code}};
    const auto reliability = sizeof(WireMessage) + offsetof(WireCard, reliability);
    bytes[reliability] = std::byte{1};
    Message message;
    std::size_t used = 0;
    return parse(bytes, message, used);
  };
  EXPECT_FALSE(well(0, 0));
  EXPECT_FALSE(well(8, 0));
  EXPECT_FALSE(well(static_cast<std::uint8_t>(MessageType::refused), 0));
  EXPECT_FALSE(well(static_cast<std::uint8_t>(MessageType::refused), 7));
  EXPECT_FALSE(well(static_cast<std::uint8_t>(MessageType::ended), kLastCloseReason + 1));
  EXPECT_FALSE(well(static_cast<std::uint8_t>(MessageType::ready), 1));
  EXPECT_TRUE(well(static_cast<std::uint8_t>(MessageType::ready), 0));
  EXPECT_TRUE(well(static_cast<std::uint8_t>(MessageType::accepted), 0));
}

TEST(ConnectionWire, AnyBytesAreEitherUnderstoodOrRefused) {
  std::minstd_rand random(7);
  for (int round = 0; round < 200000; ++round) {
    RequestBytes bytes = encode(sample_request());
    for (int i = 0; i < 3; ++i)
      bytes[random() % bytes.size()] = static_cast<std::byte>(random() & 0xff);
    Request request, again;
    if (parse(bytes, request) != Parsed::valid) continue;
    ASSERT_EQ(parse(encode(request), again), Parsed::valid);
    ASSERT_EQ(again.callee, request.callee);
  }
}

TEST(ConnectionAddress, AreReadAndWrittenAsProgramsDo) {
  alignas(VIP_NET_ADDRESS) std::uint8_t memory[40] = {};
  auto& address = *reinterpret_cast<VIP_NET_ADDRESS*>(memory);
  const Endpoint there = endpoint("0123456789abcdef", 9);
  write(there, address);
  EXPECT_EQ(address.HostAddressLen, 6);
  EXPECT_EQ(address.DiscriminatorLen, 16);
  const std::uint8_t expected[] = {10, 0, 0, 9, 18650 >> 8, 18650 & 0xff, '0', '1'};
  EXPECT_EQ(std::memcmp(memory + 4, expected, sizeof expected), 0);
  EXPECT_EQ(endpoint_of(address), there);
  address.DiscriminatorLen = 17;
  EXPECT_EQ(endpoint_of(address), std::nullopt);
  EXPECT_EQ(discriminator_of(address), std::nullopt);
  address.DiscriminatorLen = 2;
  address.HostAddressLen = 8;  // not a NIC's, but the discriminator is behind it all the same
  EXPECT_EQ(endpoint_of(address), std::nullopt);
  EXPECT_EQ(discriminator_of(address), endpoint("23", 0).discriminator);
  // Lengths that were never set lead nowhere.
  for (const VIP_UINT16 length : {21, 1000, 0xffff}) {
    address.HostAddressLen = length;
    EXPECT_EQ(discriminator_of(address), std::nullopt) << length;
  }
  EXPECT_EQ(there.nic.text(), "10.0.0.9:18650");
}

TEST(ConnectionAddress, DiscriminatorsAreEqualByLengthAndBytes) {
  const auto of = [](std::initializer_list<std::uint8_t> bytes) {
    return *Discriminator::from(std::vector<std::uint8_t>(bytes));
  };
  EXPECT_NE(of({1}), of({1, 0}));
  EXPECT_NE(of({}), of({0}));
  EXPECT_EQ(of({1, 2}), of({1, 2}));
}

TEST(Deadline, AllOnesAreForEverInEitherWidth) {
  EXPECT_EQ(deadline_after(0xffffffff), std::nullopt);
  EXPECT_EQ(deadline_after(~VIP_ULONG{0}), std::nullopt);
  EXPECT_GT(*deadline_after(0xfffffffe), Clock::now() + std::chrono::hours(24 * 49));
  const Deadline now = deadline_after(0);
  EXPECT_LE(*now, Clock::now());
}

}  // namespace
}  // namespace viaduct::vipl
