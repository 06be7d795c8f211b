// Who am I, who are the others: what the process manager that started this process knows. Launching
// itself is not ours: Hydra, Slurm and PMIx servers do that.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

namespace viaduct::mpi {

class Launch {
 public:
  virtual ~Launch() = default;
  virtual const char* name() const = 0;  // "pmi1", "pmix", "single"
  virtual int rank() const = 0;
  virtual int size() const = 0;
  virtual int local_rank() const = 0;  // among the processes that were started on this host
  virtual int local_size() const = 0;  // how many those are
  // Drawn at random for this job: the same in all its processes, and nobody else can tell it.
  virtual std::uint64_t job_key() const = 0;
  virtual int appnum() const = 0;         // MPI_APPNUM; -1: unknown
  virtual int universe_size() const = 0;  // MPI_UNIVERSE_SIZE; -1: unknown

  // Publishes a value about this process: at most 900 printable characters without blanks. Each key
  // once. Others may get it after a fence.
  virtual void put(std::string_view key, std::string_view value) = 0;
  // Collective over the job.
  virtual void fence() = 0;
  // What that process has put before the fence. Throws SetupError if there is none.
  virtual std::string get(int rank, std::string_view key) = 0;

  // Tells the process manager that this process ends as it should; collective.
  virtual void finalize() = 0;
  // Ends the whole job: does not return.
  [[noreturn]] virtual void abort(int exit_code, std::string_view message) = 0;
};

// By what the environment says: PMI-1 (PMI_FD is an open socket), PMIx (PMIX_NAMESPACE), PMI-1
// (PMI_FD or PMI_PORT), else a job of one process. Throws SetupError when a manager is announced
// and does not answer.
std::unique_ptr<Launch> join_job();

}  // namespace viaduct::mpi
