// The deadlines of many items, earliest first: a binary heap in which each item knows its position,
// so that an item can leave from the middle (O(log n)) without a search. The heap does not own its
// items. One owner thread. Link keeps one timer for each peer here.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "drivers/base/time.hpp"

namespace viaduct::base {

// The position of an item that is not in the heap.
inline constexpr std::uint32_t kNotQueued = UINT32_MAX;

// An Item has `Time timer_at` and `std::uint32_t timer_position` (kNotQueued at first). Only the
// heap writes these two.
template <class Item>
class DeadlineHeap {
 public:
  // Room for n items: set_no_later() allocates only beyond that.
  void reserve(std::size_t n) { heap_.reserve(n); }
  bool due(Time now) const { return !heap_.empty() && heap_.front()->timer_at <= now; }
  // The earliest deadline; Time::max(): the heap is empty.
  Time next() const { return heap_.empty() ? Time::max() : heap_.front()->timer_at; }

  // Makes sure that the item's timer fires at `at` or earlier. A deadline never moves back to a
  // later time here; the code that handles a timer which fired early works out the next deadline.
  // So the usual case on the data path, a timer that is set for earlier already, costs one
  // comparison.
  void set_no_later(Item* item, Time at) {
    if (item->timer_position == kNotQueued) {
      item->timer_position = static_cast<std::uint32_t>(heap_.size());
      heap_.push_back(item);
    } else if (item->timer_at <= at) {
      return;
    }
    item->timer_at = at;
    sift_up(item->timer_position);
  }
  // Takes out the earliest item. The heap must not be empty.
  Item* pop() {
    Item* item = heap_.front();
    remove(item);
    return item;
  }
  void remove(Item* item) {
    const std::uint32_t hole = item->timer_position;
    if (hole == kNotQueued) return;
    item->timer_position = kNotQueued;
    Item* last = heap_.back();
    heap_.pop_back();
    if (last == item) return;
    // The last item fills the hole. It may belong higher or lower, as the hole need not be on the
    // path from the root to the last item.
    place(last, hole);
    sift_up(hole);
    sift_down(last->timer_position);
  }

 private:
  void place(Item* item, std::uint32_t at) {
    heap_[at] = item;
    item->timer_position = at;
  }
  void exchange(std::uint32_t a, std::uint32_t b) {
    Item* item = heap_[a];
    place(heap_[b], a);
    place(item, b);
  }
  bool before(std::uint32_t a, std::uint32_t b) const {
    return heap_[a]->timer_at < heap_[b]->timer_at;
  }
  void sift_up(std::uint32_t at) {
    for (; at != 0 && before(at, (at - 1) / 2); at = (at - 1) / 2) exchange(at, (at - 1) / 2);
  }
  void sift_down(std::uint32_t at) {
    for (;;) {
      std::uint32_t earliest = at;
      for (std::uint32_t child = 2 * at + 1; child <= 2 * at + 2; ++child)
        if (child < heap_.size() && before(child, earliest)) earliest = child;
      if (earliest == at) return;
      exchange(at, earliest);
      at = earliest;
    }
  }

  std::vector<Item*> heap_;
};

}  // namespace viaduct::base
