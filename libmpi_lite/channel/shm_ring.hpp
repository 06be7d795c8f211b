// A queue of messages from one process to another in shared memory. Why not a queue from a library:
// a short message is one cache line here, with the word in front of it that says that it is there;
// a ring with indices besides moves two or three lines between the cores for each message.
//
//   record:  word (length + 1, or kTurn, or 0: nothing yet) | bytes | padding to half a line
//
// The writer makes the word of the next record 0 before it fills in the word of this one, so the
// reader never sees old bytes as a word.
//
//   half 0:  record | record | ... | kTurn          The writer fills one half from its start, turns
//   to half 1:  record | record | 0                    the start of the other one, and so on.
//
// The reader counts in the ring how often it has left a half. A writer that finds the reader in its
// own half may turn: the other half holds nothing unread. A process that writes to many others (64
// processes of a node have 4032 rings) turns early: while the reader keeps pace, both use the same
// page of each half again and again, and the pages behind them take no memory. A writer with a
// backlog goes on to the end of its half, where it waits until the reader has left the other one.
#pragma once

#include <algorithm>
#include <cstring>
#include <span>
#include <utility>

#include "drivers/base/prefetch.hpp"
#include "libmpi_lite/channel/copy.hpp"
#include "libmpi_lite/channel/shm_segment.hpp"

namespace viaduct::mpi {

using RingWord = std::uint64_t;
inline constexpr RingWord kTurn =
    ~RingWord{0};  // the next record is at the start of the other half

// Records start at multiples of half a line: two short messages share one.
inline constexpr std::size_t kRecordGrain = kLine / 2;
inline constexpr std::size_t kMaxRecord = 32 << 10;
inline constexpr std::size_t kMaxInRing = kMaxRecord - sizeof(RingWord);
// The two halves begin in one of six lines, differently from ring to ring: else the next words of
// all the rings that a process polls would be in one set of its cache.
inline constexpr std::size_t kStarts = 6;
inline std::size_t ring_start(const Ring& ring) {
  return ring.writer.load(std::memory_order_relaxed) % kStarts * kLine;
}
// From there on for records, and the word behind the last one.
inline constexpr std::size_t kHalfRoom = kHalfRing - (kStarts - 1) * kLine;
static_assert(kMaxRecord + kRecordGrain <= kHalfRoom);

inline std::size_t record_bytes(std::size_t length) {
  return (sizeof(RingWord) + length + kRecordGrain - 1) / kRecordGrain * kRecordGrain;
}

inline std::atomic_ref<RingWord> ring_word(std::byte* record) {
  return std::atomic_ref<RingWord>(*reinterpret_cast<RingWord*>(record));
}

// The sending process's side; one thread at a time. The ring has been claimed.
class RingWriter {
 public:
  explicit RingWriter(Ring& ring) : ring_(&ring), start_(ring_start(ring)) {}

  // head ++ body as one message of at most kMaxInRing bytes; false: full.
  bool write(std::span<const std::byte> head, std::span<const std::byte> body) {
    const std::size_t length = head.size() + body.size(), bytes = record_bytes(length);
    if (next_ + bytes > last_ && !turn()) [[unlikely]]
      return false;
    std::byte* const to = next_ + sizeof(RingWord);
    copy_words(to, head);
    copy_data(to + head.size(), body);
    publish(length + 1, bytes);
    // A turn now is one that the next message need not wait for.
    if (next_ + bytes >= early_ && !turn()) [[unlikely]]
      early_ = next_ + kPage;
    return true;
  }

  // While the reader keeps pace, about so much of the ring is in use. Little costs 5 % of a round
  // trip of 256 bytes: it is for processes that write to many.
  void set_memory_budget(std::size_t bytes) {
    turn_after_ = std::clamp(bytes / 2, kEarliest, kLatest);
    early_ = half() + turn_after_;
  }

  // Bytes in the writer's half, and in the other one if the reader is still there.
  std::uint64_t unread() const {
    return static_cast<std::uint64_t>(next_ - half()) +
           (ring_->reader_turns.load(std::memory_order_relaxed) == turns_ ? 0 : left_behind_);
  }

 private:
  // With the ring's head, and wherever the half begins: within a page.
  static constexpr std::size_t kEarliest = kPage - (2 + kStarts) * kLine;
  static constexpr std::size_t kLatest = kHalfRing / 2;
  static constexpr std::size_t kLinesAhead = 4;  // that the writer asks for before it needs them

  std::byte* half() const { return ring_->data[turns_ % 2] + start_; }

  // False: the other half is not free.
  bool turn() {
    if (ring_->reader_turns.load(std::memory_order_acquire) != turns_) return false;
    left_behind_ = static_cast<std::size_t>(next_ - half());
    ++turns_;
    std::byte* const end = std::exchange(next_, half());
    ring_word(next_).store(0, std::memory_order_relaxed);
    ring_word(end).store(kTurn, std::memory_order_release);
    last_ = next_ + kHalfRoom - kRecordGrain;
    early_ = next_ + turn_after_;
    for (std::size_t line = 0; line < kLinesAhead; ++line)
      base::prefetch_for_write(next_ + line * kLine);
    return true;
  }
  void publish(RingWord word, std::size_t bytes) {
    std::byte* const record = next_;
    next_ += bytes;
    ring_word(next_).store(0, std::memory_order_relaxed);
    ring_word(record).store(word, std::memory_order_release);
    // The reader has these lines; a burst of messages would wait for each.
    base::prefetch_for_write(next_ + kLinesAhead * kLine);
  }

  Ring* ring_;
  std::size_t start_;
  std::uint64_t turns_ = 0;  // how often the writer has left a half
  std::byte* next_ = half();
  std::byte* last_ = next_ + kHalfRoom - kRecordGrain;  // a record ends here at most
  std::size_t left_behind_ = 0;                         // bytes in the other half
  std::size_t turn_after_ = kLatest;
  std::byte* early_ = next_ + turn_after_;  // from here on it is time to turn
};

// The receiving process's side; one thread at a time.
class RingReader {
 public:
  explicit RingReader(Ring& ring) : ring_(&ring), start_(ring_start(ring)) {}

  // The oldest message, in place until pop(); an empty span: none. What a broken writer left behind
  // reads as no message.
  std::span<const std::byte> front() {
    RingWord word = ring_word(next_).load(std::memory_order_acquire);
    if (word == 0) return {};
    if (word == kTurn) [[unlikely]] {
      ring_->reader_turns.store(++turns_, std::memory_order_release);
      next_ = half();
      word = ring_word(next_).load(std::memory_order_acquire);
      if (word == 0) return {};
    }
    length_ = word - 1;
    if (length_ > kMaxInRing || next_ + record_bytes(length_) > half() + kHalfRoom - kRecordGrain)
      return {};
    return {next_ + sizeof(RingWord), length_};
  }
  void pop() { next_ += record_bytes(length_); }

 private:
  std::byte* half() const { return ring_->data[turns_ % 2] + start_; }

  Ring* ring_;
  std::size_t start_;
  std::uint64_t turns_ = 0;  // how often the reader has left a half
  std::byte* next_ = half();
  std::size_t length_ = 0;
};

}  // namespace viaduct::mpi
