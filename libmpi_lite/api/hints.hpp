// Hints about communicators (MPI 5.0, section 7.4.4).
#pragma once

#include "libmpi_lite/core/comm.hpp"

namespace viaduct::mpi {

// Adds what the info object says to what is known about the communicator.
void take_hints(Comm& comm, const Info& hints);

}  // namespace viaduct::mpi
