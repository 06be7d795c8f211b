// MPI_INFO_ENV (MPI 5.0, section 11.2.1): how this program was started.
#pragma once

#include "libmpi_lite/core/info.hpp"

namespace viaduct::mpi {

// What the process itself can tell, before MPI_Init and after: command, argv, arch, wdir; maxprocs
// if it is known (not 0). Keys whose value is unknown or too long are left out, as the standard has
// it.
Ref<Info> environment_info(int processes);

}  // namespace viaduct::mpi
