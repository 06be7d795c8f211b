// Error handlers (MPI 5.0, section 9.3): what is done with an error of a call. api/call.cpp decides
// which communicator's handler an error reaches, and carries it out.
//
// Communicators and the handle table hold an error handler (Ref).
#pragma once

#include <mpi.h>

#include <cstdint>

#include "libmpi_lite/core/handle.hpp"

namespace viaduct::mpi {

class Errhandler final : public Counted {
 public:
  enum class Kind : std::uint8_t {
    fatal,      // MPI_ERRORS_ARE_FATAL: the whole job ends
    abort,      // MPI_ERRORS_ABORT: the processes of the communicator end; here: the job
    give_back,  // MPI_ERRORS_RETURN
    user,       // `function` is called
  };
  Errhandler(Kind kind, MPI_Comm_errhandler_function* function) : kind(kind), function(function) {}

  const Kind kind;
  MPI_Comm_errhandler_function* const function;  // of Kind::user, else nullptr

  // The handle that the program has. MPI_Comm_get_errhandler gives the same handle again; one
  // MPI_Errhandler_free is due for each time it was given (section 9.3.4), and the last one makes
  // it invalid.
  MPI_Errhandler handle = MPI_ERRHANDLER_NULL;
  std::uint32_t given = 0;  // how many frees are due
};

inline HandleTable<Errhandler, HandleKind::errhandler> errhandler_handles;

}  // namespace viaduct::mpi
