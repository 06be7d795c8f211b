// Objects that programs name by handles, found without a lock and without trusting the handle: it
// is the number of a slot and of its use, never a pointer.
//
// Objects are never freed, only used again ("type-stable memory", Greenwald and Cheriton, OSDI 96):
// a thread that is inside a function of an object while another destroys it still meets a valid
// lock behind which the object's handle is another one. So the rule for all users: find, lock what
// protects the object, then ask (once more) whether is(handle).
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

enum class HandleKind : std::uint8_t { nic = 1, tag, vi, completion_queue, connection };

// Bits: 0..17 slot, 18..23 kind, 24..63 use.
inline constexpr unsigned kSlotBits = 18;
inline constexpr unsigned kUseShift = 24;
constexpr Handle make_handle(HandleKind kind, std::uint64_t use, std::uint32_t slot) {
  return use << kUseShift | Handle{static_cast<std::uint8_t>(kind)} << kSlotBits | slot;
}
inline Handle handle_of(void* program_handle) {
  return reinterpret_cast<Handle>(program_handle);
}

// Base class of what is in a table.
class Slot {
 public:
  Handle handle() const { return handle_.load(std::memory_order_acquire); }
  bool is(Handle handle) const { return this->handle() == handle; }
  void* program_handle() const { return reinterpret_cast<void*>(handle()); }

 private:
  template <class T, HandleKind>
  friend class SlotTable;

  std::atomic<Handle> handle_{0};
  std::uint64_t use_ = 0;
  std::uint32_t number_ = 0;
};

// One table for all objects of a type.
template <class T, HandleKind kKind>
class SlotTable {
 public:
  // The object whose handle this would have to be. nullptr: there is none.
  static T* slot_of(void* program_handle) {
    return slots_[handle_of(program_handle) & (kMax - 1)].load(std::memory_order_acquire);
  }
  // nullptr: there is no such object.
  static T* find(void* program_handle) {
    T* const object = slot_of(program_handle);
    return object != nullptr && object->is(handle_of(program_handle)) ? object : nullptr;
  }

  // An object nobody knows yet; nullptr: there are too many. May throw std::bad_alloc.
  T* take() {
    const std::lock_guard lock(mutex_);
    if (free_.empty() && !grow()) return nullptr;
    T* const object = free_.back();
    free_.pop_back();
    object->use_ = ++uses_;
    return object;
  }
  // Gives it a handle: from now on it is found. With the object's locks held.
  static void show(T& object) {
    object.handle_.store(make_handle(kKind, object.use_, object.number_),
                         std::memory_order_release);
  }
  // Nobody finds it any more. With the object's locks held.
  static void hide(T& object) {
    object.handle_.store(nobodys(object.number_), std::memory_order_release);
  }
  void give_back(T& object) {
    const std::lock_guard lock(mutex_);
    free_.push_back(&object);  // there is room: grow() made it
  }

 private:
  static constexpr std::size_t kMax = std::size_t{1} << kSlotBits;

  // The handle of what is not in use: it leads to another slot, so that nobody can come with it.
  static constexpr Handle nobodys(std::uint32_t number) { return number ^ 1; }

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

  // Found without asking whether the table is made, because posting begins here. Most of it is
  // never touched, so it takes no memory.
  inline static constinit std::array<std::atomic<T*>, kMax> slots_{};

  std::mutex mutex_;
  std::uint64_t uses_ = 0;  // of all slots: handles that follow each other are not both valid
  std::vector<T*> free_;
  std::vector<std::unique_ptr<T>> all_;
};

}  // namespace viaduct::vipl
