// What the ways of launching share.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "libmpi_lite/launch/launch.hpp"

namespace viaduct::mpi {

// Empty if the variable is not set; SetupError if it is not a number from 0 on.
std::optional<int> environment_number(const char* name);

// mpi::Error unless it is what Launch::put() takes.
void check_card(std::string_view key, std::string_view value, std::size_t longest_key,
                std::size_t longest_value);

// Launch::job_key(), which rank 0 draws. Collective.
std::uint64_t agree_on_job_key(Launch& launch);

// The status for the process that aborts: of the code there are 8 bits left, and 0 would tell the
// launcher that all is well.
int exit_status(int exit_code);

}  // namespace viaduct::mpi
