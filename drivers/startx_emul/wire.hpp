// What StarT-X puts behind the link's message header (docs/startx.md has the diagrams). All fields
// are little endian.
//
// Priority and order are not repeated here: the lane is the priority and the link marks the order.
// The structures are packed and copied with memcpy, because messages lie at any offset in a frame.
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
  rdma_request = 2,  // low lane:  RequestMessage; the sender announces data (ready-to-send)
  rdma_grant = 3,    // high lane: RightMessage; the receiver lets it come (clear-to-send)
  rdma_refuse = 4,   // high lane: RefuseMessage; answers a request or the last data
  rdma_data = 5,     // bulk lane: DataHead, then bytes
  rdma_last = 6,     // the same; offset + bytes is the length of the transfer
  rdma_done = 7,     // high lane: RightMessage
};
inline constexpr std::uint8_t kKinds = 8;

// The sender asks the receiver for the right to write.
struct [[gnu::packed]] RequestMessage {
  std::uint32_t transfer;  // the sender's name for the transfer; the answer repeats it
  std::uint32_t tag;       // meets a post with the same tag
  std::uint64_t length;    // of the whole transfer, in bytes
};
static_assert(sizeof(RequestMessage) == 16);

// A grant or a done. Both carry the sender's name for the transfer and the receiver's.
struct [[gnu::packed]] RightMessage {
  std::uint32_t transfer;  // the sender's name for the transfer
  std::uint32_t slot;      // the receiver's index of the transfer
  std::uint32_t key;       // remote key: tells this right from earlier ones in the same slot
};
static_assert(sizeof(RightMessage) == 12);

// The receiver takes nothing (more) of this transfer.
struct [[gnu::packed]] RefuseMessage {
  std::uint32_t transfer;  // the sender's name for the transfer
};
static_assert(sizeof(RefuseMessage) == 4);

// In front of the bytes of each piece of data.
struct [[gnu::packed]] DataHead {
  std::uint32_t transfer;  // the sender's name for the transfer
  std::uint32_t slot;      // the right, as the grant gave it...
  std::uint32_t key;       // ... and its remote key
  std::uint64_t offset;    // of these bytes from the start of the receiver's range
};
static_assert(sizeof(DataHead) == 20);

// The link's message type for each kind, from a table. Two bytes stored separately and then loaded
// as one word defeat the CPU's store forwarding: the load waits until both stores, and all stores
// before them, have left the store buffer.
inline constexpr link::MessageType kMessageTypes[kKinds] = {
    {link::Protocol::startx, 0}, {link::Protocol::startx, 1}, {link::Protocol::startx, 2},
    {link::Protocol::startx, 3}, {link::Protocol::startx, 4}, {link::Protocol::startx, 5},
    {link::Protocol::startx, 6}, {link::Protocol::startx, 7}};
inline link::MessageType message_type(Kind kind) {
  return kMessageTypes[static_cast<std::size_t>(kind)];
}

// Copies a message into `message`. False when the message has another size than T.
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
