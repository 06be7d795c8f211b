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

// Bits: 0..19 slot, 20..23 kind, 24..63 use.
inline constexpr unsigned kSlotBits = 20;
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
    const std::size_t number = handle_of(program_handle) & (kMost - 1);
    T* const chunk = chunks_[number / kChunk].load(std::memory_order_acquire);
    return chunk != nullptr ? chunk + number % kChunk : nullptr;
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
  static constexpr std::size_t kMost = std::size_t{1} << kSlotBits;
  static constexpr std::size_t kChunk = 256;

  // The handle of what is not in use: it leads to another slot, so that nobody can come with it.
  static constexpr Handle nobodys(std::uint32_t number) { return number ^ 1; }

  bool grow() {
    if (used_chunks_ == kMost / kChunk) return false;
    auto chunk = std::make_unique<T[]>(kChunk);
    free_.reserve((used_chunks_ + 1) * kChunk);
    for (std::size_t i = kChunk; i-- > 0;) {
      chunk[i].number_ = static_cast<std::uint32_t>(used_chunks_ * kChunk + i);
      hide(chunk[i]);
      free_.push_back(&chunk[i]);
    }
    chunks_[used_chunks_++].store(chunk.get(), std::memory_order_release);
    owned_.push_back(std::move(chunk));
    return true;
  }

  // Found without asking whether the table is made: posting begins here.
  inline static constinit std::array<std::atomic<T*>, kMost / kChunk> chunks_{};

  std::mutex mutex_;
  std::uint64_t uses_ = 0;  // of all slots: handles that follow each other are not both valid
  std::size_t used_chunks_ = 0;
  std::vector<T*> free_;
  std::vector<std::unique_ptr<T[]>> owned_;
};

}  // namespace viaduct::vipl
