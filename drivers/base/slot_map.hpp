// A slot map: objects in the slots of a table, each named by an id that goes stale when the object
// is erased. Ids may come from a user or from the wire: any number can be looked up, and one that
// names no present object finds nothing.
//
// An id is 32 bits: the lower 16 are the slot, above them is the generation, which counts the
// objects that the slot has had. Generations go from 1 to 2^kGenerationBits - 1 and then begin
// again, so no id is 0, and a stale id could be taken for a new one only when its slot has been
// used that often. The slot that has been free for longest is used first, which puts that off.
//
// The map owns the objects. It neither makes nor destroys them on insert() and erase(): the memory
// of an object serves the next one, which the caller initialises. One owner thread.
#pragma once

#include <vector>

#include "drivers/base/slot_list.hpp"

namespace viaduct::base {

// `Id` is a struct with a std::uint32_t `value`, one for each kind of object, so that the compiler
// tells ids of different maps apart.
template <class T, class Id, unsigned kGenerationBits = 16>
class SlotMap {
 public:
  static constexpr std::size_t kMaxCapacity = 65536;

  // Room for `capacity` objects, at most kMaxCapacity. The slots for `ready` of them are made now.
  // The others are made one by one when they are first needed: that allocates, and moves objects.
  SlotMap(std::size_t capacity, std::size_t ready)
      : entries_(ready), capacity_(capacity), size_(ready) {
    for (Slot slot = 0; slot < ready; ++slot) {
      entries_[slot].id = slot;
      erase(slot);
    }
  }
  // All slots are made now, so that insert() never allocates and objects never move.
  explicit SlotMap(std::size_t capacity) : SlotMap(capacity, capacity) {}

  // The slot of a new object, which is in whatever state the last one in the slot was left.
  // kNoSlot: as many objects as there may be are in the map.
  Slot insert() {
    Slot slot = first_free_;
    if (slot == kNoSlot) [[unlikely]] {
      slot = grow();
      if (slot == kNoSlot) return kNoSlot;
    } else {
      first_free_ = entries_[slot].next_free;
    }
    Entry& entry = entries_[slot];
    const std::uint32_t before = entry.id >> kSlotBits;
    entry.id = (before == kMaxGeneration ? 1 : before + 1) << kSlotBits | slot;
    ++size_;
    return slot;
  }
  // The slot must have an object. Its id finds nothing from now on.
  void erase(Slot slot) {
    Entry& entry = entries_[slot];
    // A free slot keeps its last id, but with another slot's number. So no id that leads to the
    // slot is equal to it, whatever its generation.
    entry.id ^= 1;
    entry.next_free = kNoSlot;
    (first_free_ == kNoSlot ? first_free_ : entries_[last_free_].next_free) = slot;
    last_free_ = slot;
    --size_;
  }

  // The slot of the object with this id; kNoSlot: there is none.
  Slot find(Id id) const {
    const Slot slot = id.value & (kMaxCapacity - 1);
    return slot < entries_.size() && entries_[slot].id == id.value ? slot : kNoSlot;
  }
  // The id of the object in this slot.
  Id id(Slot slot) const { return {entries_[slot].id}; }
  T& operator[](Slot slot) { return entries_[slot].object; }
  const T& operator[](Slot slot) const { return entries_[slot].object; }

  std::size_t size() const { return size_; }  // objects
  // Calls visit(slot, object) for each object. `visit` may erase any of them; what it inserts may
  // be visited, too.
  template <class Visit>
  void for_each(Visit visit) {
    for (Slot slot = 0; slot < entries_.size(); ++slot)
      if ((entries_[slot].id & (kMaxCapacity - 1)) == slot) visit(slot, entries_[slot].object);
  }

 private:
  static constexpr unsigned kSlotBits = 16;
  static constexpr std::uint32_t kMaxGeneration = (1u << kGenerationBits) - 1;
  static_assert(kGenerationBits >= 1 && kGenerationBits + kSlotBits <= 32);

  // The id lies beside the first members of the object, which most look-ups go on to read.
  struct Entry {
    std::uint32_t id = 0;
    Slot next_free = kNoSlot;
    T object{};
  };
  [[gnu::noinline]] Slot grow() {
    if (entries_.size() == capacity_) return kNoSlot;
    entries_.emplace_back();
    return static_cast<Slot>(entries_.size() - 1);
  }

  std::vector<Entry> entries_;
  // The list of free slots, singly linked: it is only taken from in front and added to at its end.
  Slot first_free_ = kNoSlot, last_free_ = kNoSlot;
  std::size_t capacity_, size_;
};

}  // namespace viaduct::base
