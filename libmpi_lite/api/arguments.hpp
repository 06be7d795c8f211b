// Checks of arguments that only functions on groups, communicators and info objects take; see
// call.hpp for those of messages.
#pragma once

#include <cstring>
#include <span>
#include <string>

#include "libmpi_lite/api/call.hpp"

namespace viaduct::mpi {

inline Group& check_group(MPI_Group group, const char* argument = "group") {
  Group* g = group_handles.find(reinterpret_cast<std::uintptr_t>(group));
  if (!g)
    fail(MPI_ERR_GROUP, "argument %s (%p) is not a group", argument, static_cast<void*>(group));
  return *g;
}

// MPI_INFO_ENV, which programs may use at any time: made when it is first used. In api/info.cpp.
Info& define_info_env();

inline Info& check_info(MPI_Info info) {
  Info* i = info_handles.find(reinterpret_cast<std::uintptr_t>(info));
  if (!i && info == MPI_INFO_ENV) i = &define_info_env();
  if (!i) fail(MPI_ERR_INFO, "argument info (%p) is not an info object", static_cast<void*>(info));
  return *i;
}
// Where MPI_INFO_NULL stands for no info: nullptr.
inline const Info* check_hints(MPI_Info info) {
  return info == MPI_INFO_NULL ? nullptr : &check_info(info);
}

inline Comm& check_comm(MPI_Comm comm, const char* argument) {
  Comm* c = comm_handles.find(reinterpret_cast<std::uintptr_t>(comm));
  if (!c)
    fail(MPI_ERR_COMM, "argument %s (%p) is not a communicator", argument,
         static_cast<void*>(comm));
  return *c;
}
inline void check_intra(const Comm& comm, const char* argument = "comm") {
  if (comm.inter()) fail(MPI_ERR_COMM, "argument %s is an intercommunicator", argument);
}
inline void check_inter(const Comm& comm) {
  if (!comm.inter()) fail(MPI_ERR_COMM, "argument comm is not an intercommunicator");
}

inline int check_rank(int rank, int size, const char* argument = "rank") {
  if (rank < 0 || rank >= size)
    fail(MPI_ERR_RANK, "argument %s is %d; ranks go from 0 to %d", argument, rank, size - 1);
  return rank;
}

// An array of `count` elements; it may be a null pointer if there are none.
template <class T>
std::span<T> check_array(T* array, int count, const char* argument, const char* count_argument) {
  if (count < 0)
    fail(MPI_ERR_ARG, "argument %s is %d; it must not be negative", count_argument, count);
  if (!array && count > 0) fail(MPI_ERR_ARG, "argument %s is a null pointer", argument);
  return {array, static_cast<std::size_t>(count)};
}

// What the program names an object; longer names are cut.
inline std::string checked_name(const char* name, const char* argument) {
  return std::string(check_pointer(name, argument)).substr(0, MPI_MAX_OBJECT_NAME - 1);
}

// Gives a text to the program: its length does not count the final zero.
inline void give_string(const std::string& text, char* string, int* length) {
  check_pointer(length, "resultlen");
  std::memcpy(check_pointer(string, "string"), text.c_str(), text.size() + 1);
  *length = static_cast<int>(text.size());
}

// A group without members is MPI_GROUP_EMPTY, which programs compare with (section 7.3.2).
inline MPI_Group new_group_handle(Ref<Group> group) {
  return group->size() == 0 ? MPI_GROUP_EMPTY
                            : new_handle<MPI_Group>(group_handles, std::move(group));
}

}  // namespace viaduct::mpi
