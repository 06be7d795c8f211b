// The forms that each collective has (MPI 5.0, sections 6.12 and 6.13): blocking, nonblocking and
// persistent, each with ints and with large counts. A line makes the six functions:
//
//   VIADUCT_MPI_COLLECTIVE(Bcast, bcast,
//                          (void* buffer, Count count, MPI_Datatype datatype, int root),
//                          (buffer, count, datatype, root));
//
// MPI_Bcast(..., comm), MPI_Ibcast(..., comm, request) and MPI_Bcast_init(..., comm, info,
// request), and the same with _c. check_bcast() takes the communicator and what is in the second
// parentheses.
#pragma once

#include "libmpi_lite/api/arguments/arguments.hpp"
#include "libmpi_lite/api/collectives/persistent.hpp"
#include "libmpi_lite/api/counted.hpp"

namespace viaduct::mpi {

// `check` is the check_*() of the operation. Blocking functions run the operation to its end. A
// nonblocking one proceeds inside later calls of the library only.
//
// Always inlined, as a tail call would take the MPI function's frame from the stack, where a report
// of a long wait looks for its name.
template <class Check, class... Arguments>
[[gnu::always_inline]] inline int run_collective(const char* function, MPI_Comm comm, Check check,
                                                 Arguments... arguments) {
  return call(function, comm, [&](Comm& c) {
    const auto checked = check(c, arguments...);
    const BlockingCall blocking;
    finish_collective(*checked.start(c));
  });
}
template <class Check, class... Arguments>
int start_collective(const char* function, MPI_Comm comm, MPI_Request* request, Check check,
                     Arguments... arguments) {
  return call(function, comm, [&](Comm& c) {
    check_pointer(request, "request");
    *request = new_handle<MPI_Request>(request_handles, check(c, arguments...).start(c));
  });
}
// The info object is checked and has no hint that the library knows.
template <class Check, class... Arguments>
[[gnu::always_inline]] inline int init_collective(const char* function, MPI_Comm comm,
                                                  MPI_Info info, MPI_Request* request, Check check,
                                                  Arguments... arguments) {
  return call(function, comm, [&](Comm& c) {
    check_pointer(request, "request");
    check_hints(info);
    *request = new_handle<MPI_Request>(request_handles, make_persistent(c, check(c, arguments...)));
  });
}

}  // namespace viaduct::mpi

#define VIADUCT_LIST(...) __VA_ARGS__  // what is in the parentheses behind it

#define VIADUCT_MPI_COLLECTIVE(Name, name, parameters, arguments)                                  \
  VIADUCT_MPI_COUNTED(Name, (VIADUCT_LIST parameters, MPI_Comm comm),                              \
                      run_collective(function, comm, check_##name, VIADUCT_LIST arguments));       \
  VIADUCT_MPI_COUNTED(                                                                             \
      I##name, (VIADUCT_LIST parameters, MPI_Comm comm, MPI_Request * request),                    \
      start_collective(function, comm, request, check_##name, VIADUCT_LIST arguments));            \
  VIADUCT_MPI_COUNTED(                                                                             \
      Name##_init, (VIADUCT_LIST parameters, MPI_Comm comm, MPI_Info info, MPI_Request * request), \
      init_collective(function, comm, info, request, check_##name, VIADUCT_LIST arguments))
