// Starts the two sides of a testbed as child processes and looks after them (bed.hpp). The parent
// measures nothing: it waits for signals, says which side failed if the side cannot say so itself,
// and cleans up. The children talk over a socket pair.
#include "tools/pingpong/testbed/bed.hpp"

#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstring>
#include <functional>
#include <optional>

#include "tools/pingpong/error.hpp"
#include "tools/pingpong/main.hpp"
#include "tools/pingpong/run.hpp"
#include "tools/pingpong/testbed/rdma_devices.hpp"
#include "tools/pingpong/testbed/testbed.hpp"
#include "tools/pingpong/watch.hpp"

namespace viaduct::pingpong {

namespace {

constexpr int kServer = 0, kClient = 1;
constexpr const char* kSideName[] = {"server", "client"};
constexpr std::chrono::seconds kGrace{2};  // from SIGTERM to SIGKILL; for the other side's end

// Binds this side to a CPU of its own, if it is allowed two: both sides spin, and on one CPU they
// would take turns of a scheduler's time slice.
void pin(int side) {
  cpu_set_t allowed, one;
  if (::sched_getaffinity(0, sizeof(allowed), &allowed) != 0 || CPU_COUNT(&allowed) < 2) {
    if (side == kClient)
      std::fputs(
          "viaduct-pingpong: both sides share one CPU, the figures mean little; allow this "
          "process two\n",
          stderr);
    return;
  }
  int seen = 0;
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
    if (!CPU_ISSET(cpu, &allowed) || seen++ != side) continue;
    CPU_ZERO(&one);
    CPU_SET(cpu, &one);
    ::sched_setaffinity(0, sizeof(one), &one);
    return;
  }
}

// What each side is given in that testbed.
SideConfig side_config(const Options& options, int side) {
  SideConfig out;
  out.client = side == kClient;
  out.mtu = options.mtu;
  bool needs_port = false;
  for (const std::string& layer : options.layers)
    needs_port = needs_port || find_layer(layer)->info.over == Over::port;
  if (options.mode == Options::Mode::netns) {
    if (needs_port) out.devargs = "net_" + options.pmd + "0,iface=p0";
    out.ip = Testbed::ip(side);
    out.peer_ip = Testbed::ip(1 - side);
  } else if (options.mode == Options::Mode::verbs) {
    const std::vector<std::string> addresses = rdma_addresses();
    out.ip = addresses[static_cast<std::size_t>(side)];
    out.peer_ip = addresses[static_cast<std::size_t>(1 - side)];
  } else {
    // An abstract socket leaves no file behind. The parent's process number makes the name unique.
    out.devargs = std::string("net_memif0,role=") + kSideName[side] + ",socket=viaduct-pingpong-" +
                  std::to_string(::getpid()) + ",socket-abstract=yes";
  }
  return out;
}

// The body of one child process. The client prints the tables.
void run_side(const Options& options, const SideConfig& config, int side, UniqueFd socket) {
  Side here(config);
  const auto control = socket_control(std::move(socket));
  if (side == kServer) return serve(here, *control, std::chrono::seconds{30});
  const auto session = remote_session(here, *control, options.checksum);
  report(options, measure(*session, options));
}

// The two child processes, and the signals that concern them. The signals are blocked in the parent
// and taken with sigtimedwait(), so none is lost between looking and sleeping. The destructor ends
// what is left.
class Children {
 public:
  Children() : signals_(interrupts()) {
    sigaddset(&signals_, SIGCHLD);
    sigprocmask(SIG_BLOCK, &signals_, &before_);
  }
  ~Children() {
    stop();
    sigprocmask(SIG_SETMASK, &before_, nullptr);
  }
  Children(const Children&) = delete;
  Children& operator=(const Children&) = delete;

  // Starts a child that runs `body` and exits with its result. The child gets SIGTERM when the
  // parent dies.
  void start(int side, const std::function<int()>& body) {
    const pid_t parent = ::getpid();
    // Otherwise both processes would print what the buffers hold now.
    std::fflush(nullptr);
    const pid_t pid = ::fork();
    if (pid < 0) throw system_failure("cannot start a process");
    if (pid == 0) {
      ::prctl(PR_SET_PDEATHSIG, SIGTERM);
      sigprocmask(SIG_SETMASK, &before_, nullptr);
      // The parent may have died before PR_SET_PDEATHSIG was set.
      if (::getppid() != parent) ::_exit(kExitPeerGone);
      const int status = body();
      std::fflush(nullptr);
      ::_exit(status);
    }
    pids_[side] = pid;
  }

  // Returns when both have ended well (0), one has not, or a signal asks this process to stop. The
  // exit status.
  int wait() {
    while (pids_[kServer] != 0 || pids_[kClient] != 0) {
      if (!wait_for_signal(std::chrono::seconds{3600})) continue;
      if (interrupted) return kExitInterrupted;
      for (const int side : {kServer, kClient})
        if (const auto status = reap(side); status && *status != 0) return explain(side, *status);
    }
    return 0;
  }

 private:
  // False: none came within `limit`. SIGCHLD only wakes the parent; the others set `interrupted`.
  bool wait_for_signal(std::chrono::nanoseconds limit) {
    const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(limit);
    const timespec time{seconds.count(), (limit - seconds).count()};
    const int signal = sigtimedwait(&signals_, nullptr, &time);
    if (signal > 0 && signal != SIGCHLD) interrupted = true;
    return signal > 0;
  }

  // The side's wait status if it has ended and was not reaped before.
  std::optional<int> reap(int side) {
    int status = 0;
    if (pids_[side] == 0 || ::waitpid(pids_[side], &status, WNOHANG) != pids_[side])
      return std::nullopt;
    pids_[side] = 0;
    return status;
  }

  // Says why the run failed. A side that failed has said so itself, unless it was killed or lost
  // the other: then the other side's end is the cause.
  int explain(int side, int status) {
    if (WIFEXITED(status) && WEXITSTATUS(status) == kExitPeerGone) {
      const auto other = reap_soon(1 - side);
      if (other && !(WIFEXITED(*other) && WEXITSTATUS(*other) == kExitPeerGone))
        return explain(1 - side, *other);
      std::fprintf(stderr, "viaduct-pingpong: the two sides lost each other\n");
    } else if (WIFSIGNALED(status)) {
      std::fprintf(
          stderr, "viaduct-pingpong: the %s process was ended by signal %d (%s); the run is void\n",
          kSideName[side], WTERMSIG(status), strsignal(WTERMSIG(status)));
    } else if (WEXITSTATUS(status) == kExitInterrupted) {
      return kExitInterrupted;
    }
    return kExitFailure;
  }

  // As reap(), but waits for up to kGrace.
  std::optional<int> reap_soon(int side) {
    const auto deadline = std::chrono::steady_clock::now() + kGrace;
    for (;;) {
      if (const auto status = reap(side)) return status;
      if (pids_[side] == 0 || std::chrono::steady_clock::now() > deadline) return std::nullopt;
      wait_for_signal(std::chrono::milliseconds{100});
    }
  }

  // Ends the children that are left: SIGTERM first, so that they clean up, then SIGKILL.
  void stop() {
    for (const int signal : {SIGTERM, SIGKILL})
      for (const int side : {kServer, kClient}) {
        if (pids_[side] == 0) continue;
        ::kill(pids_[side], signal);
        reap_soon(side);
      }
  }

  sigset_t signals_, before_;
  pid_t pids_[2] = {0, 0};
};

}  // namespace

int run_testbed(const Options& options) {
  const SideConfig configs[] = {side_config(options, kServer), side_config(options, kClient)};
  std::optional<Testbed> hosts;
  if (options.mode == Options::Mode::netns)
    hosts.emplace(options.mtu ? options.mtu : 1500, options.offload);
  int ends[2];
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0)
    throw system_failure("cannot make a socket pair");
  UniqueFd sockets[2] = {UniqueFd(ends[0]), UniqueFd(ends[1])};
  const pid_t parent = ::getpid();
  Children children;
  for (const int side : {kServer, kClient})
    children.start(side, [&] {
      // Each process keeps one end only: the end of a process must close the socket for the other.
      sockets[1 - side].reset();
      const int status = report_errors([&] {
        if (hosts) hosts->enter(side);
        pin(side);
        run_side(options, configs[side], side, std::move(sockets[side]));
        return 0;
      });
      // If the parent was killed, it could not take the hosts down. The server does it then.
      if (hosts && side == kServer && ::getppid() != parent) hosts->take_down_instead();
      return status;
    });
  for (UniqueFd& socket : sockets) socket.reset();
  return children.wait();
}

}  // namespace viaduct::pingpong
