// SlotTable: objects of the data path that programs name by handles (VIs, CQs). Look-up takes no
// lock and does not trust the handle, which is the number of a slot and of its use, never a
// pointer.
//
// (Not a base::SlotMap: threads look up without a lock while others take and give back, and a use
// number of 40 bits never comes again. The free objects are not a boost::lockfree::stack: growing
// needs the mutex anyway, and a take with its give-back costs 17 ns instead of 16.)
//
// Objects are never freed, only used again ("type-stable memory", Greenwald and Cheriton, OSDI 96).
// So a thread that is inside a function of an object while another thread destroys it still finds a
// valid lock, and behind the lock an object that has another handle. The rule for every function:
// find the object, take the lock that protects it, then ask is(handle), if need be once more.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

namespace viaduct::vipl {

using Handle = std::uint64_t;
static_assert(sizeof(void*) == sizeof(Handle), "handles carry their checks in 64 bits");

// In every handle, so that a handle of one kind is never valid as another.
enum class HandleKind : std::uint8_t { nic = 1, tag, vi, completion_queue, connection };

// The bits of a handle: 0..17 slot, 18..23 kind, 24..63 use.
inline constexpr unsigned kSlotBits = 18;
inline constexpr unsigned kUseShift = 24;
constexpr Handle make_handle(HandleKind kind, std::uint64_t use, std::uint32_t slot) {
  return use << kUseShift | Handle{static_cast<std::uint8_t>(kind)} << kSlotBits | slot;
}
inline Handle handle_of(void* program_handle) {
  return reinterpret_cast<Handle>(program_handle);
}

// Base class of objects in a SlotTable.
class Slot {
 public:
  // The handle in force. It is shown and hidden with the object's locks held.
  Handle handle() const { return handle_.load(std::memory_order_acquire); }
  bool is(Handle handle) const { return this->handle() == handle; }
  // The same, as programs have it.
  void* program_handle() const { return reinterpret_cast<void*>(handle()); }

 private:
  template <class T, HandleKind>
  friend class SlotTable;

  std::atomic<Handle> handle_{0};
  std::uint64_t use_ = 0;     // the number of this use
  std::uint32_t number_ = 0;  // of the slot
};

// The table of all objects of a type. Each type must have only one: its array of slots is static.
template <class T, HandleKind kKind>
class SlotTable {
 public:
  // The object in the slot that the handle names, whatever its handle is now: the caller must check
  // is(). nullptr: the slot has never been used.
  static T* slot_of(void* program_handle) {
    return slots_[handle_of(program_handle) & (kMax - 1)].load(std::memory_order_acquire);
  }
  // The object that has this handle; nullptr: there is none. It may lose the handle at any time
  // until the caller has locked it.
  static T* find(void* program_handle) {
    T* const object = slot_of(program_handle);
    return object != nullptr && object->is(handle_of(program_handle)) ? object : nullptr;
  }

  // An object without a valid handle, for a new use. nullptr: all slots are in use. May throw
  // std::bad_alloc.
  T* take() {
    const std::lock_guard lock(mutex_);
    if (free_.empty() && !grow()) return nullptr;
    T* const object = free_.back();
    free_.pop_back();
    object->use_ = ++uses_;
    return object;
  }
  // Gives the object its handle: from now on it is found. With the object's locks held.
  static void show(T& object) {
    object.handle_.store(make_handle(kKind, object.use_, object.number_),
                         std::memory_order_release);
  }
  // Takes the handle away: from now on the object is not found. With the object's locks held.
  static void hide(T& object) {
    object.handle_.store(invalid_handle(object.number_), std::memory_order_release);
  }
  // Makes a hidden object free for another use. Allocates nothing.
  void give_back(T& object) {
    const std::lock_guard lock(mutex_);
    free_.push_back(&object);  // there is room: grow() made it
  }

 private:
  static constexpr std::size_t kMax = std::size_t{1} << kSlotBits;

  // The handle of an object that is not in use. It names another slot, so no handle that leads to
  // this slot is equal to it.
  static constexpr Handle invalid_handle(std::uint32_t number) { return number ^ 1; }

  bool grow() {
    const std::size_t number = all_.size();
    if (number == kMax) return false;
    auto object = std::make_unique<T>();
    object->number_ = static_cast<std::uint32_t>(number);
    hide(*object);
    free_.reserve(number + 1);
    all_.push_back(std::move(object));
    free_.push_back(all_.back().get());
    slots_[number].store(free_.back(), std::memory_order_release);
    return true;
  }

  // Static and constant-initialised, so that posting finds a slot without asking whether the table
  // exists. 2 MiB of zero pages, most of which are never touched and so take no memory.
  inline static constinit std::array<std::atomic<T*>, kMax> slots_{};

  std::mutex mutex_;
  std::uint64_t uses_ = 0;  // of all slots together, so that no use number comes again
  std::vector<T*> free_;
  std::vector<std::unique_ptr<T>> all_;
};

}  // namespace viaduct::vipl
