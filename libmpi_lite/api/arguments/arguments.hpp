// Checks of arguments that only functions on groups, communicators and info objects take. Those of
// messages are in call.hpp, which every function includes.
//
// Each check either returns the object behind the argument (a reference that the handle table keeps
// alive) or throws Error with the standard's error class and a sentence that names the argument and
// its value. call() in call.hpp turns the Error into a call of the error handler.
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

// Defines MPI_INFO_ENV and returns it. Done at first use, because programs may use MPI_INFO_ENV
// before MPI_Init (section 11.4.1). In api/info.cpp.
Info& define_info_env();

inline Info& check_info(MPI_Info info) {
  Info* i = info_handles.find(reinterpret_cast<std::uintptr_t>(info));
  if (!i && info == MPI_INFO_ENV) i = &define_info_env();
  if (!i) fail(MPI_ERR_INFO, "argument info (%p) is not an info object", static_cast<void*>(info));
  return *i;
}
// For arguments where MPI_INFO_NULL stands for "no hints": nullptr then.
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
// Functions that are defined for intracommunicators only, and for intercommunicators only.
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

// An array argument of `count` elements as a span over the program's memory. A null pointer is
// allowed if `count` is 0.
template <class T>
std::span<T> check_array(T* array, int count, const char* argument, const char* count_argument) {
  if (count < 0)
    fail(MPI_ERR_ARG, "argument %s is %d; it must not be negative", count_argument, count);
  if (!array && count > 0) fail(MPI_ERR_ARG, "argument %s is a null pointer", argument);
  return {array, static_cast<std::size_t>(count)};
}

inline Errhandler& check_errhandler(MPI_Errhandler errhandler) {
  Errhandler* e = errhandler_handles.find(reinterpret_cast<std::uintptr_t>(errhandler));
  if (!e)
    fail(MPI_ERR_ERRHANDLER, "argument errhandler (%p) is not an error handler",
         static_cast<void*>(errhandler));
  return *e;
}
// The handle of an error handler for the program, counted (errhandlers.cpp).
MPI_Errhandler give_errhandler(Errhandler& errhandler);

// A name that the program gives to an object; cut to MPI_MAX_OBJECT_NAME - 1 characters (section
// 7.8).
inline std::string checked_name(const char* name, const char* argument) {
  return std::string(check_pointer(name, argument)).substr(0, MPI_MAX_OBJECT_NAME - 1);
}

// Copies a text to the program's buffer `string`, which the standard requires to be long enough for
// it (MPI_MAX_..._STRING or _NAME). `*length` does not count the final zero.
inline void copy_string(const std::string& text, char* string, int* length) {
  check_pointer(length, "resultlen");
  std::memcpy(check_pointer(string, "string"), text.c_str(), text.size() + 1);
  *length = static_cast<int>(text.size());
}

// A group without members becomes the constant MPI_GROUP_EMPTY, because programs compare with it
// (section 7.3.2). Other groups get a handle that the program frees.
inline MPI_Group new_group_handle(Ref<Group> group) {
  return group->size() == 0 ? MPI_GROUP_EMPTY
                            : new_handle<MPI_Group>(group_handles, std::move(group));
}

}  // namespace viaduct::mpi
