// Doubly linked lists of slots in a preallocated table. The links are indices kept in the entries
// (member `Link`), so an entry can leave the middle of a list at once and nothing is allocated.
// Indices rather than pointers, so that the links take 8 bytes and the table may move. The caller
// passes the table to each call, which is anything whose [slot] is an entry; the list does not know
// it. One owner thread.
#pragma once

#include <cstddef>
#include <cstdint>

#include "drivers/base/cxx20.hpp"

namespace viaduct::base {

using Slot = std::uint32_t;
inline constexpr Slot kNoSlot = ~Slot{0};

struct SlotLinks {
  Slot previous = kNoSlot, next = kNoSlot;
};

// `Entry::*Link` says which links of an entry the list uses. An entry can be in one list for each
// of its links at a time; the caller knows in which, since the list cannot tell.
template <class Entry, SlotLinks Entry::*Link>
class SlotList {
 public:
  Slot first() const { return first_; }
  std::size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }

  // The slot behind `slot` in its list, or kNoSlot.
  template <class Table>
  static Slot after(const Table& table, Slot slot) {
    return (table[slot].*Link).next;
  }

  template <class Table>
  void push_back(Table& table, Slot slot) {
    table[slot].*Link = {last_, kNoSlot};
    (last_ == kNoSlot ? first_ : (table[last_].*Link).next) = slot;
    last_ = slot;
    ++size_;
  }
  template <class Table>
  void remove(Table& table, Slot slot) {
    // Two loads: a neighbour may just have stored one of the two, and a load of both would wait.
    const Slot previous = (table[slot].*Link).previous, next = (table[slot].*Link).next;
    (previous == kNoSlot ? first_ : (table[previous].*Link).next) = next;
    (next == kNoSlot ? last_ : (table[next].*Link).previous) = previous;
    --size_;
  }
  // Takes the first slot out and returns that slot; kNoSlot: the list is empty.
  template <class Table>
  Slot take_first(Table& table) {
    const Slot slot = first_;
    if (slot != kNoSlot) remove(table, slot);
    return slot;
  }

 private:
  Slot first_ = kNoSlot, last_ = kNoSlot;
  std::size_t size_ = 0;
};

}  // namespace viaduct::base
