// The job of one process, and the environment variables by which launchers tell what they have
// started.
#include "libmpi_lite/launch/single.hpp"

#include <unistd.h>

#include <cstdlib>

#include "drivers/link/types.hpp"
#include "libmpi_lite/launch/common.hpp"

namespace viaduct::mpi {
namespace {

// As strict as the strictest manager, so that what works alone works in a job, too.
constexpr std::size_t kMaxOwnKey = 50, kMaxOwnValue = 900;

// The variables in which launchers tell how many processes they have started, and which of them
// this process is. Slurm's variables of the job step are used, not those of the whole job: what a
// batch script starts without srun is alone, and is meant to be.
struct LauncherVariables {
  const char* launcher;
  const char* size;
  const char* rank;
};
constexpr LauncherVariables kLaunchers[] = {
    {"Open MPI's mpirun", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_RANK"},
    {"srun", "SLURM_STEP_NUM_TASKS", "SLURM_PROCID"},
    {"an MPI launcher", "PMI_SIZE", "PMI_RANK"},
};

// 0: the variable is not set, or is no number.
int number_or_zero(const char* variable) {
  const char* const text = std::getenv(variable);
  return text != nullptr ? std::atoi(text) : 0;
}

}  // namespace

Single::Single() {
  identity_.job_key = agree_on_job_key(*this);
}

void Single::put(std::string_view key, std::string_view value) {
  check_key_value(key, value, kMaxOwnKey, kMaxOwnValue);
  values_.insert_or_assign(std::string(key), std::string(value));
}

std::string Single::get(int rank, std::string_view key) {
  const auto found = values_.find(key);
  if (rank != 0 || found == values_.end())
    throw base::SetupError("rank " + std::to_string(rank) + " has not put '" + std::string(key) +
                           "' (this is a job of one process)");
  return found->second;
}

void Single::abort(int exit_code, std::string_view) {
  _exit(exit_status(exit_code));
}

int started_processes() {
  for (const LauncherVariables& variables : kLaunchers)
    if (const int processes = number_or_zero(variables.size); processes > 0) return processes;
  return 0;
}

std::string foreign_launcher_warning() {
  for (const auto& [launcher, size, rank] : kLaunchers) {
    const int processes = number_or_zero(size);
    if (processes < 2) continue;
    if (number_or_zero(rank) != 0) return "";  // the first process tells
    return std::string(launcher) + " started " + std::to_string(processes) +
           " processes and did not connect them, so each is an MPI job of its own, of size 1; "
           "start "
           "the program with Viaduct's mpiexec, mpiexec.hydra, srun --mpi=pmi2 or srun --mpi=pmix";
  }
  return "";
}

}  // namespace viaduct::mpi
