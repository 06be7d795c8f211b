// What MBCF puts behind the link's message header (docs/wire.md has the diagrams and rules). All
// fields are little endian.
#pragma once

#include <bit>
#include <cstdint>
#include <cstring>
#include <span>

#include "drivers/link/message.hpp"
#include "drivers/mbcf/types.hpp"

namespace viaduct::mbcf {

static_assert(std::endian::native == std::endian::little,
              "messages are copied as they lie in memory; a big-endian host needs conversion");

// The kind byte of the message header. Requests that fit a frame and all that must stay in their
// order travel on the low lane, long writes and what is read in pieces on the bulk lane, answers on
// the high lane, which no receiver ever holds up.
enum class Kind : std::uint8_t {
  write = 0,        // low: target, data
  write_then = 1,   // low: target, ThenHead, entry, data
  long_write = 2,   // bulk: TargetHead, LongHead, the first data
  long_more = 3,    // bulk: StreamHead, more data
  long_then = 4,    // bulk: StreamHead, ThenHead, entry; ends a long write announced with one
  append = 5,       // low: target (offset: length of the entry), the first data
  append_more = 6,  // low: StreamHead, more data
  read = 7,         // low: TargetHead, LongHead
  atomic = 8,       // low: target, AtomicHead
  signal = 9,       // low: target
  fence = 10,       // low: StreamHead
  answer = 11,      // high: Answer
  value = 12,       // high: ValueAnswer
  data = 13,        // high or bulk: StreamHead, bytes that were read
  want = 14,        // low: Want
  give_back = 15,   // low: GiveBack
  grant = 16,       // high: Grant
  recall = 17,      // high: StreamHead (the writer's name for the FIFO)
  gone = 18,        // high: Answer (the writer's name for the FIFO, why; done: a farewell)
};
inline constexpr std::uint8_t kKinds = 19;

// In the kind byte, of requests: silent, only a refusal is answered. Then the target is a
// SilentTarget, and both sides number it: the n-th silent request to a peer has kSilent + n.
inline constexpr std::uint8_t kSilentKind = 0x80;
inline constexpr std::uint32_t kSilent = 0x80000000;
// Those whose requester can do without the answer.
constexpr bool may_be_silent(Kind kind) {
  return kind == Kind::write || kind == Kind::write_then || kind == Kind::append ||
         kind == Kind::atomic || kind == Kind::signal;
}

struct [[gnu::packed]] TargetHead {
  std::uint64_t key;
  std::uint64_t offset;
  std::uint32_t id;  // the requester's number for it, repeated in the answer; below kSilent
};
static_assert(sizeof(TargetHead) == 20);

// A word written with this fits a frame of 62 bytes: see FrameHeader. Key and word are its last 16,
// which a driver's copy moves at once: they can be read before that has left the store buffer.
struct [[gnu::packed]] SilentTarget {
  std::uint32_t offset;  // what is farther off cannot be silent on the wire
  std::uint64_t key;
};
static_assert(sizeof(SilentTarget) == 12);

struct [[gnu::packed]] LongHead {
  std::uint64_t length;
  std::uint32_t then;  // 1: a long_then follows the data
};
static_assert(sizeof(LongHead) == 12);

// What a read and a long write begin with.
struct [[gnu::packed]] LongRequestHead {
  TargetHead target;
  LongHead size;
};

// What an entry begins with: its first bytes may come from elsewhere than the others.
struct [[gnu::packed]] AppendHead {
  TargetHead target;
  std::byte head[kMaxCarried];
};

struct [[gnu::packed]] StreamHead {
  std::uint32_t id;
};

// The number of the n-th silent request to a peer, from 0 on; they come round again.
constexpr std::uint32_t silent_number(std::uint64_t n) {
  return kSilent | static_cast<std::uint32_t>(n & (kSilent - 1));
}

struct [[gnu::packed]] ThenHead {
  std::uint64_t key;
  std::uint64_t offset;  // flag
  std::uint64_t value;   // flag
  std::uint8_t kind;     // Then::Kind
  std::uint8_t width;    // flag: 4 or 8
  std::uint16_t length;  // entry: bytes of it that follow
};
static_assert(sizeof(ThenHead) == 28);

// What a write with a second part begins with.
struct [[gnu::packed]] WriteThenHead {
  TargetHead target;
  ThenHead then;
  std::byte entry[kMaxCarried];
};

enum class AtomicOp : std::uint8_t { swap = 0, fetch_add = 1, compare_swap = 2 };

struct [[gnu::packed]] AtomicHead {
  std::uint64_t operand;
  std::uint64_t compare;  // compare_swap
  std::uint8_t op;
  std::uint8_t width;  // 4 or 8
  std::uint16_t reserved;
};
static_assert(sizeof(AtomicHead) == 20);

struct [[gnu::packed]] AtomicRequestHead {
  TargetHead target;
  AtomicHead atomic;
};

struct [[gnu::packed]] Answer {
  std::uint32_t id;
  std::uint32_t status;  // Status
};

// Two statuses are never told by a peer: that there is no room, and that it has ended.
constexpr bool valid_status(std::uint32_t status) {
  return status < kStatuses && status != static_cast<std::uint32_t>(Status::no_room) &&
         status != static_cast<std::uint32_t>(Status::peer_down);
}

struct [[gnu::packed]] ValueAnswer {
  std::uint32_t id;
  std::uint64_t value;
};
static_assert(sizeof(ValueAnswer) == 12);

// FIFO credit is counted in blocks of kBlock bytes.
struct [[gnu::packed]] Want {
  std::uint64_t key;
  std::uint32_t writer;  // the writer's name for the FIFO, repeated in what it is told
  std::uint32_t blocks;  // needed beyond the credit it has
};
static_assert(sizeof(Want) == 16);

struct [[gnu::packed]] GiveBack {
  std::uint64_t key;
  std::uint32_t blocks;
  std::uint32_t closing;  // 0, or the writer's name for the FIFO if it wants no more: then it hears
                          // a farewell behind everything that it was sent
};
static_assert(sizeof(GiveBack) == 16);

struct [[gnu::packed]] Grant {
  std::uint32_t writer;
  std::uint32_t blocks;    // more
  std::uint32_t capacity;  // of the FIFO
};
static_assert(sizeof(Grant) == 12);

// From a table, for the reason that wire_format.hpp gives at write_header.
inline constexpr auto kMessageTypes = [] {
  struct {
    link::MessageType usual[kKinds], silent[kKinds];
  } table{};
  for (std::uint8_t i = 0; i < kKinds; ++i) {
    table.usual[i] = {link::Protocol::mbcf, i};
    table.silent[i] = {link::Protocol::mbcf, static_cast<std::uint8_t>(i | kSilentKind)};
  }
  return table;
}();
inline link::MessageType message_type(Kind kind) {
  return kMessageTypes.usual[static_cast<std::size_t>(kind)];
}
inline link::MessageType silent_type(Kind kind) {
  return kMessageTypes.silent[static_cast<std::size_t>(kind)];
}

template <class T>
std::span<const std::byte> bytes_of(const T& message) {
  return {reinterpret_cast<const std::byte*>(&message), sizeof(T)};
}

template <class T>
std::span<std::byte> bytes_in(T& message) {
  return {reinterpret_cast<std::byte*>(&message), sizeof(T)};
}

// Takes a T off the front; false when the message is too short.
template <class T>
bool take(std::span<const std::byte>& from, T& head) {
  if (from.size() < sizeof(T)) return false;
  std::memcpy(&head, from.data(), sizeof(T));
  from = from.subspan(sizeof(T));
  return true;
}

}  // namespace viaduct::mbcf
