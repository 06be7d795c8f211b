// The words in which a user of MBCF and the driver talk; engine.hpp has the operations.
#pragma once

#include <cstdint>
#include <functional>
#include <span>

#include "drivers/link/message.hpp"

namespace viaduct::mbcf {

// The name of a segment, a FIFO or a signal, and at the same time the right to use it: 48 of its
// bits are random. Plain data: travels to other tasks in messages of the user's own. 0: none.
struct Key {
  std::uint64_t value = 0;

  auto operator<=>(const Key&) const = default;
  explicit operator bool() const { return value != 0; }
};

// What requests may do with a segment.
enum class Rights : std::uint8_t { none = 0, read = 1, write = 2, atomic = 4, all = 7 };
constexpr Rights operator|(Rights a, Rights b) {
  return static_cast<Rights>(static_cast<unsigned>(a) | static_cast<unsigned>(b));
}
constexpr bool includes(Rights have, Rights wanted) {
  return (static_cast<unsigned>(have) & static_cast<unsigned>(wanted)) ==
         static_cast<unsigned>(wanted);
}

// Bytes in somebody's segment, from `offset` on.
struct Remote {
  link::PeerId peer;
  Key key;
  std::uint64_t offset = 0;
};

// What became of a request. The numbers are on the wire.
enum class Status : std::uint8_t {
  ok = 0,
  no_room = 1,       // at issue only: a table, the link or the FIFO has no room: poll, try again
  peer_down = 2,     // the peer ended first: executed once or not at all, there is no knowing
  no_key = 3,        // there never was such a key, or it is long forgotten
  withdrawn = 4,     // its owner has taken it back
  no_right = 5,      // the segment does not allow this
  out_of_range = 6,  // bytes outside the segment
  misaligned = 7,    // an atomic operand or flag that does not lie on a multiple of its size
  wrong_kind = 8,    // a segment's request for a FIFO or signal, or the like
  no_credit = 9,     // a FIFO entry that its writer had no credit for: a broken writer
  too_long = 10,     // an entry larger than the FIFO, or one beyond kMaxCarried on a write
};
inline constexpr std::uint8_t kStatuses = 11;
// "done", "withdrawn by its owner", ...
const char* text(Status status);

// Names a request until its completion is taken. From 0x80000000 on it is that of a short silent
// one, and unique among those to its peer.
struct RequestId {
  std::uint32_t value = 0;
  auto operator<=>(const RequestId&) const = default;
};

// What issuing a request gave. With any status but ok nothing was sent and there will be no
// completion.
struct Issued {
  Status status = Status::ok;
  RequestId id;
  bool copied = false;  // append: all of the entry is copied, so its bytes may change
};

struct Options {
  // `batch`: leaves with the next poll and shares frames, for a higher rate (short requests). `now`
  // leaves before the call returns, unless four frames to that peer are unacknowledged.
  link::Urgency urgency = link::Urgency::now;
  // No completion on success, only one if it is refused. For requests whose effect the user sees
  // anyway.
  bool silent = false;
  std::uint64_t context =
      0;  // given back in the completion; of silent short requests it is not kept
};

struct Completion {
  RequestId id;
  Status status;
  link::PeerId peer;
  std::uint64_t context;
  std::uint64_t value;  // swap, fetch_add, compare_swap: what the word held before
};

// A word of 4 or 8 bytes for the atomic requests.
enum class Width : std::uint8_t { four = 4, eight = 8 };

// This task's end of a FIFO of another task's.
struct WriterId {
  std::uint32_t value = 0;  // 0: none
  auto operator<=>(const WriterId&) const = default;
  explicit operator bool() const { return value != 0; }
};

// The second part of a combination: it becomes visible only after the data of the write.
struct Then {
  enum class Kind : std::uint8_t { none = 0, entry = 1, signal = 2, flag = 3 };

  static Then append(WriterId writer, std::span<const std::byte> entry) {
    Then t;
    t.kind = Kind::entry;
    t.writer = writer;
    t.entry = entry;
    return t;
  }
  static Then raise(Key signal) {
    Then t;
    t.kind = Kind::signal;
    t.key = signal;
    return t;
  }
  static Then set(Key segment, std::uint64_t offset, std::uint64_t value, Width width) {
    Then t;
    t.kind = Kind::flag;
    t.key = segment;
    t.offset = offset;
    t.value = value;
    t.width = width;
    return t;
  }

  Kind kind = Kind::none;
  Width width = Width::eight;
  WriterId writer;                   // entry: into that FIFO
  std::span<const std::byte> entry;  // entry: copied at once; at most kMaxCarried bytes
  Key key;                           // signal, flag
  std::uint64_t offset = 0, value = 0;
};
// The largest FIFO entry that rides on a write.
inline constexpr std::size_t kMaxCarried = 128;

// Called by Engine::poll with the number of signals since the last call.
using SignalHandler = std::function<void(std::uint64_t count)>;

struct EngineConfig {
  std::size_t max_keys = 1024;      // segments, FIFOs and signals of this task
  std::size_t max_requests = 1024;  // requests whose completion has not been taken
  std::size_t max_writers = 4096;   // open ends of other tasks' FIFOs
};
inline constexpr std::size_t kMaxKeys = 65535;
inline constexpr std::size_t kMaxRequests = 65535;
inline constexpr std::size_t kMaxWriters = 65535;

}  // namespace viaduct::mbcf
