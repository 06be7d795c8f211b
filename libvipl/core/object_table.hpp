// Objects that programs name by handles and that no fast path needs: found under a lock, and alive
// as long as somebody uses them.
#pragma once

#include <memory>
#include <mutex>
#include <unordered_map>

#include "libvipl/core/slot_table.hpp"

namespace viaduct::vipl {

template <class T, HandleKind kKind>
class ObjectTable {
 public:
  // The handle for programs.
  void* add(std::shared_ptr<T> object) {
    const std::lock_guard lock(mutex_);
    const Handle handle = make_handle(kKind, ++uses_, 0);
    objects_.emplace(handle, std::move(object));
    return reinterpret_cast<void*>(handle);
  }
  // nullptr: there is no such object.
  std::shared_ptr<T> find(void* program_handle) const {
    const std::lock_guard lock(mutex_);
    const auto found = objects_.find(handle_of(program_handle));
    return found == objects_.end() ? nullptr : found->second;
  }
  // Nobody finds it any more. nullptr: somebody was first, or there never was one.
  std::shared_ptr<T> remove(void* program_handle) {
    const std::lock_guard lock(mutex_);
    const auto found = objects_.find(handle_of(program_handle));
    if (found == objects_.end()) return nullptr;
    std::shared_ptr<T> object = std::move(found->second);
    objects_.erase(found);
    return object;
  }
  // Removes those for which `chosen` says so.
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
