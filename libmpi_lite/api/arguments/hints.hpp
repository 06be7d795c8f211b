// Hints about communicators (MPI 5.0, section 7.4.4): what an MPI_Info object that a program passes
// to MPI_Comm_set_info or MPI_Comm_dup_with_info leaves behind at the communicator. Implemented in
// api/communicators.cpp.
#pragma once

#include "libmpi_lite/core/comm.hpp"

namespace viaduct::mpi {

// Copies the hints that the library knows, with values "true" or "false", from `hints` to `comm`,
// where they replace older values. Other keys and values are ignored, as the standard demands.
// Copies; `hints` stays the caller's.
void store_hints(Comm& comm, const Info& hints);

}  // namespace viaduct::mpi
