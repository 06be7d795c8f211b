// Values that programs and libraries attach to communicators and datatypes (MPI 5.0, section 7.7).
#pragma once

#include <mpi.h>

#include <cstdint>
#include <map>

namespace viaduct::mpi {

// The key values of one object, each with what was attached. Order of deletion: newest first.
class Attributes {
 public:
  // Entry, or nullptr.
  void* const* find(int keyval) const {
    const auto it = values_.find(keyval);
    return it == values_.end() ? nullptr : &it->second.value;
  }
  void set(int keyval, void* value) { values_[keyval] = {value, ++serial_}; }
  void erase(int keyval) { values_.erase(keyval); }
  bool empty() const { return values_.empty(); }

  struct Value {
    void* value;
    std::uint64_t serial;  // in the order of attaching
  };
  const std::map<int, Value>& values() const { return values_; }

 private:
  std::map<int, Value> values_;
  std::uint64_t serial_ = 0;
};

}  // namespace viaduct::mpi
