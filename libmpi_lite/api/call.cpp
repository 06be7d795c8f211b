#include "libmpi_lite/api/call.hpp"

#include <cstdarg>
#include <cstdio>
#include <string>

#include "libmpi_lite/core/errors.hpp"

namespace viaduct::mpi {

namespace {

// "MPI_Send on MPI_COMM_WORLD, rank 2"
std::string where(const char* function, const Comm* comm) {
  if (Process::phase() != Process::Phase::running) return function;
  const std::string me = std::to_string(Process::self().rank());
  if (!comm) return std::string(function) + ", rank " + me;
  std::string text =
      std::string(function) + " on " +
      (comm->name.empty() ? "a communicator of " + std::to_string(comm->size()) : comm->name) +
      ", rank " + std::to_string(comm->rank());
  if (comm->handle != MPI_COMM_WORLD) text += " (" + me + " in MPI_COMM_WORLD)";
  return text;
}

// Whose handler hears of an error without a communicator: MPI_COMM_SELF's (section 9.3). Up to
// MPI-3.1 it was MPI_COMM_WORLD's, so that one counts as long as the program has not set the other.
Comm* comm_of_errors_without_one() {
  Comm* self = comm_handles.find(reinterpret_cast<std::uintptr_t>(MPI_COMM_SELF));
  return self->errhandler_set ? self
                              : comm_handles.find(reinterpret_cast<std::uintptr_t>(MPI_COMM_WORLD));
}

}  // namespace

int raise_error(const char* function, Comm* comm, int code, const char* what) {
  const bool running = Process::phase() == Process::Phase::running;
  // The handler may free either.
  const Ref<Comm> on(comm || !running ? comm : comm_of_errors_without_one());
  const Ref<Errhandler> handler = on ? on->errhandler : nullptr;
  const Errhandler::Kind kind = handler ? handler->kind : Errhandler::Kind::fatal;
  switch (kind) {
    case Errhandler::Kind::give_back: break;
    case Errhandler::Kind::user: {
      MPI_Comm handle = on->handle;
      int given = code;
      handler->function(&handle, &given);
      break;
    }
    case Errhandler::Kind::fatal:
    case Errhandler::Kind::abort:
      if (code == MPI_ERR_PROC_ABORTED) Process::self().let_others_speak();
      Process::self().abort(code,
                            where(function, comm) + ": " + what + " (" + error_name(code) + ")");
  }
  return code;
}

void check_running(const char* function) {
  switch (Process::phase()) {
    case Process::Phase::before_init:
      fail(MPI_ERR_OTHER, "%s was called before MPI_Init", function);
    case Process::Phase::finalized:
      fail(MPI_ERR_OTHER, "%s was called after MPI_Finalize", function);
    case Process::Phase::running: return;
  }
}

// For nobody, who has no data either, programs have no type.
Items check_unusable_type(const void* buffer, MPI_Datatype type, int rank) {
  if (rank != MPI_PROC_NULL || type != MPI_DATATYPE_NULL) check_committed(type);
  return {buffer, 0, &datatype(MPI_BYTE)};
}

void fail(int code, const char* format, ...) {
  char what[512];
  va_list values;
  va_start(values, format);
  std::vsnprintf(what, sizeof what, format, values);
  va_end(values);
  throw Error(code, what);
}

}  // namespace viaduct::mpi
