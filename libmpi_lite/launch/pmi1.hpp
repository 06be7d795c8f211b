// Jobs of Hydra (mpiexec) and of Slurm (srun --mpi=pmi2 speaks PMI-1 to those who do).
#pragma once

#include <memory>
#include <optional>
#include <utility>

#include "libmpi_lite/launch/launch.hpp"
#include "libmpi_lite/launch/pmi1_wire.hpp"

namespace viaduct::mpi {

class Pmi1 final : public Launch {
 public:
  // PMI_FD is set and is the number of an open socket: the manager that set it is the innermost one
  // that started this process. (Other variables, and PMI_FD itself, are inherited by jobs that a
  // job starts; open descriptors are not.)
  static bool connected();
  // PMI_FD or PMI_PORT is set.
  static bool announced();
  // `patience`: how long the manager may take to answer.
  static std::unique_ptr<Pmi1> join(std::chrono::milliseconds patience = std::chrono::minutes(1));

  const char* name() const override { return "pmi1"; }
  int rank() const override { return rank_; }
  int size() const override { return size_; }
  int local_rank() const override { return local_rank_; }
  int local_size() const override { return local_size_; }
  std::uint64_t job_key() const override { return job_key_; }
  int appnum() const override { return appnum_; }
  int universe_size() const override { return universe_size_; }
  void put(std::string_view key, std::string_view value) override;
  void fence() override;
  std::string get(int rank, std::string_view key) override;
  void finalize() override;
  [[noreturn]] void abort(int exit_code, std::string_view message) override;

 private:
  explicit Pmi1(Pmi1Wire wire) : wire_(std::move(wire)) {}
  void initialise();
  void find_rank();
  void find_local_rank();
  int ask_number(std::string_view what, std::string_view answer, std::string_view field);
  Pmi1Message lookup(std::string_view key);

  Pmi1Wire wire_;
  int rank_ = 0, size_ = 1, local_rank_ = 0, local_size_ = 1, appnum_ = -1, universe_size_ = -1;
  int longest_key_ = 0, longest_value_ = 0;
  std::string space_;  // the manager's name of the job's key-value space
  std::uint64_t job_key_ = 0;
};

}  // namespace viaduct::mpi
