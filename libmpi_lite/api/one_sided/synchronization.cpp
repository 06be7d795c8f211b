// Epochs and flushes (MPI 5.0, section 12.5). All of it is in rma/synchronization.cpp.
//
// Choices where the standard leaves one: MPI_MODE_NOSTORE and MPI_MODE_NOPUT make no difference. A
// lock is asked for at once, and waited for only where the program may access the memory itself.
#include "libmpi_lite/api/arguments/arguments.hpp"
#include "libmpi_lite/api/one_sided/window_argument.hpp"

using namespace viaduct::mpi;

namespace {

// The members must be in the group of the window.
const Group& check_part(const Window& window, MPI_Group group) {
  const Group& g = check_group(group);
  if (subtract(g, *window.comm()->group())->size() > 0)
    fail(MPI_ERR_GROUP, "argument group has processes that are not in argument win");
  return g;
}

}  // namespace

int PMPI_Win_fence(int assert, MPI_Win win) {
  return call_on_window("MPI_Win_fence", win, [&](Window& w) {
    check_assert(assert,
                 MPI_MODE_NOSTORE | MPI_MODE_NOPUT | MPI_MODE_NOPRECEDE | MPI_MODE_NOSUCCEED);
    w.fence(assert);
  });
}
VIADUCT_MPI(Win_fence);

int PMPI_Win_start(MPI_Group group, int assert, MPI_Win win) {
  return call_on_window("MPI_Win_start", win, [&](Window& w) {
    check_assert(assert, MPI_MODE_NOCHECK);
    w.start_epoch(check_part(w, group), assert);
  });
}
VIADUCT_MPI(Win_start);

int PMPI_Win_complete(MPI_Win win) {
  return call_on_window("MPI_Win_complete", win, [](Window& w) { w.complete(); });
}
VIADUCT_MPI(Win_complete);

int PMPI_Win_post(MPI_Group group, int assert, MPI_Win win) {
  return call_on_window("MPI_Win_post", win, [&](Window& w) {
    check_assert(assert, MPI_MODE_NOCHECK | MPI_MODE_NOSTORE | MPI_MODE_NOPUT);
    w.post(check_part(w, group), assert);
  });
}
VIADUCT_MPI(Win_post);

int PMPI_Win_wait(MPI_Win win) {
  return call_on_window("MPI_Win_wait", win, [](Window& w) { w.wait_exposure(); });
}
VIADUCT_MPI(Win_wait);

int PMPI_Win_test(MPI_Win win, int* flag) {
  return call_on_window("MPI_Win_test", win,
                        [&](Window& w) { *check_pointer(flag, "flag") = w.test_exposure(); });
}
VIADUCT_MPI(Win_test);

int PMPI_Win_lock(int lock_type, int rank, int assert, MPI_Win win) {
  return call_on_window("MPI_Win_lock", win, [&](Window& w) {
    if (lock_type != MPI_LOCK_EXCLUSIVE && lock_type != MPI_LOCK_SHARED)
      fail(MPI_ERR_LOCKTYPE,
           "argument lock_type is %d; it must be MPI_LOCK_EXCLUSIVE or MPI_LOCK_SHARED", lock_type);
    check_assert(assert, MPI_MODE_NOCHECK);
    if (rank == MPI_PROC_NULL) return;
    w.lock(check_window_rank(w, rank), lock_type == MPI_LOCK_EXCLUSIVE, assert != 0);
  });
}
VIADUCT_MPI(Win_lock);

int PMPI_Win_lock_all(int assert, MPI_Win win) {
  return call_on_window("MPI_Win_lock_all", win, [&](Window& w) {
    check_assert(assert, MPI_MODE_NOCHECK);
    w.lock_all(assert != 0);
  });
}
VIADUCT_MPI(Win_lock_all);

namespace {

// Functions on the operations to one rank.
template <void (Window::*kAct)(int)>
int on_rank(const char* function, int rank, MPI_Win win) {
  return call_on_window(function, win, [&](Window& w) {
    if (rank != MPI_PROC_NULL) (w.*kAct)(check_window_rank(w, rank));
  });
}

}  // namespace

int PMPI_Win_unlock(int rank, MPI_Win win) {
  return on_rank<&Window::unlock>("MPI_Win_unlock", rank, win);
}
VIADUCT_MPI(Win_unlock);

int PMPI_Win_unlock_all(MPI_Win win) {
  return call_on_window("MPI_Win_unlock_all", win, [](Window& w) { w.unlock_all(); });
}
VIADUCT_MPI(Win_unlock_all);

int PMPI_Win_flush(int rank, MPI_Win win) {
  return on_rank<&Window::flush>("MPI_Win_flush", rank, win);
}
VIADUCT_MPI(Win_flush);

int PMPI_Win_flush_all(MPI_Win win) {
  return call_on_window("MPI_Win_flush_all", win, [](Window& w) { w.flush_all(); });
}
VIADUCT_MPI(Win_flush_all);

int PMPI_Win_flush_local(int rank, MPI_Win win) {
  return on_rank<&Window::flush_local>("MPI_Win_flush_local", rank, win);
}
VIADUCT_MPI(Win_flush_local);

int PMPI_Win_flush_local_all(MPI_Win win) {
  return call_on_window("MPI_Win_flush_local_all", win, [](Window& w) { w.flush_local_all(); });
}
VIADUCT_MPI(Win_flush_local_all);

int PMPI_Win_sync(MPI_Win win) {
  return call_on_window("MPI_Win_sync", win, [](Window& w) { w.sync(); });
}
VIADUCT_MPI(Win_sync);
