// MPI_INFO_ENV (MPI 5.0, section 11.2.1): how this program was started, as an info object.
#pragma once

#include "libmpi_lite/core/info.hpp"

namespace viaduct::mpi {

// What the process itself can tell, before MPI_Init and after: command, argv, arch, wdir; and
// maxprocs, which is `processes` unless that is 0 (unknown). Keys whose value is unknown, or too
// long for an info object, are left out, as the standard has it.
Ref<Info> environment_info(int processes);

}  // namespace viaduct::mpi
