// Control messages between two processes: what they say in front of the data. docs/wire.md has the
// pictures. Both ends are the same kind of machine (one job, one binary interface), so fields are
// in its byte order; everything is checked on arrival nevertheless.
#pragma once

#include <array>
#include <bit>
#include <cstdint>
#include <type_traits>

#include "libmpi_lite/channel/channel.hpp"

namespace viaduct::mpi {

enum class Kind : std::uint8_t {
  eager = 1,             // Head, data: a whole message
  eager_sync = 2,        // SyncHead, data: the sender waits for `matched`
  request_to_send = 3,   // RtsHead (RTS): a long message waits at the sender
  matched = 4,           // IdHead: a synchronous message has met its receive
  clear_to_send = 5,     // CtsHead (CTS): send that part of the long message
  ready_to_receive = 6,  // RtrHead (RTR): write protocol: a receive waits, write into it
  written = 7,           // WrittenHead: write protocol: the message for that receive is on its way
  cancel_send = 8,   // IdHead: forget that announced or synchronous message if it has not matched
  cancel_want = 9,   // IdHead: forget that wanted receive if nothing was written
  cancelled = 10,    // CancelledHead: the answer to both
  consumed = 11,     // ConsumedHead: what the receiver has taken in
  eager_short = 12,  // ShortHead, data: as `eager`
  loss = 13,         // LossHead: the message will not come
  refusal = 14,      // RefusalHead: the collective operation has failed at that process
  question = 15,     // QuestionHead: has that collective operation ended there?
  ended = 16,        // QuestionHead: the answer, if it has
};

// In front of each message that takes part in matching.
struct Head {
  Kind kind;
  std::uint8_t reserved[3];
  std::uint32_t context;
  std::int32_t source;  // rank of the sender in the communicator
  std::int32_t tag;
};

// Made in registers, word by word: see channel/copy.hpp.
inline Head head_of(Kind kind, std::uint64_t context, std::uint64_t source, std::uint64_t tag) {
  const std::array<std::uint64_t, 2> words{static_cast<std::uint64_t>(kind) | context << 32,
                                           source | tag << 32};
  return std::bit_cast<Head>(words);
}

// What most heads of eager messages say, in half the room: what is in front of the data of a short
// message is most of its frame.
struct ShortHead {
  std::uint64_t word;  // from the low end: kind 8 bits, tag 24, context 16, source 16

  static constexpr bool fits(std::uint32_t context, std::int32_t source, std::int32_t tag) {
    return ((context | static_cast<std::uint32_t>(source)) >> 16 |
            static_cast<std::uint32_t>(tag) >> 24) == 0;
  }
  static constexpr ShortHead of(std::uint32_t context, std::int32_t source, std::int32_t tag) {
    return {static_cast<std::uint64_t>(Kind::eager_short) |
            std::uint64_t{static_cast<std::uint32_t>(tag)} << 8 | std::uint64_t{context} << 32 |
            std::uint64_t{static_cast<std::uint32_t>(source)} << 48};
  }
  Head head() const {
    return head_of(Kind::eager, word >> 32 & 0xffff, word >> 48, word >> 8 & 0xffffff);
  }
};

struct SyncHead {
  Head head;
  std::uint64_t send;  // names the sender's request
};

struct RtsHead {
  Head head;
  std::uint64_t send;
  std::uint64_t length;    // bytes of the whole message
  std::uint8_t has_offer;  // `offer` says how to fetch it
  std::uint8_t reserved[7];
  RemoteKey offer;
};

struct LossHead {
  Head head;
  std::uint32_t process;  // of MPI_COMM_WORLD: it was lost, and the message would have needed it
  std::uint32_t reserved;
};

struct RefusalHead {
  Kind kind;
  std::uint8_t reserved[3];
  std::uint32_t context;
  std::uint32_t number;  // of the operation, among those of its communicator
  std::int32_t error;    // its class
};

struct QuestionHead {
  Kind kind;
  std::uint8_t reserved[3];
  std::uint32_t context;
  std::uint32_t number;
  std::int32_t tag;  // of the operation's messages, for whoever asks
};

struct IdHead {
  Kind kind;
  std::uint8_t reserved[7];
  std::uint64_t id;  // of a request of the one who is addressed (cancel_*: of the one who speaks)
};

struct CancelledHead {
  Kind kind;
  std::uint8_t done;  // 1: it will never match
  std::uint8_t reserved[6];
  std::uint64_t id;
};

struct CtsHead {
  Kind kind;
  std::uint8_t reserved[7];
  std::uint64_t send;
  std::uint64_t total;           // bytes that the receiver will take of the message
  std::uint64_t offset, length;  // the part that this grant is for
  RemoteKey remote_key;
};

struct RtrHead {
  Kind kind;
  std::uint8_t reserved[3];
  std::uint32_t context;
  std::int32_t tag;    // may be MPI_ANY_TAG
  std::uint32_t seen;  // matching messages from the addressed process so far, modulo 2^32
  std::uint64_t receive;
  std::uint64_t capacity;
  RemoteKey remote_key;
};

struct WrittenHead {
  Head head;
  std::uint64_t receive;
  std::uint64_t length;  // of the whole message; what exceeds the capacity is not written
};

// What a message costs a receiver that it waits for, besides its data: many without data are much,
// too.
inline constexpr std::uint32_t kEagerCharge = 64;

struct ConsumedHead {
  Kind kind;
  std::uint8_t reserved[3];
  std::uint32_t bytes;     // of eager messages in all, each with kEagerCharge, modulo 2^32
  std::uint32_t messages;  // matching messages so far, modulo 2^32
};

static_assert(sizeof(ShortHead) == 8 && sizeof(Head) == 16 && sizeof(SyncHead) == 24 &&
              sizeof(LossHead) == 24 && sizeof(RefusalHead) == 16 && sizeof(QuestionHead) == 16 &&
              sizeof(RtsHead) == 72);
static_assert(sizeof(CtsHead) == 72 && sizeof(RtrHead) == 64 && sizeof(WrittenHead) == 32);
inline constexpr std::size_t kLargestHead = 72;
static_assert(kLargestHead <= Channel::kMaxHead);

template <class T>
Bytes bytes_of(const T& head) {
  static_assert(std::is_trivially_copyable_v<T>);
  return {reinterpret_cast<const std::byte*>(&head), sizeof head};
}

}  // namespace viaduct::mpi
