// The values that programs hold: MPI_Comm, MPI_Datatype, ... (MPI 5.0, chapter 20: pointers to
// incomplete types; those of predefined objects are the small constants of the ABI).
//
// Ours fit 31 bits, so that MPI_Comm_toint and its kin are the identity, and name a slot of a table
// and the generation of its content: a freed handle is recognised as such.
#pragma once

#include <array>
#include <cstdint>
#include <utility>
#include <vector>

#include "libmpi_lite/core/ref.hpp"

namespace viaduct::mpi {

// kind: 3 bits | generation: 7 bits, from 1 | slot: 21 bits
enum class HandleKind : std::uint32_t {
  comm,
  group,
  datatype,
  op,
  errhandler,
  info,
  request,
  message,
};

inline constexpr std::uintptr_t kPredefinedHandles = 0x400;  // values below are the ABI's constants

template <class T, HandleKind kKind>
class HandleTable {
 public:
  // Predefined objects live under the constants of the ABI.
  void define(std::uintptr_t constant, Ref<T> object) { predefined_[constant] = std::move(object); }

  // 0: the table is full (2 million objects).
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
  // The object, or nullptr if there is none behind this value (never was, freed, a null handle).
  T* find(std::uintptr_t handle) const {
    if (handle < kPredefinedHandles) return predefined_[handle].get();
    const std::uintptr_t at = handle & kMaxSlot;
    return at < slots_.size() && slots_[at].handle == handle ? slots_[at].object.get() : nullptr;
  }
  // Takes the handle out of use. Nothing for predefined and unknown ones.
  Ref<T> remove(std::uintptr_t handle) {
    if (handle < kPredefinedHandles || !find(handle)) return nullptr;
    const auto at = static_cast<std::uint32_t>(handle & kMaxSlot);
    Slot& slot = slots_[at];
    slot.handle = slot.handle < kLastGeneration ? slot.handle + kGeneration : kFirst | at;
    slot.next_free = std::exchange(first_free_, at);
    return std::move(slot.object);
  }
  // For each object that is not predefined; `visit` may remove any of them.
  template <class Visit>
  void for_each(Visit visit) {
    for (std::size_t at = 0; at < slots_.size(); ++at)
      if (Ref<T> object = slots_[at].object) visit(*object);
  }
  // At MPI_Finalize: everything goes, handles that the program forgot as well.
  void clear() {
    slots_.clear();
    first_free_ = kNone;
    for (Ref<T>& object : predefined_) object = nullptr;
  }

 private:
  static constexpr std::uint32_t kMaxSlot = (1u << 21) - 1;
  static constexpr std::uint32_t kGeneration = kMaxSlot + 1;
  static constexpr std::uint32_t kFirst = static_cast<std::uint32_t>(kKind) << 28 | kGeneration;
  static constexpr std::uint32_t kLastGeneration = kFirst + 126 * kGeneration;
  static constexpr std::uint32_t kNone = ~0u;
  struct Slot {
    Ref<T> object;
    std::uint32_t handle;  // of the object; of the next one if there is none
    std::uint32_t next_free = kNone;
  };

  std::array<Ref<T>, kPredefinedHandles> predefined_;
  std::vector<Slot> slots_;
  std::uint32_t first_free_ = kNone;
};

}  // namespace viaduct::mpi
