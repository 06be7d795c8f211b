// Attributes: the values that programs and libraries attach to one communicator or datatype (MPI
// 5.0, section 7.7), with the order in which they were attached. A plain container: keyval.hpp has
// the key values, and calls their copy and delete callbacks.
//
// Owned by the object that the attributes are attached to. The values are the user's.
#pragma once

#include <mpi.h>

#include <cstdint>
#include <map>
#include <vector>

namespace viaduct::mpi {

// The attributes of one object: at most one value for each key value.
class Attributes {
 public:
  // The value of that key, or nullptr if none is attached. Valid until the next set() or erase().
  void* const* find(int keyval) const {
    const auto it = values_.find(keyval);
    return it == values_.end() ? nullptr : &it->second.value;
  }
  // Attaches a value in place of an older one; counts as attached now.
  void set(int keyval, void* value) {
    // The old serial number goes, too: an attribute that is set again is the newest.
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

  // The key whose value was attached last. There must be one.
  int newest() const { return in_order_.rbegin()->second; }
  // All keys in the order in which their values were attached. A copy: callbacks that run meanwhile
  // may change the attributes.
  std::vector<int> oldest_first() const {
    std::vector<int> keyvals;
    for (const auto& [serial, keyval] : in_order_) keyvals.push_back(keyval);
    return keyvals;
  }

 private:
  struct Value {
    void* value;
    std::uint64_t serial;  // when it was attached
  };
  std::map<int, Value> values_;            // by key value
  std::map<std::uint64_t, int> in_order_;  // serial -> key value
  std::uint64_t serial_ = 0;               // of the value attached last
};

}  // namespace viaduct::mpi
