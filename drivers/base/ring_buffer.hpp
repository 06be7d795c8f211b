// A bounded queue (ring buffer) whose entries are written and read in place. The ring owns its
// entries, which it allocates at construction and never frees or clears before its end. One owner
// thread, no atomics.
#pragma once

#include <bit>
#include <cstddef>
#include <memory>

#include "drivers/base/cxx20.hpp"

namespace viaduct::base {

template <class T>
class RingBuffer {
 public:
  // `depth` must be a power of two (the owner has checked it).
  explicit RingBuffer(std::size_t depth)
      : entries_(std::make_unique_for_overwrite<Entry[]>(depth)), mask_(depth - 1) {}

  // The oldest entry, or nullptr when the queue is empty.
  T* front() { return empty() ? nullptr : &entries_[head_ & mask_].value; }
  const T* front() const { return empty() ? nullptr : &entries_[head_ & mask_].value; }
  // The next free entry, for the caller to fill and then push(); nullptr when the queue is full.
  T* back() { return full() ? nullptr : &entries_[tail_ & mask_].value; }
  // push() appends the entry at back(), pop() drops the one at front(). On a full or an empty queue
  // they do nothing, so that a caller's mistake cannot corrupt the ring.
  void push() { tail_ += full() ? 0 : 1; }
  void pop() { head_ += empty() ? 0 : 1; }

  bool empty() const { return head_ == tail_; }
  bool full() const { return tail_ - head_ > mask_; }
  std::size_t size() const { return tail_ - head_; }
  std::size_t capacity() const { return mask_ + 1; }

 private:
  // On cache lines of its own, so that reading or writing a small packet touches one line.
  struct alignas(64) Entry {
    T value;
  };
  std::unique_ptr<Entry[]> entries_;
  std::size_t mask_;
  std::size_t head_ = 0, tail_ = 0;  // entries ever popped and pushed; the mask makes them indices
};

}  // namespace viaduct::base
