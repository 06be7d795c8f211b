// A queue of messages from one process to another in shared memory. Why not a queue from a library:
// a short message is one cache line here, with the word in front of it that says that it is there;
// a ring with indices besides moves two or three lines between the cores for each message.
//
//   record:  word (length + 1, or kSkip, or 0: nothing yet) | bytes | padding to half a line
//
// The writer makes the word of the next record 0 before it fills in the word of this one, so the
// reader never sees old bytes as a word. The reader tells from time to time how far it has read.
#pragma once

#include <cstring>
#include <span>
#include <utility>

#include "drivers/base/prefetch.hpp"
#include "libmpi_lite/channel/copy.hpp"
#include "libmpi_lite/channel/shm_segment.hpp"

namespace viaduct::mpi {

using RingWord = std::uint64_t;
inline constexpr RingWord kSkip = ~RingWord{0};  // the rest up to the end is not used
inline constexpr std::size_t kLargestRecord = kRingBytes / 4;
inline constexpr std::size_t kLargestInRing = kLargestRecord - sizeof(RingWord);

// Records start at multiples of half a line: two short messages share one.
inline constexpr std::size_t kRecordGrain = kLine / 2;
inline std::size_t record_bytes(std::size_t length) {
  return (sizeof(RingWord) + length + kRecordGrain - 1) / kRecordGrain * kRecordGrain;
}

inline std::atomic_ref<RingWord> ring_word(Ring& ring, std::uint64_t at) {
  return std::atomic_ref<RingWord>(*reinterpret_cast<RingWord*>(ring.data + at % kRingBytes));
}

class RingWriter {
 public:
  explicit RingWriter(Ring& ring) : ring_(&ring) {}

  // head ++ body as one message of at most kLargestInRing bytes; false: full.
  bool write(std::span<const std::byte> head, std::span<const std::byte> body) {
    const std::size_t length = head.size() + body.size(), bytes = record_bytes(length);
    if (write_ % kRingBytes + bytes > kRingBytes && !skip()) [[unlikely]]
      return false;
    if (!has_room(bytes)) [[unlikely]]
      return false;
    std::byte* const to = ring_->data + write_ % kRingBytes + sizeof(RingWord);
    copy_words(to, head);
    copy_data(to + head.size(), body);
    publish(length + 1, bytes);
    return true;
  }

  // Bytes that the reader has not told to have read.
  std::uint64_t unread() const { return write_ - ring_->read.load(std::memory_order_relaxed); }

 private:
  // The record and the word behind it.
  bool has_room(std::size_t bytes) {
    if (write_ + bytes + kLine - read_ <= kRingBytes) [[likely]]
      return true;
    read_ = ring_->read.load(std::memory_order_acquire);
    return write_ + bytes + kLine - read_ <= kRingBytes;
  }
  bool skip() {
    const std::size_t rest = kRingBytes - write_ % kRingBytes;
    if (!has_room(rest)) return false;
    publish(kSkip, rest);
    return true;
  }
  void publish(RingWord word, std::size_t bytes) {
    Ring& ring = *ring_;
    const std::uint64_t at = write_, next = at + bytes;
    write_ = next;
    ring_word(ring, next).store(0, std::memory_order_relaxed);
    ring_word(ring, at).store(word, std::memory_order_release);
    // The reader has these lines; a burst of messages would wait for each.
    base::own_soon(ring.data + (next + 4 * kLine) % kRingBytes);
  }

  Ring* ring_;
  std::uint64_t write_ = 0, read_ = 0;  // read_: what is known of it
};

class RingReader {
 public:
  explicit RingReader(Ring& ring) : ring_(&ring) {}

  // The oldest message, in place until pop(); an empty span: none. What a broken writer left behind
  // reads as no message.
  std::span<const std::byte> front() {
    RingWord word = ring_word(*ring_, read_).load(std::memory_order_acquire);
    if (word == 0) return {};
    if (word == kSkip) {
      read_ += kRingBytes - read_ % kRingBytes;
      word = ring_word(*ring_, read_).load(std::memory_order_acquire);
      if (word == 0) return {};
    }
    length_ = word - 1;
    const std::size_t at = read_ % kRingBytes;
    if (length_ > kLargestInRing || at + record_bytes(length_) > kRingBytes) return {};
    return {ring_->data + at + sizeof(RingWord), length_};
  }
  // Tells in steps; with a skip between two of them, at most two steps are not told.
  void pop() {
    constexpr std::uint64_t kStep = kRingBytes / 8;
    const std::uint64_t before = std::exchange(read_, read_ + record_bytes(length_));
    if (before / kStep != read_ / kStep) ring_->read.store(read_, std::memory_order_release);
  }

 private:
  Ring* ring_;
  std::uint64_t read_ = 0;
  std::size_t length_ = 0;
};

}  // namespace viaduct::mpi
