// This process in its job: from MPI_Init to MPI_Finalize. The class is declared in transfer/, so
// that lower layers may ask for the rank and the launcher, and is implemented in runtime/, which
// ties all layers together. It owns the launcher's connection; the Transfer is in process.cpp.
//
// Threads: one thread at a time is in the library and calls these functions; any thread may ask for
// the phase.
#pragma once

#include <array>
#include <atomic>
#include <memory>
#include <string_view>
#include <vector>

#include "drivers/base/config_var.hpp"
#include "libmpi_lite/core/comm.hpp"
#include "libmpi_lite/launch/launch.hpp"

namespace viaduct::port {
class Port;
}

namespace viaduct::mpi {

class Transfer;

class Process {
 public:
  //   before_init -- join(), at its end --> running -- end(), at its end --> finalized
  //        ^                                   |
  //        '------------ leave() -------------'
  enum class Phase : std::uint8_t { before_init, running, finalized };

  static Process& self();  // the only one; made at the first call

  // MPI_Init and MPI_Session_init: the first of them joins the job and makes the predefined
  // objects. `thread_level` as asked for, which is provided. Throws
  // SetupError.
  void init(int thread_level);
  void begin_session(int thread_level);
  // MPI_Finalize; collective. Attributes of MPI_COMM_SELF are deleted first (section 11.2.2), then,
  // as programs expect, those of MPI_COMM_WORLD.
  // With sessions open, the job is left at the end of the last of them.
  void finalize();
  // MPI_Session_finalize. A process that has not called MPI_Init stays in the job until it exits,
  // as another session may begin.
  void end_session();
  // Of MPI_Init and MPI_Finalize alone: what MPI_Initialized and MPI_Finalized say.
  bool initialized() const { return initialized_; }
  bool finalized() const { return finalized_; }

  // The steps that init() and finalize() consist of, for programs that have the job and the port
  // already, as viaduct-pingpong. join() does what init() does, over that port (nullptr: the one
  // that VIADUCT_PORTS names); throws SetupError. leave() does what finalize() does, but neither
  // waits for other processes nor ends the launcher's connection; the process may join again. Call
  // leave() when busy() is false: then no other process waits for anything that is left here.
  void join(std::unique_ptr<Launch> launch, int thread_level, std::shared_ptr<port::Port> port);
  bool busy() const;
  void leave();

  static Phase phase() { return phase_; }
  // Whether an MPI function has more to do first than to be called: it is not between MPI_Init and
  // MPI_Finalize, or threads share the library.
  static bool calls_are_checked() { return calls_are_checked_.load(std::memory_order_relaxed); }
  // The environment variables that MPI_Init reads: of the port, of the link, and MPI's own.
  static std::array<base::ConfigTable, 3> config_tables();
  int rank() const { return rank_; }
  int size() const { return size_; }
  int thread_level() const { return thread_level_; }
  bool main_thread() const;  // this is the thread that called MPI_Init
  Launch& launch() { return *launch_; }
  Comm& world() { return *world_; }
  // The node that the process runs on, as a number that is the same in all processes: the lowest
  // rank on it. May ask the process manager about each process, once. Throws SetupError.
  int node_of(int world_rank);

  // Sleeps before this process reports that another one is lost. All ranks may be about to report
  // the same, so the launcher, which knows the cause, and lower ranks get the time to report it and
  // end the job first. Takes 0.3 s and 0.1 s for each lower rank, at most 2.3 s.
  void delay_abort_report() const;
  // Prints the message to standard error and ends the whole job.
  [[noreturn]] void abort(int exit_code, std::string_view message);

 private:
  Process() = default;
  void wait_for_all();  // a barrier over the job
  void set_phase(Phase phase);
  static inline Phase phase_ = Phase::before_init;
  static inline std::atomic<bool> calls_are_checked_ = true;  // static, as every MPI call reads it
  void start(int thread_level);                               // joins the job, or is in it
  void end();                                                 // leaves it
  static void end_at_exit();

  int rank_ = 0, size_ = 1, thread_level_ = 0;
  bool initialized_ = false, finalized_ = false;
  int sessions_ = 0;  // that are open
  std::unique_ptr<Launch> launch_;
  Ref<Comm> world_;
};

}  // namespace viaduct::mpi
