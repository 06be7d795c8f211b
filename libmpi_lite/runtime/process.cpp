// From MPI_Init to MPI_Finalize: reads the configuration, joins the job by the launcher, opens the
// channels, registers collectives with the Transfer, defines the predefined objects, and takes all
// of it down again. The only file that knows all layers below api/.
#include "libmpi_lite/transfer/process.hpp"

#include <pthread.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <climits>
#include <cstdio>
#include <cstdlib>
#include <deque>
#include <optional>
#include <thread>

#include "drivers/link/config.hpp"
#include "drivers/port/config_vars.hpp"
#include "libmpi_lite/channel/node.hpp"
#include "libmpi_lite/channel/open.hpp"
#include "libmpi_lite/collective/collective.hpp"
#include "libmpi_lite/core/config_vars.hpp"
#include "libmpi_lite/core/data/datatype.hpp"
#include "libmpi_lite/core/keyval.hpp"
#include "libmpi_lite/core/predefined.hpp"
#include "libmpi_lite/core/threads/library_lock.hpp"
#include "libmpi_lite/launch/common.hpp"
#include "libmpi_lite/rma/window.hpp"
#include "libmpi_lite/runtime/progress_thread.hpp"
#include "libmpi_lite/transfer/engine.hpp"

namespace viaduct::mpi {
namespace {

std::unique_ptr<Transfer> transfer;               // from join() to leave()
std::unique_ptr<ProgressThread> progress_thread;  // with VIADUCT_ASYNC_PROGRESS
std::thread::id main_thread_id;                   // of the thread that called MPI_Init

// Notices an exit without MPI_Finalize. Static objects are destroyed in reverse order, so this one
// goes before `transfer`, which its destructor needs. The program's exit handlers run earlier if it
// registered them after this library was loaded, so one of them may still call MPI_Finalize.
struct ExitWatch {
  ~ExitWatch() {
    if (!transfer || Process::phase() != Process::Phase::running) return;
    // Other threads may still be in MPI; none of them is to find that `transfer` is gone.
    if (!LibraryLock::lock_for_good()) static_cast<void>(transfer.release());
    static_cast<void>(progress_thread.release());  // it waits for the lock until the process ends
    if (!transfer) return;
    if (Process::self().size() > 1)
      std::fprintf(stderr,
                   "viaduct: rank %d ends without MPI_Finalize: the program has called exit() or "
                   "returned from main()\n",
                   Process::self().rank());
    transfer->ends_early();
  }
} exit_watch;

// Runs in each child that the program forks. The child shares the memory of ports with this
// process, and must not close them when it exits: so the child's copy is never destroyed.
void leave_to_parent() {
  static_cast<void>(transfer.release());
  static_cast<void>(progress_thread.release());
  LibraryLock::reset_in_child();
}

// Makes progress until `done()` or until the time is over.
template <class Done>
void wait_for_at_most(std::chrono::milliseconds patience, Done done) {
  const auto until = std::chrono::steady_clock::now() + patience;
  wait_until([&] { return done() || std::chrono::steady_clock::now() > until; }, kAnyOfSeveral);
}

// Takes the stream's lock, if it is free within that time. Another thread that is blocked in the
// stream, for want of its reader, holds the lock, perhaps for ever.
bool lock_within(std::chrono::milliseconds patience, std::FILE* stream) {
  const auto until = std::chrono::steady_clock::now() + patience;
  while (::ftrylockfile(stream) != 0) {
    if (std::chrono::steady_clock::now() > until) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return true;
}

// Frees the objects that programs may not use after MPI_Finalize. Info objects and error handlers
// stay, as programs may use those (section 11.4).
void forget_handles() {
  request_handles.clear();
  message_handles.clear();
  win_handles.clear();
  comm_handles.clear();
  group_handles.clear();
  session_handles.clear();
  op_handles.clear();
  datatype_handles.clear();
}

// Checks all variables at once, because some are read only later, where a wrong value would be a
// surprise. Processes of a job may have different environments, so the error names the rank and its
// host. Throws SetupError.
void check_settings(const Launch& launch) {
  try {
    for (const base::ConfigTable& table : Process::config_tables()) table.check();
  } catch (const base::SetupError& error) {
    char host[HOST_NAME_MAX + 1] = "";
    ::gethostname(host, sizeof host - 1);
    throw base::SetupError("rank " + std::to_string(launch.rank()) + " on " + host + ": " +
                           error.what());
  }
}

WriteProtocol write_protocol() {
  const std::string chosen = config_vars().text("VIADUCT_WRITE_PROTOCOL");
  return chosen == "sr"    ? WriteProtocol::sr
         : chosen == "nsr" ? WriteProtocol::nsr
                           : WriteProtocol::automatic;
}

// What all processes have sent, at rank 0, which prints it. The caller has printed its own figures
// and counted its totals, so these messages are in none of them. They go up a binomial tree.
// Processes without VIADUCT_STATS say nothing, and are left out with those behind them.
void report_job(Comm& world, SentTotals totals) {
  constexpr std::chrono::seconds kPatience{2};
  constexpr int kTotalsTag = 1 << 29;  // of no collective operation
  const int rank = world.rank();
  const auto items = [](SentTotals& of) { return Items{&of, sizeof of, &datatype(MPI_BYTE)}; };
  const auto envelope = [&](int other) {
    return Envelope{&world, world.collective_context(), other, kTotalsTag};
  };
  // Outlives the call, and so receives that nothing satisfies.
  static std::deque<SentTotals> theirs;
  theirs.clear();
  std::vector<Ref<Request>> requests;
  for (int bit = 1; bit < world.size() - rank && (rank & bit) == 0; bit <<= 1)
    requests.push_back(start_receive(items(theirs.emplace_back()), envelope(rank + bit)));
  wait_for_at_most(kPatience, [&] {
    return std::ranges::all_of(requests, [](const Ref<Request>& r) { return r->complete; });
  });
  for (std::size_t i = 0; i < requests.size(); ++i)
    if (requests[i]->complete && requests[i]->error == MPI_SUCCESS) totals += theirs[i];
  if (rank == 0) return transfer->print_job(totals);
  const Ref<Request> sent =
      start_send(items(totals), envelope(rank & (rank - 1)), SendMode::standard);
  wait_for_at_most(kPatience, [&] { return sent->complete; });
}

}  // namespace

Process& Process::self() {
  static Process* process = new Process;  // never destroyed: exit handlers may call MPI functions
  return *process;
}

std::array<base::ConfigTable, 3> Process::config_tables() {
  return {port::config_vars(), link::config_vars(), config_vars()};
}

void Process::start(int thread_level) {
  if (phase_ == Phase::running) {
    thread_level_ = std::max(thread_level_, thread_level);
    return set_phase(Phase::running);
  }
  for (const std::string& name : base::unknown_config_vars(config_tables(), "VIADUCT_VIPL_"))
    std::fprintf(stderr,
                 "viaduct: unknown environment variable %s; viaduct-info --config lists them\n",
                 name.c_str());
  join(join_job(), thread_level, nullptr);
}

void Process::init(int thread_level) {
  start(thread_level);
  initialized_ = true;
}

void Process::begin_session(int thread_level) {
  start(thread_level);
  ++sessions_;
  // Handlers that are registered now run before the destructors of what the library has had from
  // its start.
  static const int registered = std::atexit(end_at_exit);
  if (registered != 0) throw std::bad_alloc();
}

// The order matters. Channels publish their addresses when they open; after the fence, which all
// processes pass, the addresses of all others can be looked up. Only then can this process tell
// which nodes there are, and make MPI_COMM_WORLD.
void Process::join(std::unique_ptr<Launch> launch, int thread_level,
                   std::shared_ptr<port::Port> port) {
  launch_ = std::move(launch);
  rank_ = launch_->rank();
  size_ = launch_->size();
  thread_level_ = thread_level;
  main_thread_id = std::this_thread::get_id();
  check_settings(*launch_);
  TransferConfig config;
  config.collectives = &collective_sink();
  config.rma = &rma_sink();
  config.write_protocol = write_protocol();
  transfer = std::make_unique<Transfer>(
      [&](ChannelSink& sink) { return open_channels(sink, *launch_, std::move(port)); },
      choose_channel, rank_, size_, config);
  LongWait::configure();
  DumpSignal::take();
  // Once in a process, even if it joins several times: fork handlers cannot be removed.
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
  // Last: messages of those that are done may come meanwhile.
  transfer->connect_all();
  set_phase(Phase::running);
  if (config_vars().on("VIADUCT_ASYNC_PROGRESS"))
    progress_thread = std::make_unique<ProgressThread>();
}

void Process::set_phase(Phase phase) {
  phase_ = phase;
  const bool shared = phase == Phase::running && (thread_level_ == MPI_THREAD_MULTIPLE ||
                                                  config_vars().on("VIADUCT_ASYNC_PROGRESS"));
  LibraryLock::set_shared(shared);
  calls_are_checked_ = phase != Phase::running || shared;
}

void Process::finalize() {
  delete_comm_attributes(MPI_COMM_SELF);
  delete_comm_attributes(MPI_COMM_WORLD);
  finalized_ = true;
  if (sessions_ == 0) end();
}

void Process::end_session() {
  if (--sessions_ == 0 && finalized_) end();
}

// Of a program that has used sessions only.
void Process::end_at_exit() {
  Process& process = self();
  LibraryLock::lock();
  if (phase_ == Phase::running && process.sessions_ == 0 && !process.initialized_) process.end();
}

void Process::end() {
  wait_for_all();
  // All processes have come so far. But the last control messages of this process may still
  // wait here for room, on a machine that is too busy, and another process may wait for them.
  wait_for_at_most(std::chrono::seconds(10), [&] { return !transfer->has_backlog(); });
  // What is left are acknowledgements. The other end may be gone already, so do not wait for long.
  wait_for_at_most(std::chrono::milliseconds(500), [&] { return !busy(); });
  if (config_vars().on("VIADUCT_STATS")) {
    transfer->print_counters();
    report_job(*world_, transfer->totals());
    wait_for_at_most(std::chrono::milliseconds(500), [&] { return !busy(); });
  }
  leave();
  set_phase(Phase::finalized);
  launch_->finalize();
}

// A fence of the process manager instead of a barrier of messages: a job's end needs no connections
// that its program has not made. The manager ends the fence, or the job, when a process dies. Where
// it does not, a loss ends the wait, but not at once: a process that has passed the fence leaves,
// and this one may hear of that first and of the manager's answer later.
void Process::wait_for_all() {
  using Clock = std::chrono::steady_clock;
  constexpr std::chrono::seconds kAnswerIsLate{10};
  const Envelope anybody{world_.get(), world_->context(), MPI_ANY_SOURCE, MPI_ANY_TAG};
  std::optional<Clock::time_point> lost_since;
  launch_->start_fence();
  bool passed = false;  // fence_passed() says so once
  wait_until(
      [&] {
        passed = passed || launch_->fence_passed();
        if (passed) return true;
        if (!transfer->any_lost()) return false;
        if (!lost_since) lost_since = Clock::now();
        if (Clock::now() - *lost_since > kAnswerIsLate) transfer->check_sender(anybody);
        return false;
      },
      [] { return WaitedFor{.event = "all processes to call MPI_Finalize"}; });
}

bool Process::busy() const {
  return transfer->busy();
}

void Process::leave() {
  progress_thread.reset();
  set_phase(Phase::before_init);
  world_ = nullptr;
  forget_handles();
  transfer->finished();  // without this call the others take the end of this process for a loss
  DumpSignal::give_back();
  transfer.reset();
}

bool Process::main_thread() const {
  return std::this_thread::get_id() == main_thread_id;
}
int Process::node_of(int world_rank) {
  return job_nodes().node_of(world_rank);
}

// A launcher takes less time than each of the two delays to end a job. Ranks beyond 20 need no
// further steps: one of the first 20 has ended the job by then.
void Process::delay_abort_report() const {
  constexpr std::chrono::milliseconds kLauncher{300}, kRank{100};
  constexpr int kMaxRanks = 20;
  std::this_thread::sleep_for(kLauncher + kRank * std::min(rank_, kMaxRanks));
}

void Process::abort(int exit_code, std::string_view message) {
  // A stream whose lock is not to be had is left out: the job must end even without the message.
  for (std::FILE* stream : {stderr, stdout}) {
    if (!lock_within(std::chrono::milliseconds(50), stream)) continue;
    if (stream == stderr && !message.empty())
      std::fprintf(stream, "%.*s\n", static_cast<int>(message.size()), message.data());
    std::fflush(stream);
    ::funlockfile(stream);
  }
  // The process manager forwards what was printed, and drops what it has not forwarded when it ends
  // the job. So give it some time.
  std::this_thread::sleep_for(std::chrono::milliseconds(50));
  if (launch_) launch_->abort(exit_code, message);
  ::_exit(exit_status(exit_code));
}

}  // namespace viaduct::mpi
