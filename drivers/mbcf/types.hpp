// The types of MBCF's interface: keys, statuses, requests' options, completions, chained second
// parts. engine.hpp has the operations. All are plain values without an owner and without a thread
// rule; a span or handler in them belongs to the caller.
#pragma once

#include <cstdint>
#include <functional>
#include <span>

#include "drivers/link/message.hpp"

namespace viaduct::mbcf {

// A remote key: names a segment, a FIFO or a signal of its owner, and is at the same time the right
// to use it, as 48 of its bits are random. (The lower 16 are the place in the owner's KeyTable.)
// The user sends it to other tasks in messages of the user's own. 0: none.
struct Key {
  std::uint64_t value = 0;

  auto operator<=>(const Key&) const = default;
  explicit operator bool() const { return value != 0; }
};

// What requests may do with a segment: a set of bits.
enum class Rights : std::uint8_t { none = 0, read = 1, write = 2, atomic = 4, all = 7 };
constexpr Rights operator|(Rights a, Rights b) {
  return static_cast<Rights>(static_cast<unsigned>(a) | static_cast<unsigned>(b));
}
constexpr bool includes(Rights have, Rights wanted) {
  return (static_cast<unsigned>(have) & static_cast<unsigned>(wanted)) ==
         static_cast<unsigned>(wanted);
}

// The bytes from `offset` on in a segment of a peer.
struct Remote {
  link::PeerId peer;         // the target
  Key key;                   // of a segment
  std::uint64_t offset = 0;  // bytes from the segment's start
};

// The result of a request. The numbers are on the wire (but for no_room and peer_down, which only
// the initiator's own engine reports).
enum class Status : std::uint8_t {
  ok = 0,
  no_room = 1,       // at issue only: a table, the link or the FIFO has no room: poll, try again
  peer_down = 2,     // the peer ended first: executed once or not at all, which stays unknown
  no_key = 3,        // there never was such a key, or a later key of that place was withdrawn
  withdrawn = 4,     // its owner has taken it back
  no_right = 5,      // the segment does not allow this
  out_of_range = 6,  // bytes outside the segment
  misaligned = 7,    // an atomic operand or flag that does not lie on a multiple of its size
  wrong_kind = 8,    // the key names a FIFO or signal where a segment is needed, or the like
  no_credit = 9,     // a FIFO entry that its writer had no credit for: a broken writer
  too_long = 10,     // an entry larger than the FIFO, or one beyond kMaxChainedEntry on a write
};
inline constexpr std::uint8_t kStatuses = 11;
// "done", "withdrawn by its owner", ...: for messages to people. Never nullptr.
const char* text(Status status);

// Names a request until its completion is taken; 0: none. From 0x80000000 on the request is a short
// silent one, and the number is unique among those to its peer only.
struct RequestId {
  std::uint32_t value = 0;
  auto operator<=>(const RequestId&) const = default;
};

// The result of issuing a request. With any status but ok nothing was sent, and there will be no
// completion.
struct Issued {
  Status status = Status::ok;
  RequestId id;
  bool copied = false;  // append: all of the entry is copied, so its bytes may change
};

struct Options {
  // `batch`: the request leaves with the next poll and shares frames with others, for a higher rate
  // (short requests). `now`: the request leaves before the call returns, unless four frames to that
  // peer on its lane are unacknowledged, or credit or room is lacking.
  link::Urgency urgency = link::Urgency::now;
  // No completion on success, only one if the request is refused; and, for short requests, no
  // answer on the wire. For requests whose effect the user sees anyway.
  bool silent = false;
  std::uint64_t context =
      0;  // given back in the completion; of silent short requests it is not kept
};

struct Completion {
  RequestId id;
  Status status;  // never no_room
  link::PeerId peer;
  std::uint64_t context;  // as in the request's Options; 0 for short silent requests
  std::uint64_t value;    // swap, fetch_add, compare_swap: what the word held before
};

// A word of 4 or 8 bytes for the atomic requests.
enum class Width : std::uint8_t { four = 4, eight = 8 };

// Names this task's writing end of a FIFO of a peer's, until it is closed.
struct WriterId {
  std::uint32_t value = 0;  // 0: none
  auto operator<=>(const WriterId&) const = default;
  explicit operator bool() const { return value != 0; }
};

// The second part of a write with notify (a chained operation): it becomes visible at the target
// only after the data of the write. Make one with append(), raise() or set().
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
  WriterId writer;                      // entry: into that FIFO
  std::span<const std::byte> entry;     // entry: copied at once; at most kMaxChainedEntry bytes
  Key key;                              // signal: which; flag: its segment
  std::uint64_t offset = 0, value = 0;  // flag: bytes into the segment; what to store there
};
// The largest FIFO entry, in bytes, that is chained to a write; also the largest `head` of an
// append. Each place in the table of requests has room for a copy of that size.
inline constexpr std::size_t kMaxChainedEntry = 128;

// Called by Engine::poll, on the owner thread, with the number of signals since the last call.
using SignalHandler = std::function<void(std::uint64_t count)>;

// The sizes of an engine's tables; each at least 1, at most the constant below.
struct EngineConfig {
  std::size_t max_keys = 1024;      // segments, FIFOs and signals of this task
  std::size_t max_requests = 1024;  // requests whose completion has not been taken
  std::size_t max_writers = 4096;   // open ends of other tasks' FIFOs
};
// 16 bits of a key, of a request's number and of a writer's are its place in a table.
inline constexpr std::size_t kMaxKeys = 65535;
inline constexpr std::size_t kMaxRequests = 65535;
inline constexpr std::size_t kMaxWriters = 65535;

}  // namespace viaduct::mbcf
