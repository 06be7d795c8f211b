// What all functions on windows do first and last: the argument `win`, and errors of the window,
// which go to its own error handler (MPI 5.0, section 12.6). See call.hpp.
#pragma once

#include "libmpi_lite/api/call.hpp"
#include "libmpi_lite/rma/window.hpp"

namespace viaduct::mpi {

// A call on a window: `body(Window&)`. An unknown handle is an error without a communicator. The
// window's communicator stands for it where errors are raised (Window::comm()).
template <class Body>
int call_on_window(const char* function, MPI_Win win, Body body) {
  Entry entry;
  Ref<Window> w;  // held: a callback may free the window
  try {
    entry.check(function);
    w = Ref<Window>(win_handles.find(reinterpret_cast<std::uintptr_t>(win)));
    if (!w) [[unlikely]]
      fail(MPI_ERR_WIN, "argument win (%p) is not a window", static_cast<void*>(win));
    body(*w);
    return MPI_SUCCESS;
  } catch (const Error& e) {
    return raise_error(function, w ? w->comm().get() : nullptr, e.code(), e.what());
  } catch (const std::exception& e) {
    return raise_error(function, w ? w->comm().get() : nullptr, MPI_ERR_OTHER, e.what());
  }
}

// A rank of the window. MPI_PROC_NULL is not one: functions that allow it ask before.
inline int check_window_rank(const Window& window, int rank, const char* argument = "rank") {
  if (rank < 0 || rank >= window.comm()->size())
    fail(MPI_ERR_RANK, "argument %s is %d; ranks go from 0 to %d", argument, rank,
         window.comm()->size() - 1);
  return rank;
}

// `allowed`: the asserts that the function knows.
inline void check_assert(int assertion, int allowed) {
  if ((assertion & ~allowed) != 0)
    fail(MPI_ERR_ASSERT, "argument assert is %d; it must be a combination of MPI_MODE_*",
         assertion);
}

}  // namespace viaduct::mpi
