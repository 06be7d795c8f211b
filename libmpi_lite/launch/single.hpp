// A job of one process that nobody has started as a part of one.
#pragma once

#include <map>
#include <string>

#include "libmpi_lite/launch/launch.hpp"

namespace viaduct::mpi {

class Single final : public Launch {
 public:
  Single();
  const char* name() const override { return "single"; }
  int rank() const override { return 0; }
  int size() const override { return 1; }
  int local_rank() const override { return 0; }
  int local_size() const override { return 1; }
  std::uint64_t job_key() const override { return job_key_; }
  int appnum() const override { return -1; }
  int universe_size() const override { return -1; }
  void put(std::string_view key, std::string_view value) override;
  void fence() override {}
  std::string get(int rank, std::string_view key) override;
  void finalize() override {}
  [[noreturn]] void abort(int exit_code, std::string_view message) override;

 private:
  std::uint64_t job_key_;
  std::map<std::string, std::string, std::less<>> values_;
};

// How many a launcher says that it has started, known without MPI_Init; 0: it does not say.
int started_processes();

// A sentence for the user if a launcher started several processes and did not offer a manager to
// them, so that each is a job of one. In the first of them only, or all would say it; empty in
// others and otherwise.
std::string foreign_launcher_warning();

}  // namespace viaduct::mpi
