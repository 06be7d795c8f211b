// Results that are wider inside the library (MPI_Count, 64 bits) than in the functions of MPI-1
// (int).
#pragma once

#include <mpi.h>

#include <climits>

namespace viaduct::mpi {

// The value as an int; MPI_UNDEFINED where an int cannot hold it (MPI 5.0, sections 3.2.5 and
// 5.1.5).
inline int int_result(MPI_Count value) {
  return value > INT_MAX ? MPI_UNDEFINED : static_cast<int>(value);
}

}  // namespace viaduct::mpi
