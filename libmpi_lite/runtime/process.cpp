#include "libmpi_lite/transfer/process.hpp"

#include <pthread.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <climits>
#include <cstdio>
#include <thread>

#include "drivers/link/config.hpp"
#include "drivers/port/config_vars.hpp"
#include "libmpi_lite/channel/node.hpp"
#include "libmpi_lite/channel/open.hpp"
#include "libmpi_lite/collective/collective.hpp"
#include "libmpi_lite/core/config_vars.hpp"
#include "libmpi_lite/core/keyval.hpp"
#include "libmpi_lite/core/predefined.hpp"
#include "libmpi_lite/launch/common.hpp"
#include "libmpi_lite/transfer/engine.hpp"

namespace viaduct::mpi {
namespace {

std::unique_ptr<Transfer> transfer;
std::thread::id main_thread_id;

// Before `transfer` goes, when the program calls exit() or returns from main: after its own exit
// handlers, one of which may have called MPI_Finalize.
struct ExitWatch {
  ~ExitWatch() {
    if (!transfer || Process::phase() != Process::Phase::running) return;
    if (Process::self().size() > 1)
      std::fprintf(stderr,
                   "viaduct: rank %d ends without MPI_Finalize: the program has called exit() or "
                   "returned from main()\n",
                   Process::self().rank());
    transfer->ends_early();
  }
} exit_watch;

// A child that the program forks shares the memory of ports with this process, and must not close
// them when it exits: so its copy is never destroyed.
void leave_to_parent() {
  static_cast<void>(transfer.release());
}

template <class Done>
void wait_for_at_most(std::chrono::milliseconds patience, Done done) {
  const auto until = std::chrono::steady_clock::now() + patience;
  wait_until([&] { return done() || std::chrono::steady_clock::now() > until; }, kAnyOfSeveral);
}

// A thread that waits in a stream for its reader or writer holds its lock, perhaps for ever.
bool lock_within(std::chrono::milliseconds patience, std::FILE* stream) {
  const auto until = std::chrono::steady_clock::now() + patience;
  while (::ftrylockfile(stream) != 0) {
    if (std::chrono::steady_clock::now() > until) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return true;
}

// What programs may no longer use. Info objects and error handlers they may (section 11.4).
void forget_handles() {
  request_handles.clear();
  message_handles.clear();
  comm_handles.clear();
  group_handles.clear();
  op_handles.clear();
  datatype_handles.clear();
}

std::array<base::ConfigTable, 3> config_tables() {
  return {port::config_vars(), link::config_vars(), config_vars()};
}

// All, because some are read only later, where a wrong one would be a surprise. Other processes of
// the job may have other settings, so say whose it is.
void check_settings(const Launch& launch) {
  try {
    for (const base::ConfigTable& table : config_tables()) table.check();
  } catch (const base::SetupError& error) {
    char host[HOST_NAME_MAX + 1] = "";
    ::gethostname(host, sizeof host - 1);
    throw base::SetupError("rank " + std::to_string(launch.rank()) + " on " + host + ": " +
                           error.what());
  }
}

}  // namespace

Process& Process::self() {
  static Process* process = new Process;  // never destroyed: exit handlers may call MPI functions
  return *process;
}

void Process::init(int thread_level) {
  for (const std::string& name : base::unknown_config_vars(config_tables(), "VIADUCT_VIPL_"))
    std::fprintf(stderr,
                 "viaduct: unknown environment variable %s; viaduct-info --config lists them\n",
                 name.c_str());
  join(join_job(), thread_level, nullptr);
}

void Process::join(std::unique_ptr<Launch> launch, int thread_level,
                   std::shared_ptr<port::Port> port) {
  launch_ = std::move(launch);
  rank_ = launch_->rank();
  size_ = launch_->size();
  thread_level_ = std::min(thread_level, MPI_THREAD_SERIALIZED);
  main_thread_id = std::this_thread::get_id();
  check_settings(*launch_);
  TransferConfig config;
  config.collectives = &collective_sink();
  config.write_protocol = config_vars().on("VIADUCT_WRITE_PROTOCOL");
  transfer = std::make_unique<Transfer>(
      [&](ChannelSink& sink) { return open_channels(sink, *launch_, std::move(port)); },
      choose_channel, rank_, size_, config);
  LongWait::configure();
  DumpSignal::take();
  static const int registered = ::pthread_atfork(nullptr, nullptr, leave_to_parent);
  if (registered != 0) throw std::bad_alloc();
  launch_->fence();
  check_channels(*launch_);
  if (job_nodes().oversubscribed(launch_->local_size() == size_)) transfer->set_oversubscribed();
  request_handles.define(kCompleteSend, Ref<Request>(new CompleteSend));
  define_datatypes();
  define_ops();
  define_predefined(rank_, size_);
  world_ = Ref(comm_handles.find(reinterpret_cast<std::uintptr_t>(MPI_COMM_WORLD)));
  phase_ = Phase::running;
}

void Process::finalize() {
  delete_comm_attributes(MPI_COMM_SELF);
  delete_comm_attributes(MPI_COMM_WORLD);
  wait(*start_last_barrier(*world_));
  // Everybody has come this far. But what this process has said last may still wait here for room,
  // and somebody for it, on a machine that is too busy.
  wait_for_at_most(std::chrono::seconds(10), [&] { return !transfer->has_backlog(); });
  // What may be left then are acknowledgements. The other end may be gone already, so not for long.
  wait_for_at_most(std::chrono::milliseconds(500), [&] { return !busy(); });
  if (config_vars().on("VIADUCT_STATS")) transfer->print_counters();
  leave();
  phase_ = Phase::finalized;
  launch_->finalize();
}

bool Process::busy() const {
  return transfer->busy();
}

void Process::leave() {
  phase_ = Phase::before_init;
  world_ = nullptr;
  forget_handles();
  transfer->finished();  // not so when exit() takes it down
  DumpSignal::give_back();
  transfer.reset();
}

bool Process::main_thread() const {
  return std::this_thread::get_id() == main_thread_id;
}
int Process::node_of(int world_rank) {
  return job_nodes().node_of(world_rank);
}

// More than a launcher takes to end a job, for each rank.
void Process::let_others_speak() const {
  constexpr std::chrono::milliseconds kLauncher{300}, kRank{100};
  constexpr int kMaxRanks = 20;
  std::this_thread::sleep_for(kLauncher + kRank * std::min(rank_, kMaxRanks));
}

void Process::abort(int exit_code, std::string_view message) {
  // The job ends even if nobody hears why.
  for (std::FILE* stream : {stderr, stdout}) {
    if (!lock_within(std::chrono::milliseconds(50), stream)) continue;
    if (stream == stderr && !message.empty())
      std::fprintf(stream, "%.*s\n", static_cast<int>(message.size()), message.data());
    std::fflush(stream);
    ::funlockfile(stream);
  }
  // What was printed is on its way through the process manager, which forgets it when it ends the
  // job.
  std::this_thread::sleep_for(std::chrono::milliseconds(50));
  if (launch_) launch_->abort(exit_code, message);
  ::_exit(exit_status(exit_code));
}

}  // namespace viaduct::mpi
