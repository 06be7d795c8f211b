// What every function of the library does first and last: check the library's state and the
// arguments, and hand errors to the error handler (MPI 5.0, section 9.3). Inside the library errors
// are exceptions (core/error.hpp); call() is where they become calls of the handler and return
// codes.
//
// Functions look like this:
//
//  int PMPI_Send(const void* buf, int count, MPI_Datatype datatype, int dest, int tag,
//                MPI_Comm comm) {
//    return call("MPI_Send", comm, [&](Comm& c) {
//      const Items items = check_items(buf, count, datatype);
//      send(items, check_destination(c, dest, tag), SendMode::standard);
//    });
//  }
//  VIADUCT_MPI(Send);
//
// Choices where the standard leaves one: all arguments are checked, in every build. Errors without
// a communicator go to the handler of MPI_COMM_SELF or MPI_COMM_WORLD (call.cpp).
//
// Threads: class Entry, or LockedEntry, takes the lock of the library, where threads share it. It
// is held until the function returns, but not while an error handler of the program runs.
#pragma once

#include <mpi.h>

#include <climits>

#include "libmpi_lite/core/comm.hpp"
#include "libmpi_lite/core/data/op.hpp"
#include "libmpi_lite/core/error.hpp"
#include "libmpi_lite/core/request.hpp"
#include "libmpi_lite/core/threads/library_lock.hpp"
#include "libmpi_lite/transfer/process.hpp"
#include "libmpi_lite/transfer/transfer.hpp"

// MPI_X as a weak alias of PMPI_X, so that a profiling library may take its place.
#define VIADUCT_MPI(name) \
  extern "C" __attribute__((weak, alias("PMPI_" #name))) decltype(PMPI_##name) MPI_##name

namespace viaduct::mpi {

// The stay of a thread in the library, for the duration of an MPI function. To be the first local
// variable, so that all references to objects are gone when the lock is given back. It has no
// members, as each would be an instruction more for each call.
class Entry {
 public:
  Entry() = default;
  ~Entry() {
    if (Process::calls_are_checked()) [[unlikely]]
      leave();
  }
  Entry(const Entry&) = delete;
  Entry& operator=(const Entry&) = delete;
  // Between MPI_Init and MPI_Finalize; elsewhere throws Error. Takes the lock where threads share
  // the library. To be called once, whatever comes after.
  void check(const char* function) {
    if (Process::calls_are_checked()) [[unlikely]]
      check_slowly(function);
  }

 private:
  static void check_slowly(const char* function);
  // Gives the lock back, unless it was not taken: MPI_Finalize is called without, and ends when
  // calls are checked again.
  static void leave();
};

// The same for functions that any thread may call at any time: takes the lock, whatever the thread
// level.
class LockedEntry {
 public:
  LockedEntry() { LibraryLock::lock(); }
  ~LockedEntry() { LibraryLock::unlock(); }
  LockedEntry(const LockedEntry&) = delete;
  LockedEntry& operator=(const LockedEntry&) = delete;
};

// Calls the error handler of `comm` (nullptr: the handler for errors without a communicator, see
// call.cpp) with `code`, and returns `code`, which the MPI function returns. With
// MPI_ERRORS_ARE_FATAL and MPI_ERRORS_ABORT the job ends and the function does not return; `what`
// is in the line that is printed. A handler that is written in C++ may throw through the MPI
// function to its caller, so callers must not hold anything that only a normal return would
// release.
int raise_error(const char* function, Comm* comm, int code, const char* what);

// Throws Error if the library is not between MPI_Init and MPI_Finalize.
void check_running(const char* function);

// Throws Error with a code (an error class of the standard) and a formatted sentence, which names
// the argument and its value; cut at 511 characters.
[[gnu::cold, noreturn]] void fail(int code, const char* format, ...)
    __attribute__((format(printf, 2, 3)));

// Runs `body`, whose errors are errors without a communicator. Other exceptions (memory, setup)
// become MPI_ERR_OTHER.
template <class Body>
int call_entered(const char* function, Body body) {
  try {
    body();
    return MPI_SUCCESS;
  } catch (const Error& e) {
    return raise_error(function, nullptr, e.code(), e.what());
  } catch (const std::exception& e) {
    return raise_error(function, nullptr, MPI_ERR_OTHER, e.what());
  }
}

// A call that is allowed at any time, also before MPI_Init and after MPI_Finalize, and in any
// thread (sections 11.4.1 and 11.6).
template <class Body>
int call_any_time(const char* function, Body body) {
  const LockedEntry entry;
  return call_entered(function, body);
}

// A call without a communicator argument, between MPI_Init and MPI_Finalize.
template <class Body>
int call(const char* function, Body body) {
  Entry entry;
  return call_entered(function, [&] {
    entry.check(function);
    body();
  });
}

// A call on a communicator: `body(Comm&)`. Always inlined, because MPI_Send and MPI_Recv are made
// of it and the body would otherwise cost a call. The handle is looked up once; an unknown handle
// is an error without a communicator.
template <class Body>
[[gnu::always_inline]] inline int call(const char* function, MPI_Comm comm, Body body) {
  Entry entry;
  Comm* c = nullptr;
  try {
    entry.check(function);
    c = comm_handles.find(reinterpret_cast<std::uintptr_t>(comm));
    if (!c) [[unlikely]]
      fail(MPI_ERR_COMM, "argument comm (%p) is not a communicator", static_cast<void*>(comm));
    body(*c);
    return MPI_SUCCESS;
  } catch (const Error& e) {
    return raise_error(function, c, e.code(), e.what());
  } catch (const std::exception& e) {
    return raise_error(function, c, MPI_ERR_OTHER, e.what());
  }
}

// ---- arguments: each throws Error that names the argument and its value ------------------------

// Tags travel as 32 bits; no tag that an int can hold is refused.
inline constexpr int kMaxTag = 0x7fffffff;  // MPI_TAG_UB

template <class T>
T* check_pointer(T* pointer, const char* argument) {
  if (!pointer) fail(MPI_ERR_ARG, "argument %s is a null pointer", argument);
  return pointer;
}

inline void check_count(MPI_Count count, const char* argument = "count") {
  if (count < 0) [[unlikely]]
    fail(MPI_ERR_COUNT, "argument %s is %lld; it must not be negative", argument,
         static_cast<long long>(count));
}

// check_type() accepts any datatype; check_committed() only one that may be used in communication.
inline Datatype& check_type(MPI_Datatype type, const char* argument = "datatype") {
  Datatype* t = datatype_handles.find(reinterpret_cast<std::uintptr_t>(type));
  if (!t) [[unlikely]]
    fail(MPI_ERR_TYPE, "argument %s (%p) is not a datatype", argument, static_cast<void*>(type));
  return *t;
}
inline Datatype& check_committed(MPI_Datatype type, const char* argument = "datatype") {
  Datatype& t = check_type(type, argument);
  if (!t.committed()) [[unlikely]]
    fail(MPI_ERR_TYPE, "argument %s has not been committed", argument);
  return t;
}

inline const Op& check_op(MPI_Op op) {
  const Op* o = op_handles.find(reinterpret_cast<std::uintptr_t>(op));
  if (!o) [[unlikely]]
    fail(MPI_ERR_OP, "argument op (%p) is not an operation", static_cast<void*>(op));
  return *o;
}
// An operation that is defined on items of that datatype (section 6.9.2).
inline const Op& check_op(MPI_Op op, const Datatype& type) {
  const Op& o = check_op(op);
  if (!o.allows(type)) [[unlikely]]
    fail(MPI_ERR_OP, "argument op (%p) does not work on datatype %s", static_cast<void*>(op),
         type.name.empty() ? "without a name, which is not predefined" : type.name.c_str());
  return o;
}

// The rest of check_items() for a datatype that is unknown or not committed. Throws, unless the
// rank is MPI_PROC_NULL and the datatype MPI_DATATYPE_NULL: then the result is zero bytes.
[[gnu::cold]] Items check_unusable_type(const void* buffer, MPI_Datatype type, int rank);

// Throws MPI_ERR_COUNT if so many items have more bytes than 64 bits can tell.
[[gnu::cold]] void check_length(MPI_Count count, const Datatype& type);

// The buffer, count and datatype of a message. `rank` is the source or the destination and matters
// only as MPI_PROC_NULL. The result refers to the program's buffer and to the datatype in its
// handle table. Always inlined, as the result would otherwise be stored in halves and loaded whole,
// which the CPU cannot forward.
template <class Count>
[[gnu::always_inline]] inline Items check_items(const void* buffer, Count count, MPI_Datatype type,
                                                const char* buffer_argument = "buf", int rank = 0) {
  check_count(count);
  Datatype* const found = datatype_handles.find(reinterpret_cast<std::uintptr_t>(type));
  if (!found || !found->committed()) [[unlikely]]
    return check_unusable_type(buffer, type, rank);
  Datatype& t = *found;
  // MPI_BOTTOM is the null pointer. Only a type with absolute addresses, whose first byte is not at
  // 0, may start there.
  if (!buffer && count > 0 && t.size() > 0 && t.true_lb() == 0) [[unlikely]]
    fail(MPI_ERR_BUFFER, "argument %s is a null pointer and count is %lld", buffer_argument,
         static_cast<long long>(count));
  if (buffer == MPI_IN_PLACE) [[unlikely]]
    fail(MPI_ERR_BUFFER, "argument %s is MPI_IN_PLACE, which is not allowed here", buffer_argument);
  if constexpr (sizeof(Count) > sizeof(int))
    if (count > INT_MAX) check_length(count, t);
  return {buffer, count, &t};
}

// Where a message goes to and where a receive takes messages from. MPI_PROC_NULL is valid in both;
// MPI_ANY_SOURCE and MPI_ANY_TAG only in the second.
inline Envelope check_destination(Comm& comm, int rank, int tag) {
  if ((rank < 0 || rank >= comm.peers()) && rank != MPI_PROC_NULL) [[unlikely]]
    fail(MPI_ERR_RANK, "argument dest is %d; ranks go from 0 to %d", rank, comm.peers() - 1);
  if (tag < 0) [[unlikely]]
    fail(MPI_ERR_TAG, "argument tag is %d; it must not be negative", tag);
  return {&comm, comm.context(), rank, tag};
}
inline Envelope check_source(Comm& comm, int rank, int tag) {
  if ((rank < 0 || rank >= comm.peers()) && rank != MPI_PROC_NULL && rank != MPI_ANY_SOURCE)
      [[unlikely]]
    fail(MPI_ERR_RANK, "argument source is %d; ranks go from 0 to %d", rank, comm.peers() - 1);
  if (tag < 0 && tag != MPI_ANY_TAG) [[unlikely]]
    fail(MPI_ERR_TAG, "argument tag is %d; it must not be negative", tag);
  return {&comm, comm.context(), rank, tag};
}

inline void check_root(const Comm& comm, int root) {
  if (root < 0 || root >= comm.size()) [[unlikely]]
    fail(MPI_ERR_ROOT, "argument root is %d; ranks go from 0 to %d", root, comm.size() - 1);
}

// ---- handles -----------------------------------------------------------------------------------

// Adds an object to the handle table, which from then on holds a reference, and returns the value
// that the program sees. Throws MPI_ERR_NO_MEM at 2 million objects of a kind.
template <class Handle, class T, HandleKind kKind>
Handle new_handle(HandleTable<T, kKind>& table, Ref<T> object) {
  const std::uintptr_t value = table.add(std::move(object));
  if (value == 0) fail(MPI_ERR_NO_MEM, "there are too many objects of this kind");
  return reinterpret_cast<Handle>(value);
}

// Makes a communicator known to the program. nullptr (this process is not a member) gives
// MPI_COMM_NULL.
inline MPI_Comm new_comm_handle(Ref<Comm> comm) {
  if (!comm) return MPI_COMM_NULL;
  Comm& c = *comm;
  return c.handle = new_handle<MPI_Comm>(comm_handles, std::move(comm));
}

// A call that makes a communicator out of another one. `*made` is set to MPI_COMM_NULL first, so
// that a program that ignores the error does not use what happened to be there.
template <class Body>
int call_creating_comm(const char* function, MPI_Comm comm, MPI_Comm* made, Body body) {
  if (made) *made = MPI_COMM_NULL;
  return call(function, comm, body);
}

}  // namespace viaduct::mpi
