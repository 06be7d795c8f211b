// The wire format of the control messages between two processes: the heads that precede the data.
// docs/wire.md has the pictures. The code of each protocol builds its heads and gives them to the
// channel; Transfer::on_control (engine.cpp) takes them apart.
//
// All processes of a job run the same binary interface on the same kind of machine, so fields are
// in the machine's byte order. The receiver still checks length and values of everything: a
// message that no correct sender could have sent is counted as malformed and dropped.
//
// Two kinds of names appear. `send` and `receive` are request ids, handles in the table
// Transfer::pending_ of the process that owns the request; the other process only returns them.
// A `remote_key` or `offer` belongs to the channel, which alone understands it.
#pragma once

#include <array>
#include <bit>
#include <cstdint>
#include <type_traits>

#include "libmpi_lite/channel/channel.hpp"

namespace viaduct::mpi {

// The first byte of each control message. Values from 0xf0 on belong to the channels.
enum class Kind : std::uint8_t {
  eager = 1,             // Head, data: a whole message
  eager_sync = 2,        // SyncHead, data: the sender waits for `matched`
  request_to_send = 3,   // RtsHead (RTS): a long message waits at the sender
  matched = 4,           // IdHead: the synchronous message has met its receive
  clear_to_send = 5,     // CtsHead (CTS): send that part of the long message
  ready_to_receive = 6,  // RtrHead (RTR): write protocol: a receive waits, write into it. Another
                         // message may follow
  written = 7,           // WrittenHead: write protocol: the message for that receive is on its way,
                         // or, if it comes with the data, there
  cancel_send = 8,   // IdHead: drop that RTS or synchronous message if no receive has matched it
  cancel_want = 9,   // IdHead: drop the RTR of that receive if no message has used it
  cancelled = 10,    // CancelledHead: the answer to both
  consumed = 11,     // ConsumedHead: a credit grant: the eager bytes that the receiver has taken
  eager_short = 12,  // ShortHead, data: as `eager`
  loss = 13,         // LossHead: the message will not come
  refusal = 14,      // RefusalHead: the collective operation has failed at that process
  question = 15,     // StatusQueryHead: has that collective operation ended there?
  ended = 16,        // StatusQueryHead: the answer, if it has
  rma = 17,          // RmaHead, strips, data: one-sided communication; see rma/wire.hpp
};

// The envelope, in front of each message that takes part in matching: what a receive is compared
// with (MPI 5.0, section 3.2.3).
struct Head {
  Kind kind;
  std::uint8_t reserved[3];
  std::uint32_t context;  // of the communicator; odd: of its collectives
  std::int32_t source;    // rank of the sender in the communicator
  std::int32_t tag;
};

// Composes the head as two 64-bit words in registers. Writing the fields one by one and reading
// them back as words would wait for the store buffer: see channel/copy.hpp.
inline Head head_of(Kind kind, std::uint64_t context, std::uint64_t source, std::uint64_t tag) {
  const std::array<std::uint64_t, 2> words{static_cast<std::uint64_t>(kind) | context << 32,
                                           source | tag << 32};
  return std::bit_cast<Head>(words);
}

// The head of an eager message in 8 bytes in place of 16, for small contexts, ranks and tags. The
// head is a large part of a short message's frame, so its size shows in the latency.
struct ShortHead {
  std::uint64_t word;  // from the low end: kind 8 bits, tag 24, context 16, source 16

  // Negative values do not fit either: as unsigned numbers they are too large.
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
  std::uint64_t send;  // id of the sender's request; the receiver returns it in `matched`
};

// Request to send. The data waits in the sender's buffer until the receiver sends a CTS.
struct RtsHead {
  Head head;
  std::uint64_t send;      // id of the sender's request; the receiver returns it in each CTS
  std::uint64_t length;    // bytes of the whole message
  std::uint8_t has_offer;  // 1: the sender's buffer is contiguous, and `offer` says how to fetch it
  std::uint8_t reserved[7];
  RemoteKey offer;
};

// Takes the place of a message that its sender cannot produce, because a third process was lost.
// The matching treats it like any message; the receive that it meets fails.
struct LossHead {
  Head head;
  std::uint32_t process;  // the lost process, its rank in MPI_COMM_WORLD
  std::uint32_t reserved;
};

struct RefusalHead {
  Kind kind;
  std::uint8_t reserved[3];
  std::uint32_t context;
  std::uint32_t number;  // of the operation, among those of its communicator
  std::int32_t error;    // the error class that the operation ends with
};

// A status query (`question`) and its answer `ended`, which repeats the fields of the query.
struct StatusQueryHead {
  Kind kind;
  std::uint8_t reserved[3];
  std::uint32_t context;
  std::uint32_t number;  // of the operation, among those of its communicator
  std::int32_t tag;      // that the querying process uses for the operation's messages
};

struct IdHead {
  Kind kind;
  std::uint8_t reserved[7];
  std::uint64_t id;  // `matched`: of a send of the addressed process; cancel_*: of the sender's own
};

struct CancelledHead {
  Kind kind;
  std::uint8_t done;  // 1: cancelled, will never match; 0: too late, the operation goes on
  std::uint8_t reserved[6];
  std::uint64_t id;  // as in the IdHead that this answers
};

// Clear to send. CTSs cover the message in order and without gaps, from 0 up to `total`.
struct CtsHead {
  Kind kind;
  std::uint8_t reserved[7];
  std::uint64_t send;            // from the RTS
  std::uint64_t total;           // bytes that the receiver will take of the message
  std::uint64_t offset, length;  // the part that this CTS is for, in bytes of the packed message
  RemoteKey remote_key;          // of the receiver's buffer for that part
};

// Ready to receive: the receiver starts the rendezvous (write protocol). On the wire it ends with
// those bytes of the remote key that the channel uses (rtr_bytes). Another control message may
// follow in the same one: RTRs ride on what goes to the sender anyway.
// Lengths have 56 bits in this head and the next one, so that the head of a written message and an
// RTR that rides on it fit one block of a FIFO.
struct RtrHead {
  Kind kind;
  std::uint8_t capacity_high[3];
  std::uint32_t context;
  std::int32_t tag;            // may be MPI_ANY_TAG
  std::uint32_t seen;          // matching messages from the addressed process so far, modulo 2^32
  std::uint32_t receive;       // id of the receive (31 bits); the sender returns it in `written`
  std::uint32_t capacity_low;  // bytes of the receive buffer
  RemoteKey remote_key;        // of the receive buffer
};

constexpr std::size_t rtr_bytes(const Channel::Limits& limits) {
  return sizeof(RtrHead) - RemoteKey::kMax + limits.remote_key;
}

struct WrittenHead {
  Kind kind;
  std::uint8_t length_high[3];
  std::int32_t tag;          // of the message; its source is the only one that the receive accepts
  std::uint32_t receive;     // from the RTR
  std::uint32_t length_low;  // of the whole message; what exceeds the capacity is not written
};

constexpr std::uint64_t length_of(const std::uint8_t (&high)[3], std::uint32_t low) {
  return std::uint64_t{high[2]} << 48 | std::uint64_t{high[1]} << 40 |
         std::uint64_t{high[0]} << 32 | low;
}
constexpr void set_length(std::uint8_t (&high)[3], std::uint32_t& low, std::uint64_t length) {
  low = static_cast<std::uint32_t>(length);
  for (unsigned i = 0; i < 3; ++i) high[i] = static_cast<std::uint8_t>(length >> (32 + 8 * i));
}
// Longer messages and buffers take no part in the write protocol.
inline constexpr std::uint64_t kMaxWritten = (std::uint64_t{1} << 56) - 1;

// Bytes that an eager message counts against the receiver's budget in addition to its data. The
// receiver keeps an object for each unexpected message, so messages without data are not free.
inline constexpr std::uint32_t kEagerCharge = 64;

// Both fields are running totals, so a report makes all earlier ones superfluous.
struct ConsumedHead {
  Kind kind;
  std::uint8_t reserved[3];
  std::uint32_t bytes;     // of eager messages consumed, each with kEagerCharge, modulo 2^32
  std::uint32_t messages;  // matching messages that have arrived, modulo 2^32
};

static_assert(sizeof(ShortHead) == 8 && sizeof(Head) == 16 && sizeof(SyncHead) == 24 &&
              sizeof(LossHead) == 24 && sizeof(RefusalHead) == 16 &&
              sizeof(StatusQueryHead) == 16 && sizeof(RtsHead) == 72);
static_assert(sizeof(CtsHead) == 72 && sizeof(RtrHead) == 56 && sizeof(WrittenHead) == 16);
static_assert(sizeof(RtrHead) + sizeof(WrittenHead) <= Channel::kMaxWrittenHead);
inline constexpr std::size_t kLargestHead = 72;  // bytes; RtsHead and CtsHead
static_assert(kLargestHead <= Channel::kMaxHead);

// A view of the head's own bytes: valid as long as `head` is.
template <class T>
Bytes bytes_of(const T& head) {
  static_assert(std::is_trivially_copyable_v<T>);
  return {reinterpret_cast<const std::byte*>(&head), sizeof head};
}

}  // namespace viaduct::mpi
