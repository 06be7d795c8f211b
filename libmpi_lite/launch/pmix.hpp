// Launch over PMIx: jobs of PMIx servers such as srun --mpi=pmix, Open MPI's mpirun, prterun, and
// the mpiexec of newer Hydras. libpmix does the work. It is loaded at run time, when a server is
// there, so the library does not depend on it.
#pragma once

#include <memory>

#include "libmpi_lite/launch/launch.hpp"

namespace viaduct::mpi {

// A PMIx server has started this process, or a parent of it: PMIX_NAMESPACE is set.
bool pmix_announced();

// Joins the job. Collective over the job. Throws SetupError if this library was built without
// PMIx's headers, if libpmix is not on this machine, or if the server does not answer.
std::unique_ptr<Launch> join_pmix();

}  // namespace viaduct::mpi
