// MBCF's wire format: what follows the link's message header (docs/wire.md has the diagrams and
// rules). The original's header bits were never published, so these are our own. All fields are
// little endian and packed; lengths and offsets are in bytes, FIFO credit is in blocks.
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

// The kind byte of the message header. Requests that fit a frame, and all that must stay in order
// with them, travel on the low lane; long writes and the data of long reads on the bulk lane;
// answers and the owner's credit messages on the high lane, on which no receiver exerts
// back-pressure.
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
  gone = 18,        // high: Answer (the writer's name for the FIFO, why; done: close acknowledged)
};
inline constexpr std::uint8_t kKinds = 19;
// The lane of a kind. Only the data of a short read travels on another one, the high lane.
constexpr link::Lane usual_lane(Kind kind) {
  switch (kind) {
    case Kind::answer:
    case Kind::value:
    case Kind::grant:
    case Kind::recall:
    case Kind::gone: return link::Lane::high;
    case Kind::long_write:
    case Kind::long_more:
    case Kind::long_then:
    case Kind::data: return link::Lane::bulk;
    default: return link::Lane::low;
  }
}

// This bit in the kind byte makes a request silent: only a refusal is answered. Then the target is
// a SilentTarget without a number. Both sides count instead: the n-th silent request to a peer,
// from 0 on, has the number kSilent + n in a refusal.
inline constexpr std::uint8_t kSilentKind = 0x80;
inline constexpr std::uint32_t kSilent = 0x80000000;
// The kinds that exist in a silent form: those whose initiator can do without the answer.
constexpr bool may_be_silent(Kind kind) {
  return kind == Kind::write || kind == Kind::write_then || kind == Kind::append ||
         kind == Kind::atomic || kind == Kind::signal;
}

// What a request acts on.
struct [[gnu::packed]] TargetHead {
  std::uint64_t key;
  std::uint64_t offset;  // in the segment; append: the length of the whole entry
  std::uint32_t id;  // the initiator's number for the request, repeated in the answer; < kSilent
};
static_assert(sizeof(TargetHead) == 20);

// The target of a silent request. A silent write of 8 bytes makes a frame of 62 bytes, which lies
// in one cache line of a kernel's packet ring (link's FrameHeader). Key and word are the frame's
// last 16 bytes, which a driver's copy stores in one piece, so that reading either of them right
// afterwards can be served from the store buffer (store forwarding).
struct [[gnu::packed]] SilentTarget {
  std::uint32_t offset;  // what is farther off cannot be silent on the wire
  std::uint64_t key;
};
static_assert(sizeof(SilentTarget) == 12);

struct [[gnu::packed]] LongHead {
  std::uint64_t length;  // of all data, in however many messages
  std::uint32_t then;    // 1: a long_then follows the data; 0 in a read
};
static_assert(sizeof(LongHead) == 12);

// The head of a read, and of the first piece of a long write.
struct [[gnu::packed]] LongRequestHead {
  TargetHead target;
  LongHead size;
};

// The head of an append, as the initiator builds it: the user's `head` lies elsewhere than the rest
// of the entry, and the link takes only two pieces. On the wire only as much of it as is in use.
struct [[gnu::packed]] AppendHead {
  TargetHead target;
  std::byte head[kMaxChainedEntry];
};

// A further piece of a request that an earlier message has begun; or a message that has no more to
// say than a number.
struct [[gnu::packed]] StreamHead {
  std::uint32_t id;  // the initiator's number; recall: the writer's name for the FIFO
};

// The number of the n-th silent request to a peer, from 0 on. Numbers repeat after 2^31 requests.
constexpr std::uint32_t silent_number(std::uint64_t n) {
  return kSilent | static_cast<std::uint32_t>(n & (kSilent - 1));
}

// The second part of a write with notify (a chained operation).
struct [[gnu::packed]] ThenHead {
  std::uint64_t key;     // of the FIFO, the signal or the flag's segment
  std::uint64_t offset;  // flag
  std::uint64_t value;   // flag
  std::uint8_t kind;     // Then::Kind
  std::uint8_t width;    // flag: 4 or 8
  std::uint16_t length;  // entry: bytes of it that follow
};
static_assert(sizeof(ThenHead) == 28);

// The head of a short write with notify. On the wire `entry` has ThenHead::length bytes.
struct [[gnu::packed]] WriteThenHead {
  TargetHead target;
  ThenHead then;
  std::byte entry[kMaxChainedEntry];
};

enum class AtomicOp : std::uint8_t { swap = 0, fetch_add = 1, compare_swap = 2 };

struct [[gnu::packed]] AtomicHead {
  std::uint64_t operand;   // the new value, or what is added; of width 4 the lower bytes count
  std::uint64_t compare;   // compare_swap: the expected value
  std::uint8_t op;         // AtomicOp
  std::uint8_t width;      // 4 or 8
  std::uint16_t reserved;  // 0
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

// Whether a status from the wire is possible: no_room and peer_down are the initiator's own.
constexpr bool valid_status(std::uint32_t status) {
  return status < kStatuses && status != static_cast<std::uint32_t>(Status::no_room) &&
         status != static_cast<std::uint32_t>(Status::peer_down);
}

struct [[gnu::packed]] ValueAnswer {
  std::uint32_t id;
  std::uint64_t value;  // what the word held before
};
static_assert(sizeof(ValueAnswer) == 12);

// A writer asks the FIFO's owner for credit, in blocks of kBlock bytes.
struct [[gnu::packed]] Want {
  std::uint64_t key;
  std::uint32_t writer;  // the writer's name for the FIFO, repeated in what it is told
  std::uint32_t blocks;  // needed beyond the credit it has
};
static_assert(sizeof(Want) == 16);

// A writer returns credit that it has not spent.
struct [[gnu::packed]] GiveBack {
  std::uint64_t key;
  std::uint32_t blocks;
  std::uint32_t closing;  // 0, or the writer's name for the FIFO if it closes: then the owner
                          // acknowledges that by `gone` with status ok, behind all its grants
};
static_assert(sizeof(GiveBack) == 16);

// Credit grant: the owner gives a writer credit, asked for or not.
struct [[gnu::packed]] Grant {
  std::uint32_t writer;    // the writer's name for the FIFO
  std::uint32_t blocks;    // in addition to what the writer has
  std::uint32_t capacity;  // of the whole FIFO, in blocks
};
static_assert(sizeof(Grant) == 12);

// The link's message types, from a table: the link reads a type in one piece, and a type that has
// just been stored field by field would stall that read (see write_header in link/wire_format.hpp).
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

// The bytes of a message or head, to be sent.
template <class T>
std::span<const std::byte> bytes_of(const T& message) {
  return {reinterpret_cast<const std::byte*>(&message), sizeof(T)};
}

// The same bytes, to be filled in.
template <class T>
std::span<std::byte> bytes_in(T& message) {
  return {reinterpret_cast<std::byte*>(&message), sizeof(T)};
}

// Copies a T off the front of `from`, which may lie at any address; false when the message is too
// short.
template <class T>
bool take(std::span<const std::byte>& from, T& head) {
  if (from.size() < sizeof(T)) return false;
  std::memcpy(&head, from.data(), sizeof(T));
  from = from.subspan(sizeof(T));
  return true;
}

}  // namespace viaduct::mbcf
