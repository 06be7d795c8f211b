// What StarT-X puts behind the link's message header (docs/startx.md has the diagrams). All fields
// are little endian.
//
// Priority and order are not repeated here: the lane is the priority and the link marks the order.
#pragma once

#include <bit>
#include <cstdint>
#include <cstring>
#include <span>

#include "drivers/link/message.hpp"

namespace viaduct::startx {

static_assert(std::endian::native == std::endian::little,
              "messages are copied as they lie in memory; a big-endian host needs conversion");

// The kind byte of the message header.
enum class Kind : std::uint8_t {
  pio = 0,           // high or low lane: tag, 2..22 words
  queue = 1,         // the same for the cacheable queues
  rdma_request = 2,  // low lane:  RequestMessage
  rdma_grant = 3,    // high lane: RightMessage
  rdma_refuse = 4,   // high lane: RefuseMessage; answers a request or the last data
  rdma_data = 5,     // bulk lane: DataHead, then bytes
  rdma_last = 6,     // the same; offset + bytes is the length of the transfer
  rdma_done = 7,     // high lane: RightMessage
};
inline constexpr std::uint8_t kKinds = 8;

struct [[gnu::packed]] RequestMessage {
  std::uint32_t transfer;  // the sender's name for it, repeated in the answer
  std::uint32_t tag;
  std::uint64_t length;
};
static_assert(sizeof(RequestMessage) == 16);

// Grant and done name both sides' view of the transfer.
struct [[gnu::packed]] RightMessage {
  std::uint32_t transfer;
  std::uint32_t slot;
  std::uint32_t key;
};
static_assert(sizeof(RightMessage) == 12);

struct [[gnu::packed]] RefuseMessage {
  std::uint32_t transfer;
};
static_assert(sizeof(RefuseMessage) == 4);

struct [[gnu::packed]] DataHead {
  std::uint32_t transfer;
  std::uint32_t slot;
  std::uint32_t key;
  std::uint64_t offset;
};
static_assert(sizeof(DataHead) == 20);

// From a table: a pair of bytes put together on the spot and passed on as one word would wait until
// both have left the store buffer, behind everything stored before.
inline constexpr link::MessageType kMessageTypes[kKinds] = {
    {link::Protocol::startx, 0}, {link::Protocol::startx, 1}, {link::Protocol::startx, 2},
    {link::Protocol::startx, 3}, {link::Protocol::startx, 4}, {link::Protocol::startx, 5},
    {link::Protocol::startx, 6}, {link::Protocol::startx, 7}};
inline link::MessageType message_type(Kind kind) {
  return kMessageTypes[static_cast<std::size_t>(kind)];
}

// false when the message has another size than T.
template <class T>
bool read_exactly(std::span<const std::byte> bytes, T& message) {
  if (bytes.size() != sizeof(T)) return false;
  std::memcpy(&message, bytes.data(), sizeof(T));
  return true;
}

template <class T>
std::span<const std::byte> bytes_of(const T& message) {
  return {reinterpret_cast<const std::byte*>(&message), sizeof(T)};
}

}  // namespace viaduct::startx
