// The configuration variables (environment variables VIADUCT_...) of MPI. `viaduct-info --config`
// prints them; docs/mpi.md explains them.
#pragma once

#include "drivers/base/config_var.hpp"

namespace viaduct::mpi {

// Largest value of VIADUCT_EAGER_SHM, in bytes. A message of that size with its header must fit in
// a ring in shared memory; channel/shm.cpp asserts that.
inline constexpr std::size_t kMaxEagerShm = 32632;

// The table: name, default, unit, meaning and accepted values. Reading a variable throws SetupError
// if the environment has a wrong value.
const base::ConfigTable& config_vars();

}  // namespace viaduct::mpi
