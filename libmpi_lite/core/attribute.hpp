// Values that programs and libraries attach to communicators and datatypes (MPI 5.0, section 7.7).
#pragma once

#include <mpi.h>

#include <cstdint>
#include <map>
#include <vector>

namespace viaduct::mpi {

// The key values of one object, each with what was attached. Order of deletion: newest first.
class Attributes {
 public:
  // Entry, or nullptr.
  void* const* find(int keyval) const {
    const auto it = values_.find(keyval);
    return it == values_.end() ? nullptr : &it->second.value;
  }
  void set(int keyval, void* value) {
    erase(keyval);
    values_[keyval] = {value, ++serial_};
    in_order_[serial_] = keyval;
  }
  void erase(int keyval) {
    const auto it = values_.find(keyval);
    if (it == values_.end()) return;
    in_order_.erase(it->second.serial);
    values_.erase(it);
  }
  bool empty() const { return values_.empty(); }

  // Key values in the order in which their values were attached.
  int newest() const { return in_order_.rbegin()->second; }
  std::vector<int> oldest_first() const {
    std::vector<int> keyvals;
    for (const auto& [serial, keyval] : in_order_) keyvals.push_back(keyval);
    return keyvals;
  }

 private:
  struct Value {
    void* value;
    std::uint64_t serial;
  };
  std::map<int, Value> values_;
  std::map<std::uint64_t, int> in_order_;
  std::uint64_t serial_ = 0;
};

}  // namespace viaduct::mpi
