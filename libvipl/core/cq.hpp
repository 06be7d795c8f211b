// A VIPL completion queue: which work queue has a descriptor to take. It drops nothing: the
// descriptors that will complete in it are counted when they are posted, and where there are more
// than it has room for it grows.
#pragma once

#include <algorithm>
#include <atomic>
#include <memory>
#include <mutex>
#include <vector>

#include <vipl.h>

#include "libvipl/core/completions.hpp"
#include "libvipl/core/handlers.hpp"
#include "libvipl/core/slot_table.hpp"

namespace viaduct::vipl {

class Nic;
class WorkQueue;

class Cq final : public Slot {
 public:
  using Table = SlotTable<Cq, HandleKind::completion_queue>;
  static Cq* find(VIP_CQ_HANDLE handle) { return Table::find(handle); }  // nullptr: there is none
  static VIP_RETURN create(const std::shared_ptr<Nic>& nic, std::size_t entries,
                           VIP_CQ_HANDLE& made);
  static VIP_RETURN destroy(VIP_CQ_HANDLE handle);
  // `nic`, whose CQ it was, is closed; nothing is attached any more.
  void reclaim(const Nic& nic);

  VIP_RETURN resize(Handle cq, std::size_t entries);
  VIP_RETURN done(Handle cq, VIP_VI_HANDLE& vi, VIP_BOOLEAN& receive);
  VIP_RETURN wait(Handle cq, Deadline deadline, VIP_VI_HANDLE& vi, VIP_BOOLEAN& receive);
  VIP_RETURN notify(Handle cq, VIP_PVOID context, VIP_CQ_CALLBACK handler);

  // ---- for work queues ----

  // A queue uses it, from attach() on. False: it is not the CQ of `nic`, or not any more.
  bool attach(Handle cq, const Nic& nic);
  Completions& completions() { return completions_; }
  // One descriptor more is going to complete. False: the device has no room for it.
  // (Counting and looking are in this order for all threads: resize() makes sure of the room by the
  // reverse.)
  bool reserve() { return owed_.fetch_add(1) < room_.load() || grow(); }

  // ---- ... with the mutex of completions() held ----

  // With its entries, and what it has posted that has not completed.
  void detach(const WorkQueue& queue, std::size_t outstanding);
  // It has completed.
  void add(WorkQueue& queue) { entries_[end_++ & mask_] = &queue; }
  // Handlers that wait for an entry get what there is.
  [[gnu::cold]] void make_due_calls();

 private:
  bool open(Nic& nic, std::size_t entries);
  void close();
  void end(std::unique_lock<Mutex>& lock);
  // Whether it is the CQ of the handle, and not of a process that this one is a child of.
  bool is_of_this_process(Handle cq) const;
  bool is_empty() const { return first_ == end_; }
  [[gnu::cold]] bool grow();
  bool make_room();
  bool make_device_room(std::size_t outstanding);
  void make_entries(std::size_t capacity);
  void count_room() { room_ = std::min<std::size_t>(mask_ + 1, completions_.queue().capacity()); }
  bool take(VIP_VI_HANDLE& vi, VIP_BOOLEAN& receive);
  // done() with the mutex held, which it gives back...
  VIP_RETURN done_by_device(VIP_VI_HANDLE& vi, VIP_BOOLEAN& receive);
  // ... and where another thread has it.
  [[gnu::cold]] VIP_RETURN done_after_wait(Handle cq, VIP_VI_HANDLE& vi, VIP_BOOLEAN& receive);
  void take_first(VIP_VI_HANDLE& vi, VIP_BOOLEAN& receive);

  Nic* nic_ = nullptr;
  Completions completions_;
  std::unique_ptr<WorkQueue*[]> entries_;
  std::uint64_t mask_ = 0;
  std::uint64_t first_ = 0, end_ = 0;
  unsigned attached_ = 0;
  Calls calls_;
  // Descriptors posted and not completed, and entries; and up to how many there is room for sure.
  std::atomic<std::size_t> owed_{0}, room_{0};
};

}  // namespace viaduct::vipl
