// All the ways to wait until a set of requests is complete.
#pragma once

#include <mpi.h>

#include <vector>

#include "plan.hpp"

namespace stress {

// Afterwards every request is null or inactive and statuses[i] is that of requests[i].
void complete_all(std::vector<MPI_Request>& requests, std::vector<MPI_Status>& statuses,
                  WaitStyle style);

}  // namespace stress
