// Error handlers (MPI 5.0, section 9.3). Which handler an error reaches is in call.cpp.
//
// Choices where the standard leaves one: MPI_Comm_get_errhandler returns the handle that the
// program already has, and counts; the handle is invalid after as many frees as it was given out.
// The functions of MPI-1 are the same functions.
#include "libmpi_lite/api/arguments/arguments.hpp"
#include "libmpi_lite/api/one_sided/window_argument.hpp"
#include "libmpi_lite/core/errors.hpp"

using namespace viaduct::mpi;

namespace viaduct::mpi {

// Gives the program the handle of an error handler: the same one again, or a new one if the program
// has freed all it was given.
MPI_Errhandler give_errhandler(Errhandler& errhandler) {
  if (errhandler.handle == MPI_ERRHANDLER_NULL)
    errhandler.handle =
        new_handle<MPI_Errhandler>(errhandler_handles, Ref<Errhandler>(&errhandler));
  ++errhandler.given;
  return errhandler.handle;
}

}  // namespace viaduct::mpi

namespace {

// MPI_Errhandler_free. Communicators that use the handler hold references and go on using it.
// Predefined handlers stay, but freeing one is no error: a program may free whatever
// MPI_Comm_get_errhandler gave.
void take_back(Errhandler& errhandler) {
  if (errhandler.kind != Errhandler::Kind::user || --errhandler.given > 0) return;
  const MPI_Errhandler handle = std::exchange(errhandler.handle, MPI_ERRHANDLER_NULL);
  errhandler_handles.remove(reinterpret_cast<std::uintptr_t>(handle));
}

int create(const char* function, MPI_Comm_errhandler_function* handler,
           MPI_Errhandler* errhandler) {
  return call(function, [&] {
    check_pointer(handler, "comm_errhandler_fn");
    check_pointer(errhandler, "errhandler");
    const Ref<Errhandler> made = make<Errhandler>(Errhandler::Kind::user, handler);
    *errhandler = give_errhandler(*made);
  });
}

int set(const char* function, MPI_Comm comm, MPI_Errhandler errhandler) {
  return call(function, comm, [&](Comm& c) {
    c.errhandler = Ref<Errhandler>(&check_errhandler(errhandler));
    c.errhandler_set = true;
  });
}

int get(const char* function, MPI_Comm comm, MPI_Errhandler* errhandler) {
  return call(function, comm, [&](Comm& c) {
    check_pointer(errhandler, "errhandler");
    *errhandler = give_errhandler(*c.errhandler);
  });
}

}  // namespace

int PMPI_Comm_create_errhandler(MPI_Comm_errhandler_function* comm_errhandler_fn,
                                MPI_Errhandler* errhandler) {
  return create("MPI_Comm_create_errhandler", comm_errhandler_fn, errhandler);
}
VIADUCT_MPI(Comm_create_errhandler);

int PMPI_Comm_set_errhandler(MPI_Comm comm, MPI_Errhandler errhandler) {
  return set("MPI_Comm_set_errhandler", comm, errhandler);
}
VIADUCT_MPI(Comm_set_errhandler);

int PMPI_Comm_get_errhandler(MPI_Comm comm, MPI_Errhandler* errhandler) {
  return get("MPI_Comm_get_errhandler", comm, errhandler);
}
VIADUCT_MPI(Comm_get_errhandler);

int PMPI_Errhandler_free(MPI_Errhandler* errhandler) {
  return call_any_time("MPI_Errhandler_free", [&] {
    take_back(check_errhandler(*check_pointer(errhandler, "errhandler")));
    *errhandler = MPI_ERRHANDLER_NULL;
  });
}
VIADUCT_MPI(Errhandler_free);

// Calls the handler that an error on the communicator would call. The result is MPI_SUCCESS if the
// arguments are valid, whatever `errorcode` is (section 9.6). The handler is called outside of
// call(), whose errors are this function's own.
int PMPI_Comm_call_errhandler(MPI_Comm comm, int errorcode) {
  constexpr auto kName = "MPI_Comm_call_errhandler";
  const LockedEntry entry;
  Ref<Comm> on;
  std::string text = "the program has called the error handler: ";
  const int checked = call(kName, comm, [&](Comm& c) {
    on = Ref(&c);
    if (is_error_code(errorcode)) text += error_text(errorcode);
  });
  if (on) raise_error(kName, on.get(), errorcode, text.c_str());
  return checked;
}
VIADUCT_MPI(Comm_call_errhandler);

// ---- windows -----------------------------------------------------------------------------------

// A handler of windows gets the address of a handle as one of communicators does, and is called in
// the same way.
int PMPI_Win_create_errhandler(MPI_Win_errhandler_function* win_errhandler_fn,
                               MPI_Errhandler* errhandler) {
  return create("MPI_Win_create_errhandler",
                reinterpret_cast<MPI_Comm_errhandler_function*>(win_errhandler_fn), errhandler);
}
VIADUCT_MPI(Win_create_errhandler);

int PMPI_Win_set_errhandler(MPI_Win win, MPI_Errhandler errhandler) {
  return call_on_window("MPI_Win_set_errhandler", win, [&](Window& w) {
    w.comm()->errhandler = Ref<Errhandler>(&check_errhandler(errhandler));
  });
}
VIADUCT_MPI(Win_set_errhandler);

int PMPI_Win_get_errhandler(MPI_Win win, MPI_Errhandler* errhandler) {
  return call_on_window("MPI_Win_get_errhandler", win, [&](Window& w) {
    check_pointer(errhandler, "errhandler");
    *errhandler = give_errhandler(*w.comm()->errhandler);
  });
}
VIADUCT_MPI(Win_get_errhandler);

// As MPI_Comm_call_errhandler.
int PMPI_Win_call_errhandler(MPI_Win win, int errorcode) {
  constexpr auto kName = "MPI_Win_call_errhandler";
  const LockedEntry entry;
  Ref<Comm> on;
  std::string text = "the program has called the error handler: ";
  const int checked = call_on_window(kName, win, [&](Window& w) {
    on = w.comm();
    if (is_error_code(errorcode)) text += error_text(errorcode);
  });
  if (on) raise_error(kName, on.get(), errorcode, text.c_str());
  return checked;
}
VIADUCT_MPI(Win_call_errhandler);

// ---- the names of MPI-1 ------------------------------------------------------------------------

int PMPI_Errhandler_create(MPI_Handler_function* function, MPI_Errhandler* errhandler) {
  return create("MPI_Errhandler_create", function, errhandler);
}
VIADUCT_MPI(Errhandler_create);

int PMPI_Errhandler_set(MPI_Comm comm, MPI_Errhandler errhandler) {
  return set("MPI_Errhandler_set", comm, errhandler);
}
VIADUCT_MPI(Errhandler_set);

int PMPI_Errhandler_get(MPI_Comm comm, MPI_Errhandler* errhandler) {
  return get("MPI_Errhandler_get", comm, errhandler);
}
VIADUCT_MPI(Errhandler_get);
