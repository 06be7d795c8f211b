// ObjectTable: objects that programs name by handles and that no fast path looks up (NICs,
// connection requests). Look-up takes a lock and returns a reference that keeps the object alive.
// Objects of the data path are in a SlotTable instead.
//
// Any thread may call any function.
#pragma once

#include <memory>
#include <mutex>
#include <unordered_map>

#include "libvipl/core/slot_table.hpp"

namespace viaduct::vipl {

template <class T, HandleKind kKind>
class ObjectTable {
 public:
  // Takes a share of the object and returns its handle for programs. Handles are numbers that are
  // never used twice.
  void* add(std::shared_ptr<T> object) {
    const std::lock_guard lock(mutex_);
    const Handle handle = make_handle(kKind, ++uses_, 0);
    objects_.emplace(handle, std::move(object));
    return reinterpret_cast<void*>(handle);
  }
  // nullptr: no object has this handle.
  std::shared_ptr<T> find(void* program_handle) const {
    const std::lock_guard lock(mutex_);
    const auto found = objects_.find(handle_of(program_handle));
    return found == objects_.end() ? nullptr : found->second;
  }
  // Removes the object from the table and returns it. nullptr: no object has this handle, perhaps
  // because another thread has just removed it.
  std::shared_ptr<T> remove(void* program_handle) {
    const std::lock_guard lock(mutex_);
    const auto found = objects_.find(handle_of(program_handle));
    if (found == objects_.end()) return nullptr;
    std::shared_ptr<T> object = std::move(found->second);
    objects_.erase(found);
    return object;
  }
  // Removes the objects for which `chosen` returns true, called with the lock held.
  template <class Chosen>
  void remove_if(Chosen chosen) {
    const std::lock_guard lock(mutex_);
    std::erase_if(objects_, [&](const auto& entry) { return chosen(*entry.second); });
  }

 private:
  mutable std::mutex mutex_;
  std::uint64_t uses_ = 0;
  std::unordered_map<Handle, std::shared_ptr<T>> objects_;
};

}  // namespace viaduct::vipl
