// Jobs of PMIx servers: srun --mpi=pmix, Open MPI's mpirun, prterun, mpiexec of newer Hydras.
#pragma once

#include <memory>

#include "libmpi_lite/launch/launch.hpp"

namespace viaduct::mpi {

// PMIX_NAMESPACE is set.
bool pmix_announced();

// SetupError if the library was built without PMIx's headers, if libpmix is not on this machine, or
// if the server does not answer.
std::unique_ptr<Launch> join_pmix();

}  // namespace viaduct::mpi
