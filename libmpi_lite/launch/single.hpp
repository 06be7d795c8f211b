// Single: Launch for a process that no process manager has started: a job of one process. And what
// the environment tells about launchers without MPI_Init.
#pragma once

#include <map>
#include <string>

#include "libmpi_lite/launch/launch.hpp"

namespace viaduct::mpi {

class Single final : public Launch {
 public:
  // Draws the job key.
  Single();
  const char* name() const override { return "single"; }
  void put(std::string_view key, std::string_view value) override;
  void fence() override {}
  void start_fence() override {}
  bool fence_passed() override { return true; }
  std::string get(int rank, std::string_view key) override;
  void finalize() override {}
  [[noreturn]] void abort(int exit_code, std::string_view message) override;

 private:
  std::map<std::string, std::string, std::less<>> values_;
};

// How many processes a launcher says in the environment that it has started; 0: it does not say.
// May be called before MPI_Init.
int started_processes();

// A sentence for the user if a launcher started several processes without offering them a manager,
// so that each is a job of one. Empty if not; and empty in all processes but the first, so that the
// user reads it once.
std::string foreign_launcher_warning();

}  // namespace viaduct::mpi
