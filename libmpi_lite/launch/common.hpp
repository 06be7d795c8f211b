// What the three ways of launching (pmi1, pmix, single) share: reading the environment, checks of
// what is published, the job key, the exit status.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "libmpi_lite/launch/launch.hpp"

namespace viaduct::mpi {

// The number in an environment variable. Nothing if the variable is not set; throws SetupError if
// it is not a number from 0 on.
std::optional<int> environment_number(const char* name);

// Throws mpi::Error (MPI_ERR_INTERN) unless key and value are what Launch::put() takes: printable
// ASCII characters without blanks, no '=' in the key, and at most that many characters each. Every
// manager's limits are checked here, so the library's own mistakes are found under each of them.
void check_key_value(std::string_view key, std::string_view value, std::size_t max_key,
                     std::size_t max_value);

// Gives Launch::job_key(). Rank 0 draws it, and publishes it for the others. Collective over the
// job: it contains a fence. Throws SetupError.
std::uint64_t agree_on_job_key(Launch& launch);

// The exit status for a process that aborts with that code (MPI_Abort). Of the code there are 8
// bits left; 0 becomes 1, as 0 would tell the launcher that all is well.
int exit_status(int exit_code);

}  // namespace viaduct::mpi
