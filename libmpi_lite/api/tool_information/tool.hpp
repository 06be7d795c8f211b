// What the functions of the tool information interface (MPI 5.0, section 15.3) share. They work
// before MPI_Init and after MPI_Finalize, between MPI_T_init_thread and MPI_T_finalize, and return
// their errors: no error handler is called. Control variables are the environment variables of
// Process::config_tables() (cvars.cpp), performance variables the counters of the channels
// (pvars.cpp), categories the layers and channels that have them (categories.cpp). There are no
// enumerations and no events. Any thread may call them.
#pragma once

#include <mpi.h>

#include <memory>
#include <new>
#include <string>
#include <string_view>
#include <vector>

#include "drivers/base/config_var.hpp"
#include "libmpi_lite/api/call.hpp"  // VIADUCT_MPI

namespace viaduct::mpi::tool {

// A function's result other than MPI_SUCCESS.
struct ToolError {
  int code;  // MPI_T_ERR_*
};

bool initialized();

template <class Body>
int call(Body body) {
  const LockedEntry entry;
  if (!initialized()) return MPI_T_ERR_NOT_INITIALIZED;
  try {
    body();
    return MPI_SUCCESS;
  } catch (const ToolError& error) {
    return error.code;
  } catch (const std::bad_alloc&) {
    return MPI_T_ERR_MEMORY;
  }
}

// Checks an argument that must not be a null pointer.
template <class T>
T* required(T* pointer) {
  if (pointer == nullptr) throw ToolError{MPI_T_ERR_INVALID};
  return pointer;
}
// Hands out a result that the program may not want.
template <class T>
void give(T* out, T value) {
  if (out != nullptr) *out = value;
}
// A string (section 15.3.3): as much of it as `*length` characters hold with the final zero; then
// `*length` is what the whole string takes.
void give(char* out, int* length, std::string_view text);
inline void give_no_enum(MPI_T_enum* out) {
  give(out, MPI_T_ENUM_NULL);
}

template <class List>
const auto& entry(const List& list, int index) {
  if (index < 0 || static_cast<std::size_t>(index) >= list.size())
    throw ToolError{MPI_T_ERR_INVALID_INDEX};
  return list[static_cast<std::size_t>(index)];
}
// The index of the first entry that has the name.
template <class List>
int index_of(const List& list, std::string_view name) {
  for (std::size_t i = 0; i < list.size(); ++i)
    if (list[i].name == name) return static_cast<int>(i);
  throw ToolError{MPI_T_ERR_INVALID_NAME};
}

// Objects that programs hold by pointers: one that was freed, or was never one, is recognised.
template <class T>
class Handles {
 public:
  T* add(std::unique_ptr<T> object) {
    objects_.push_back(std::move(object));
    return objects_.back().get();
  }
  T& find(T* handle, int error = MPI_T_ERR_INVALID_HANDLE) const {
    for (const auto& object : objects_)
      if (object.get() == handle) return *handle;
    throw ToolError{error};
  }
  template <class Which>
  void erase_if(Which which) {
    std::erase_if(objects_, [&](const auto& object) { return which(*object); });
  }
  void erase(T& which) {
    erase_if([&](const T& object) { return &object == &which; });
  }

 private:
  std::vector<std::unique_ptr<T>> objects_;
};

struct ControlVariable {
  std::string_view name;
  const base::ConfigVar* row;
  std::size_t layer;  // of Process::config_tables()
};
const std::vector<ControlVariable>& control_variables();

struct PerformanceVariable {
  std::string name;  // "CHANNEL_PART_COUNTER"
  std::string_view meaning;
  std::string channel;
  std::size_t channel_index, counter_index;  // in Transfer::all_counters()
  bool level;
};
// The channels' counters, from the first call between MPI_Init and MPI_Finalize on; none before.
const std::vector<PerformanceVariable>& performance_variables();

// MPI_T_finalize has been called as often as MPI_T_init_thread: all handles go.
void free_control_handles();
void free_sessions();

}  // namespace viaduct::mpi::tool
