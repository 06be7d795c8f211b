// Launch: who this process is, and who the others of the job are, as the process manager knows it.
// The manager is also the only way to exchange data (addresses) before the channels are open: a
// key-value space that each process writes to, and reads after a fence.
//
// Starting processes is not the library's business: Hydra, Slurm and PMIx servers do that. One
// class implements Launch for each protocol: Pmi1, Pmix, Single.
//
// Ownership: runtime/ owns the one Launch object of the process, from MPI_Init on. Thread rule: the
// one thread that is in the library makes all calls. All calls but the plain accessors,
// start_fence() and fence_passed() wait for the manager; they do not make progress on messages
// meanwhile.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

namespace viaduct::mpi {

// What the process manager says of this process and of its job.
struct ProcessIdentity {
  int rank = 0;        // in MPI_COMM_WORLD
  int size = 1;        // of MPI_COMM_WORLD
  int local_rank = 0;  // among the processes that were started on this host
  int local_size = 1;  // how many those are
  // A random number: the same in all processes of the job, and nobody outside can guess it. It
  // keeps the frames of jobs on one network apart.
  std::uint64_t job_key = 0;
  int appnum = -1;         // MPI_APPNUM; -1: unknown
  int universe_size = -1;  // MPI_UNIVERSE_SIZE; -1: unknown
};

class Launch {
 public:
  virtual ~Launch() = default;
  virtual const char* name() const = 0;  // "pmi1", "pmix", "single"
  int rank() const { return identity_.rank; }
  int size() const { return identity_.size; }
  int local_rank() const { return identity_.local_rank; }
  int local_size() const { return identity_.local_size; }
  std::uint64_t job_key() const { return identity_.job_key; }
  int appnum() const { return identity_.appnum; }
  int universe_size() const { return identity_.universe_size; }

  // Publishes a value about this process: at most 900 printable characters without blanks. A key is
  // put once at most. The others can get the value after the next fence. Throws SetupError if the
  // manager does not store it, Error if key or value are not what it takes.
  virtual void put(std::string_view key, std::string_view value) = 0;
  // A barrier over the job, after which get() finds what was put before it. Collective; waits as
  // long as the other processes take. Throws SetupError.
  virtual void fence() = 0;
  // The same in two steps, for a process that makes progress meanwhile: start_fence() does not wait
  // for the others, fence_passed() for nothing. After it was true, the fence is over. Between them
  // no other call but abort() is allowed. Throw SetupError.
  virtual void start_fence() = 0;
  virtual bool fence_passed() = 0;
  // What that rank has put under the key before the last fence. Throws SetupError if there is
  // nothing.
  virtual std::string get(int rank, std::string_view key) = 0;

  // Tells the manager that this process ends as it should. Collective: the manager takes a process
  // that ends before the others have come so far for a failed one. No other call may follow.
  virtual void finalize() = 0;
  // Ends the whole job, all its processes. `message`: for managers that can show it. Does not
  // return, and runs no exit handlers.
  [[noreturn]] virtual void abort(int exit_code, std::string_view message) = 0;

 protected:
  explicit Launch(const ProcessIdentity& identity = {}) : identity_(identity) {}

  ProcessIdentity identity_;  // fixed once the job has been joined
};

// Joins the job that this process was started for, as the environment says. In this order: PMI-1
// (PMI_FD is an open socket), PMIx (PMIX_NAMESPACE is set), PMI-1 (PMI_FD or PMI_PORT is set), else
// a job of one process. Collective over the job. Throws SetupError if a manager is announced and
// does not answer.
std::unique_ptr<Launch> join_job();

}  // namespace viaduct::mpi
