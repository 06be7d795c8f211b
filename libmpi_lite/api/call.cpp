// The cold half of call.hpp: how an error reaches the error handler, and what is printed when the
// handler ends the job (MPI 5.0, section 9.3).
#include "libmpi_lite/api/call.hpp"

#include <cstdarg>
#include <cstdio>
#include <string>

#include "libmpi_lite/core/errors.hpp"

namespace viaduct::mpi {

namespace {

// Where an error occurred: "MPI_Send on MPI_COMM_WORLD, rank 2"; before MPI_Init only the function.
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

// The communicator whose handler is called for an error without a communicator: MPI_COMM_SELF
// (MPI-4.0 and later, section 9.3). Up to MPI-3.1 it was MPI_COMM_WORLD. Programs of both kinds
// work: MPI_COMM_WORLD's handler counts as long as the program has not set a handler for
// MPI_COMM_SELF.
Comm* comm_of_errors_without_one() {
  Comm* self = comm_handles.find(reinterpret_cast<std::uintptr_t>(MPI_COMM_SELF));
  return self->errhandler_set ? self
                              : comm_handles.find(reinterpret_cast<std::uintptr_t>(MPI_COMM_WORLD));
}

}  // namespace

int raise_error(const char* function, Comm* comm, int code, const char* what) {
  const bool running = Process::phase() == Process::Phase::running;
  // The handler may free the communicator and itself; both stay alive until this function returns.
  const Ref<Comm> on(comm || !running ? comm : comm_of_errors_without_one());
  const Ref<Errhandler> handler = on ? on->errhandler : nullptr;
  const Errhandler::Kind kind = handler ? handler->kind : Errhandler::Kind::fatal;
  switch (kind) {
    case Errhandler::Kind::give_back: break;
    case Errhandler::Kind::user: {
      MPI_Comm handle = on->handle;
      int given = code;
      const LibraryLock::Unlocked others_turn;
      handler->function(&handle, &given);
      break;
    }
    case Errhandler::Kind::fatal:
    case Errhandler::Kind::abort:
      // A lost process makes many ranks fail at once. The launcher, which knows the cause, and
      // lower ranks get some time to print their line first.
      if (code == MPI_ERR_PROC_ABORTED) Process::self().delay_abort_report();
      Process::self().abort(code,
                            where(function, comm) + ": " + what + " (" + error_name(code) + ")");
  }
  return code;
}

// The phase is looked at only when the lock has been taken.
void Entry::check_slowly(const char* function) {
  LibraryLock::lock();
  if (Process::phase() != Process::Phase::running) [[unlikely]]
    check_running(function);
}

void Entry::leave() {
  LibraryLock::unlock_if_owned();
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

// Nothing is sent to MPI_PROC_NULL, so programs pass MPI_DATATYPE_NULL with it; that is accepted.
// Any other datatype has to be usable even there.
Items check_unusable_type(const void* buffer, MPI_Datatype type, int rank) {
  if (rank != MPI_PROC_NULL || type != MPI_DATATYPE_NULL) check_committed(type);
  return {buffer, 0, &datatype(MPI_BYTE)};
}

void check_length(MPI_Count count, const Datatype& type) {
  MPI_Count bytes;
  if (__builtin_mul_overflow(count, type.size(), &bytes))
    fail(MPI_ERR_COUNT, "argument count is %lld: so many items of %lld bytes are too many",
         static_cast<long long>(count), static_cast<long long>(type.size()));
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
