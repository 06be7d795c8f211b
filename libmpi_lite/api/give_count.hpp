// Results that are wider inside the library (MPI_Count, 64 bits) than in the functions whose
// results are ints.
#pragma once

#include "libmpi_lite/api/call.hpp"

namespace viaduct::mpi {

// Writes the value to an argument for a result. An int that cannot hold it becomes MPI_UNDEFINED
// (MPI 5.0, sections 3.2.5 and 5.1.5).
template <class Integer>
void give_count(Integer* result, const char* argument, MPI_Count value) {
  const bool fits = sizeof(Integer) > sizeof(int) || value <= INT_MAX;
  *check_pointer(result, argument) = static_cast<Integer>(fits ? value : MPI_UNDEFINED);
}

}  // namespace viaduct::mpi
