// Error handlers (MPI 5.0, section 9.3).
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
    user,
  };
  Errhandler(Kind kind, MPI_Comm_errhandler_function* function) : kind(kind), function(function) {}

  const Kind kind;
  MPI_Comm_errhandler_function* const function;

  // MPI_Comm_get_errhandler gives the same handle again, and one MPI_Errhandler_free is due for
  // each time it was given (section 9.3.4).
  MPI_Errhandler handle = MPI_ERRHANDLER_NULL;
  std::uint32_t given = 0;
};

inline HandleTable<Errhandler, HandleKind::errhandler> errhandler_handles;

}  // namespace viaduct::mpi
