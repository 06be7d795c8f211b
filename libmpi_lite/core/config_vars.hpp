// The configuration variables of MPI. `viaduct-info --config` prints them.
#pragma once

#include "drivers/base/config_var.hpp"

namespace viaduct::mpi {

// Must fit in a ring in shared memory; the channel makes sure of it.
inline constexpr std::size_t kMaxEagerShm = 32632;

const base::ConfigTable& config_vars();

}  // namespace viaduct::mpi
