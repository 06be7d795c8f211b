#include "libmpi_lite/launch/single.hpp"

#include <unistd.h>

#include "drivers/link/types.hpp"
#include "libmpi_lite/launch/common.hpp"

namespace viaduct::mpi {
namespace {

// As strict as the strictest manager, so that what works alone works in a job.
constexpr std::size_t kLongestKey = 50, kLongestValue = 900;

}  // namespace

Single::Single() : job_(agree_on_job_name(*this, "single." + std::to_string(getpid()))) {}

void Single::put(std::string_view key, std::string_view value) {
  check_card(key, value, kLongestKey, kLongestValue);
  values_.insert_or_assign(std::string(key), std::string(value));
}

std::string Single::get(int rank, std::string_view key) {
  const auto found = values_.find(key);
  if (rank != 0 || found == values_.end())
    throw link::SetupError("rank " + std::to_string(rank) + " has not put '" + std::string(key) +
                           "' (this is a job of one process)");
  return found->second;
}

void Single::abort(int exit_code, std::string_view) {
  _exit(exit_status(exit_code));
}

}  // namespace viaduct::mpi
