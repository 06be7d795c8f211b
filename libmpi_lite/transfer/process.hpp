// This process in its job: from MPI_Init to MPI_Finalize.
#pragma once

#include <memory>
#include <string_view>
#include <vector>

#include "libmpi_lite/core/comm.hpp"
#include "libmpi_lite/launch/launch.hpp"

namespace viaduct::port {
class Port;
}

namespace viaduct::mpi {

class Transfer;

class Process {
 public:
  enum class Phase : std::uint8_t { before_init, running, finalized };

  static Process& self();

  // MPI_Init: joins the job, makes the predefined objects. `thread_level` as asked for; at most
  // MPI_THREAD_SERIALIZED is provided. Throws SetupError.
  void init(int thread_level);
  // MPI_Finalize; collective. Attributes of MPI_COMM_SELF are deleted first (section 11.2.2), then,
  // as programs expect, those of MPI_COMM_WORLD.
  void finalize();

  // What both are made of, for who has the job and the port already, as viaduct-pingpong: join() as
  // init(), over that port (nullptr: the one that VIADUCT_PORTS names); leave() as finalize(), but
  // at once. After it a process may join again. Nothing that others wait for is left if not busy().
  void join(std::unique_ptr<Launch> launch, int thread_level, std::shared_ptr<port::Port> port);
  bool busy() const;
  void leave();

  static Phase phase() { return phase_; }
  int rank() const { return rank_; }
  int size() const { return size_; }
  int thread_level() const { return thread_level_; }
  bool main_thread() const;  // this is the thread that called MPI_Init
  Launch& launch() { return *launch_; }
  Comm& world() { return *world_; }
  // Which node that process runs on, as a number that is the same in all processes: the lowest rank
  // on it. May ask the process manager about each process, once.
  int node_of(int world_rank);

  // For whoever would say that another process is lost, which all may be about to say: gives the
  // launcher, which knows more, and lower ranks the time to say it and end the job.
  void let_others_speak() const;
  // Prints the message and ends the whole job; does not return.
  [[noreturn]] void abort(int exit_code, std::string_view message);

 private:
  Process() = default;
  static inline Phase phase_ = Phase::before_init;  // each call looks at it
  int rank_ = 0, size_ = 1, thread_level_ = 0;
  std::unique_ptr<Launch> launch_;
  Ref<Comm> world_;
};

}  // namespace viaduct::mpi
