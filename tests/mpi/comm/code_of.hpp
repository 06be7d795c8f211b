// Which error a call of the library's parts ends with.
#pragma once

#include <mpi.h>

#include "libmpi_lite/core/error.hpp"

namespace viaduct::mpi {

template <class Call>
int code_of(Call call) {
  try {
    call();
  } catch (const Error& e) {
    return e.code();
  }
  return MPI_SUCCESS;
}

}  // namespace viaduct::mpi
