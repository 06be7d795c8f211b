// Cq: a VIPL completion queue (VipCreateCQ). Its entries say which work queue has a completed
// descriptor; the program then takes the descriptor from that queue itself.
//
// It drops nothing: descriptors that will complete in it are counted when they are posted
// (reserve()), and when more are outstanding than it has room for, it grows, up to what the device
// allows.
//
// Objects live in a SlotTable and are used again, never freed. The lock of a Cq is the mutex of its
// Completions; the functions that a program calls take it themselves and may be called by any
// thread.
#pragma once

#include <algorithm>
#include <atomic>
#include <memory>
#include <mutex>
#include <vector>

#include <vipl.h>

#include "libvipl/core/handlers.hpp"
#include "libvipl/core/queues/completions.hpp"
#include "libvipl/core/slot_table.hpp"

namespace viaduct::vipl {

class Nic;
class WorkQueue;

class Cq final : public Slot {
 public:
  using Table = SlotTable<Cq, HandleKind::completion_queue>;
  static Cq* find(VIP_CQ_HANDLE handle) { return Table::find(handle); }  // nullptr: there is none
  // VipCreateCQ. `entries` can all be in use at once.
  static VIP_RETURN create(const std::shared_ptr<Nic>& nic, std::size_t entries,
                           VIP_CQ_HANDLE& made);
  // VipDestroyCQ. VIP_ERROR_RESOURCE while a VI uses it.
  static VIP_RETURN destroy(VIP_CQ_HANDLE handle);
  // `nic` is closed, and no VI uses the CQ any more. If it is still a CQ of `nic`, it ends.
  void reclaim(const Nic& nic);

  // VipResizeCQ, -Done, -Wait, -Notify. `cq` is the handle that the program gave:
  // VIP_INVALID_PARAMETER if the slot has another one by now. `receive` says which queue of the VI
  // completed a descriptor.
  VIP_RETURN resize(Handle cq, std::size_t entries);
  VIP_RETURN done(Handle cq, VIP_VI_HANDLE& vi, VIP_BOOLEAN& receive);
  VIP_RETURN wait(Handle cq, Deadline deadline, VIP_VI_HANDLE& vi, VIP_BOOLEAN& receive);
  VIP_RETURN notify(Handle cq, VIP_PVOID context, VIP_CQ_CALLBACK handler);
  // The CQ's part of VipNicArm: the next completion makes the NIC's file descriptor readable.
  // VIP_NOT_DONE: there is an entry. VIP_INVALID_PARAMETER: `cq` is no CQ of `nic`.
  VIP_RETURN arm(Handle cq, const Nic& nic);

  // ---- for work queues ----

  // A work queue begins to use this CQ. False: `cq` is not, or no longer, the handle of a CQ of
  // `nic`.
  bool attach(Handle cq, const Nic& nic);
  Completions& completions() { return completions_; }
  // Counts one descriptor that is about to be posted. False: the device has no room for it, and it
  // is not counted. Takes no lock, unless the CQ must grow.
  //
  // (Memory order: reserve() counts first and reads capacity_ then, resize() writes capacity_ first
  // and reads the count then, all sequentially consistent. So at least one of the two sees the
  // other.)
  bool reserve() { return outstanding_.fetch_add(1) < capacity_.load() || grow(); }

  // ---- ... with the mutex of completions() held ----

  // A work queue no longer uses this CQ: removes its entries, and its `outstanding` descriptors
  // that have not completed from the count.
  void detach(const WorkQueue& queue, std::size_t outstanding);
  // A descriptor of `queue` has completed: appends an entry, for which reserve() has made sure
  // there is room.
  void add(WorkQueue& queue) { entries_[end_++ & mask_] = &queue; }
  // Gives entries to the handlers that VipCQNotify registered, one each.
  [[gnu::cold]] void make_due_calls();

 private:
  bool open(Nic& nic, std::size_t entries);
  void close();
  // Hides the handle, closes, and gives the slot back; releases `lock`.
  void end(std::unique_lock<Mutex>& lock);
  // Whether this is the CQ of the handle, and not that of a parent process.
  bool is_of_this_process(Handle cq) const;
  bool is_empty() const { return first_ == end_; }
  // The slow half of reserve().
  [[gnu::cold]] bool grow();
  // Room for all that is counted; false: there is none.
  bool make_room();
  bool make_device_room(std::size_t outstanding);
  void make_entries(std::size_t capacity);
  // Both must have room: the ring of entries, and the device's queue.
  void update_capacity() {
    capacity_ = std::min<std::size_t>(mask_ + 1, completions_.queue().capacity());
  }
  // Takes an entry, after making progress if there is none. False: none.
  bool take(VIP_VI_HANDLE& vi, VIP_BOOLEAN& receive);
  // The rest of done() when there is no entry: asks the device. The mutex is held, and is given
  // back.
  VIP_RETURN done_by_device(VIP_VI_HANDLE& vi, VIP_BOOLEAN& receive);
  // done() when another thread holds the mutex.
  [[gnu::cold]] VIP_RETURN done_after_wait(Handle cq, VIP_VI_HANDLE& vi, VIP_BOOLEAN& receive);
  void take_first(VIP_VI_HANDLE& vi, VIP_BOOLEAN& receive);

  Nic* nic_ = nullptr;
  Completions completions_;
  // A ring: entry number i is at i & mask_; [first_, end_) are in use.
  std::unique_ptr<WorkQueue*[]> entries_;
  std::uint64_t mask_ = 0;
  std::uint64_t first_ = 0, end_ = 0;
  unsigned attached_ = 0;  // work queues that use it
  Calls calls_;            // handlers that wait for an entry
  // outstanding_: descriptors posted and not completed, and entries not taken. capacity_: the
  // number up to which there certainly is room; beyond it reserve() calls grow().
  std::atomic<std::size_t> outstanding_{0}, capacity_{0};
};

}  // namespace viaduct::vipl
