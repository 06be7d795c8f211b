// A singly linked list of frames, linked through the frames' own metadata (intrusive). The list
// allocates nothing, whatever its length, so an idle peer costs no queue memory. The list does not
// own frames: its user holds a reference for each frame in it. One owner thread.
#pragma once

#include <cstdint>

#include "drivers/base/cxx20.hpp"

namespace viaduct::link {

// `Part` selects the metadata that holds the link: FrameMeta::tx or FrameMeta::rx. A frame can be
// in one list of each part at a time.
template <class Device, auto Part>
class FrameList {
 public:
  using Frame = typename Device::Frame;

  bool empty() const { return head_ == nullptr; }
  std::uint32_t size() const { return size_; }
  Frame* front() const { return head_; }
  Frame* back() const { return tail_; }
  static Frame* next(Frame* f) { return part(f).next; }

  void push_back(Frame* f) {
    part(f).next = nullptr;
    (head_ ? part(tail_).next : head_) = f;
    tail_ = f;
    ++size_;
  }
  // The list must not be empty.
  Frame* pop_front() {
    Frame* f = head_;
    head_ = part(f).next;
    if (!head_) tail_ = nullptr;
    --size_;
    return f;
  }
  // Inserts `f` behind `before`, a member of the list; nullptr: at the front.
  void insert_after(Frame* before, Frame* f) {
    if (!before) {
      part(f).next = head_;
      head_ = f;
      if (!tail_) tail_ = f;
    } else {
      part(f).next = part(before).next;
      part(before).next = f;
      if (before == tail_) tail_ = f;
    }
    ++size_;
  }
  // Takes out the frame behind `before` (nullptr: the front one) and returns that frame. A singly
  // linked list can only remove behind a known frame, hence the `before` in every loop that
  // removes.
  Frame* remove_after(Frame* before) {
    if (!before) return pop_front();
    Frame* f = part(before).next;
    part(before).next = part(f).next;
    if (f == tail_) tail_ = before;
    --size_;
    return f;
  }

 private:
  static auto& part(Frame* f) { return Device::meta(f).*Part; }

  Frame* head_ = nullptr;
  Frame* tail_ = nullptr;
  std::uint32_t size_ = 0;
};

}  // namespace viaduct::link
