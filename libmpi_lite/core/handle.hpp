// Handles: the values that programs hold (MPI_Comm, MPI_Datatype, ...), and the tables that lead
// from them to the library's objects. In the ABI (MPI 5.0, chapter 20) handles are pointers to
// incomplete types; those of predefined objects are small constants.
//
// The library's own handles are not pointers. They fit 31 bits, so that MPI_Comm_toint and its kin
// are the identity. A handle names the slot of a table and the generation of the slot's content, so
// that a handle which was freed is recognised. (Not a base::SlotMap: the kind in the upper bits and
// the ABI's constants leave a generation of 6 bits, and a program may have more than 65536
// objects.)
//
// A table holds a reference to each object. Thread rule: one thread at a time.
#pragma once

#include <array>
#include <cstdint>
#include <utility>
#include <vector>

#include "libmpi_lite/core/ref.hpp"

namespace viaduct::mpi {

// What a handle names. The bits of a handle:
//
//  31   30..27   26..21                        20..0
//  0    kind     generation, 1..63 in turn     slot
enum class HandleKind : std::uint32_t {
  comm,
  group,
  datatype,
  op,
  errhandler,
  info,
  request,
  message,
  win,
  session,
};

// Handles below this value are the ABI's constants for predefined objects and null handles.
inline constexpr std::uintptr_t kPredefinedHandles = 0x400;  // values below are the ABI's constants

// The objects of one kind, by handle.
template <class T, HandleKind kKind>
class HandleTable {
 public:
  // Enters a predefined object under its constant in the ABI.
  void define(std::uintptr_t constant, Ref<T> object) { predefined_[constant] = std::move(object); }

  // A new handle for an object; 0: the table is full (2 million objects).
  std::uintptr_t add(Ref<T> object) {
    if (first_free_ == kNone) [[unlikely]] {
      if (slots_.size() > kMaxSlot) return 0;
      const auto at = static_cast<std::uint32_t>(slots_.size());
      slots_.push_back({.object = nullptr, .handle = kFirst | at});
      first_free_ = at;
    }
    Slot& slot = slots_[first_free_];
    first_free_ = slot.next_free;
    slot.object = std::move(object);
    return slot.handle;
  }
  // The object behind a handle. nullptr: there is none, because the value never was a handle, is a
  // null handle, or was freed. Handles of other kinds find nothing, as their kind differs.
  T* find(std::uintptr_t handle) const {
    if (handle < kPredefinedHandles) return predefined_[handle].get();
    const std::uintptr_t at = handle & kMaxSlot;
    return at < slots_.size() && slots_[at].handle == handle ? slots_[at].object.get() : nullptr;
  }
  // Makes a handle invalid, and returns the table's reference to its object. Does nothing for
  // predefined and unknown handles.
  Ref<T> remove(std::uintptr_t handle) {
    if (handle < kPredefinedHandles || !find(handle)) return nullptr;
    const auto at = static_cast<std::uint32_t>(handle & kMaxSlot);
    Slot& slot = slots_[at];
    // The slot's next handle has the next generation. After 63 of them the first one comes again:
    // a freed handle is then taken for a valid one, if its slot happens to be in use.
    slot.handle = slot.handle < kLastGeneration ? slot.handle + kGeneration : kFirst | at;
    slot.next_free = std::exchange(first_free_, at);
    return std::move(slot.object);
  }
  // Calls visit(object) for each object that is not predefined. `visit` may remove any of them.
  template <class Visit>
  void for_each(Visit visit) {
    for (std::size_t at = 0; at < slots_.size(); ++at)
      if (Ref<T> object = slots_[at].object) visit(*object);
  }
  // At MPI_Finalize: drops all objects, also those whose handles the program forgot to free.
  void clear() {
    slots_.clear();
    first_free_ = kNone;
    for (Ref<T>& object : predefined_) object = nullptr;
  }

 private:
  static constexpr std::uint32_t kMaxSlot = (1u << 21) - 1;
  static constexpr std::uint32_t kGeneration = kMaxSlot + 1;
  static constexpr std::uint32_t kFirst = static_cast<std::uint32_t>(kKind) << 27 | kGeneration;
  static constexpr std::uint32_t kLastGeneration = kFirst + 62 * kGeneration;
  static constexpr std::uint32_t kNone = ~0u;
  struct Slot {
    Ref<T> object;
    std::uint32_t handle;             // of the object, or, if the slot is free, of the next one
    std::uint32_t next_free = kNone;  // list of free slots; the last one freed is used first
  };

  std::array<Ref<T>, kPredefinedHandles> predefined_;
  std::vector<Slot> slots_;
  std::uint32_t first_free_ = kNone;
};

}  // namespace viaduct::mpi
