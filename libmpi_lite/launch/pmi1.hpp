// Pmi1: Launch over PMI-1, the protocol of Hydra (mpiexec). Slurm speaks it as well: srun
// --mpi=pmi2 answers processes that ask in PMI-1. pmi1_wire.hpp has the lines and the socket.
//
//   process                                    process manager
//     initack pmiid=..            ---->                       only if connected by PMI_PORT
//                                 <----  initack; set size=..; set rank=..; set debug=..
//     init pmi_version=1 ..       ---->
//                                 <----  response_to_init
//     get_maxes, get_my_kvsname, get_appnum, get_universe_size: a request and an answer each
//     get key=PMI_process_mapping ---->                       unless Hydra's variables tell
//                                 <----  get_result value=..
//     put key=.. value=..         ---->
//                                 <----  put_result
//     barrier_in                  ---->
//                                 <----  barrier_out          when all processes are there
//     get key=..                  ---->
//                                 <----  get_result value=..
//     barrier_in, then finalize   ---->
//                                 <----  finalize_ack         or: abort, which has no answer
#pragma once

#include <memory>
#include <optional>
#include <utility>

#include "libmpi_lite/launch/launch.hpp"
#include "libmpi_lite/launch/pmi1_wire.hpp"

namespace viaduct::mpi {

class Pmi1 final : public Launch {
 public:
  // PMI_FD is set and is the number of an open socket. Then the manager that set it is the
  // innermost one, which started this process: environment variables are inherited by jobs that a
  // job starts, open descriptors are not. Throws SetupError if PMI_FD is not a number.
  static bool connected();
  // Some manager has set PMI_FD or PMI_PORT, perhaps for a parent of this process.
  static bool announced();
  // Connects to the manager and learns all that the accessors tell. Collective over the job.
  // `timeout`: how long the manager may take to answer a request that depends on it alone. Throws
  // SetupError.
  static std::unique_ptr<Pmi1> join(std::chrono::milliseconds timeout = std::chrono::minutes(1));

  const char* name() const override { return "pmi1"; }
  void put(std::string_view key, std::string_view value) override;
  void fence() override;
  void start_fence() override;
  bool fence_passed() override;
  std::string get(int rank, std::string_view key) override;
  void finalize() override;
  [[noreturn]] void abort(int exit_code, std::string_view message) override;

 private:
  explicit Pmi1(Pmi1Wire wire) : wire_(std::move(wire)) {}
  // Steps of join(), in the order find_rank(), initialise(), find_local_rank().
  void initialise();
  void find_rank();
  void find_local_rank();
  // A number that the manager need not know; -1: it does not.
  int ask_number(std::string_view what, std::string_view answer, std::string_view field);
  // The manager's answer for a key of the job's key-value space, good or not.
  Pmi1Message lookup(std::string_view key);

  Pmi1Wire wire_;                    // closed by finalize()
  int max_key_ = 0, max_value_ = 0;  // characters that put() takes
  std::string kvs_name_;             // the manager's name of the job's key-value space (KVS)
};

}  // namespace viaduct::mpi
