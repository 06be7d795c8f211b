// Results that are wider inside than in the functions of MPI-1.
#pragma once

#include <mpi.h>

#include <climits>

namespace viaduct::mpi {

// MPI_UNDEFINED where an int cannot hold it (MPI 5.0, sections 3.2.5 and 5.1.5).
inline int int_result(MPI_Count value) {
  return value > INT_MAX ? MPI_UNDEFINED : static_cast<int>(value);
}

}  // namespace viaduct::mpi
