// startup: what it costs to begin. Time from main to a connected memif port, and to the first
// message delivered, beside the same start of DPDK alone with the same arguments. Every measurement
// is a process of its own, because EAL starts once in a process; the kinds take turns, so that a
// busy machine is busy for all of them.
//
//  startup [ROUNDS]          the parent: starts the server, then the measurements
//  startup serve SOCKET      the other end of the memif
//  startup KIND SOCKET       one measurement; prints milliseconds
#include <rte_eal.h>
#include <rte_ethdev.h>
#include <sched.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "drivers/link/config.hpp"
#include "drivers/link/link.hpp"
#include "drivers/port/config_vars.hpp"
#include "drivers/port/eal.hpp"
#include "drivers/port/port.hpp"

namespace {

using namespace viaduct;
using namespace viaduct::link;
using Clock = std::chrono::steady_clock;

constexpr const char* kServerAddress = "02:00:00:00:00:01";
constexpr auto kPatience = std::chrono::seconds(20);

Clock::time_point began;  // when main began

std::string devargs(const std::string& role, const std::string& socket) {
  return "net_memif0,role=" + role + ",socket=" + socket +
         (role == "server" ? std::string(",mac=") + kServerAddress : "");
}

[[noreturn]] void die(const char* what) {
  std::fprintf(stderr, "startup: %s\n", what);
  std::exit(1);
}

// Prints the time since main began: the goal is reached. What follows is taking everything down,
// which is not measured.
void report() {
  std::printf("%.3f\n", std::chrono::duration<double, std::milli>(Clock::now() - began).count());
  std::fflush(stdout);
}

// --- the three kinds -----------------------------------------------------------------------------

// EAL and ethdev as their documentation shows them, with the arguments that Viaduct would give and
// as many frames.
void start_bare(const std::string& socket, Clock::time_point until) {
  std::vector<std::string> words = port::eal_arguments({});
  words.insert(words.begin(), "startup");
  std::vector<char*> argv;
  for (auto& word : words) argv.push_back(word.data());
  rte_log_set_global_level(RTE_LOG_ERR);
  // EAL's messages would be measured as well.
  std::string quiet = "--log-level=error";
  argv.push_back(quiet.data());
  if (rte_eal_init(static_cast<int>(argv.size()), argv.data()) < 0) die("rte_eal_init failed");
  std::uint16_t port = 0;
  if (rte_dev_probe(devargs("client", socket).c_str()) != 0 ||
      rte_eth_dev_get_port_by_name("net_memif0", &port) != 0)
    die("rte_dev_probe failed");
  rte_mempool* const pool = rte_pktmbuf_pool_create(
      "pool", static_cast<unsigned>(port::config_vars().number("VIADUCT_FRAMES")), 256, 0,
      RTE_MBUF_DEFAULT_BUF_SIZE, SOCKET_ID_ANY);
  const rte_eth_conf conf{};
  if (pool == nullptr || rte_eth_dev_configure(port, 1, 1, &conf) != 0 ||
      rte_eth_rx_queue_setup(port, 0, 1024, 0, nullptr, pool) != 0 ||
      rte_eth_tx_queue_setup(port, 0, 1024, 0, nullptr) != 0 || rte_eth_dev_start(port) != 0)
    die("the bare port does not start");
  rte_eth_link link{};
  while (link.link_status != RTE_ETH_LINK_UP) {
    if (Clock::now() > until) die("the bare port does not connect");
    rte_eth_link_get_nowait(port, &link);
    sched_yield();
  }
  report();
  rte_eth_dev_stop(port);
  rmdir(rte_eal_get_runtime_dir());  // EAL makes it even when it has nothing to put there
}

// Opens a port as the library does. A memif connects while it is polled, so frames are received and
// dropped.
std::unique_ptr<port::Port> start_port(const std::string& socket, Clock::time_point until) {
  auto port = port::Port::open({.devargs = devargs("client", socket)});
  while (!port->link_up()) {
    if (Clock::now() > until) die("the port does not connect");
    rte_mbuf* burst[8];
    rte_pktmbuf_free_bulk(burst, port->receive(burst, 8));
    sched_yield();
  }
  return port;
}

void send_first_message(const std::string& socket, Clock::time_point until) {
  const auto port = start_port(socket, until);
  Link<port::Port> link(*port, link_config_from_environment());
  const PeerId server = link.peer(*Address::parse(kServerAddress));
  const std::array<std::byte, 8> body{};
  if (link.try_send(server, Lane::high, Order::ordered, {Protocol::test, 0}, {}, body, Urgency::now,
                    port::now()) != SendStatus::sent)
    die("the first message is refused");
  // The loop yields, because the server may share this CPU.
  while (!link.idle(server)) {  // acknowledged: it has been delivered
    if (Clock::now() > until) die("the first message does not arrive");
    link.poll(port::now());
    sched_yield();
  }
  report();
}

// What is measured: `run` does it and calls report() when the goal is reached.
struct Kind {
  const char *name, *meaning;
  void (*run)(const std::string& socket, Clock::time_point until);
};
constexpr Kind kKinds[] = {
    {"dpdk", "EAL and memif port, bare, connected", start_bare},
    {"port", "viaduct port, connected",
     [](const std::string& socket, Clock::time_point until) {
       const auto port = start_port(socket, until);
       report();
     }},
    {"message", "viaduct link, first message delivered", send_first_message},
};

// --- the processes -------------------------------------------------------------------------------

class TakeAll final : public ReceiveHandler {
  RxResult on_message(const Incoming&) override { return RxResult::consumed; }
};

// The other end: polls until its parent is gone.
[[noreturn]] void serve(const std::string& socket) {
  const auto port = port::Port::open({.devargs = devargs("server", socket)});
  Link<port::Port> link(*port, link_config_from_environment());
  TakeAll sink;
  link.attach(Protocol::test, &sink);
  std::puts("ready");
  std::fflush(stdout);
  const pid_t parent = getppid();
  while (getppid() == parent) {
    for (int i = 0; i < 1000; ++i) link.poll(port::now());
    sched_yield();
  }
  std::exit(0);
}

// A child and its standard output.
struct Process {
  pid_t pid;
  std::FILE* output;
};

// Starts this program again, with `what` as its first argument.
Process spawn(const char* what, const std::string& socket) {
  int ends[2];
  if (pipe(ends) != 0) die("no pipe");
  const pid_t pid = fork();
  if (pid < 0) die("no process can be started");
  if (pid == 0) {
    dup2(ends[1], 1);
    close(ends[0]);
    close(ends[1]);
    execl("/proc/self/exe", "startup", what, socket.c_str(), nullptr);
    _exit(127);
  }
  close(ends[1]);
  return {pid, fdopen(ends[0], "r")};
}

// One measurement in a process of its own; milliseconds. Ends the program if it fails.
double measure(const Kind& kind, const std::string& socket) {
  const Process process = spawn(kind.name, socket);
  double milliseconds = 0;
  const bool read = std::fscanf(process.output, "%lf", &milliseconds) == 1;
  std::fclose(process.output);
  int status = 0;
  waitpid(process.pid, &status, 0);
  if (!read || status != 0) die("a measurement failed");
  return milliseconds;
}

double median(std::vector<double> values) {
  std::nth_element(values.begin(), values.begin() + values.size() / 2, values.end());
  return values[values.size() / 2];
}

// All kinds in each round; prints a table with ratios to bare DPDK.
void compare(int rounds) {
  const std::string socket = "viaduct-startup-" + std::to_string(getpid());
  const Process server = spawn("serve", socket);
  char word[16] = "";
  if (std::fscanf(server.output, "%15s", word) != 1 || std::strcmp(word, "ready") != 0)
    die("the server does not start");
  std::array<std::vector<double>, std::size(kKinds)> times;
  for (int round = 0; round < rounds; ++round)
    for (std::size_t i = 0; i < std::size(kKinds); ++i)
      times[i].push_back(measure(kKinds[i], socket));
  kill(server.pid, SIGTERM);
  waitpid(server.pid, nullptr, 0);

  std::printf("From main, ms, %d processes of each kind in turns\n", rounds);
  std::printf("%-40s %8s %8s %8s %9s\n", "", "min", "median", "max", "ratio");
  for (std::size_t i = 0; i < std::size(kKinds); ++i) {
    const auto [least, most] = std::minmax_element(times[i].begin(), times[i].end());
    std::printf("%-40s %8.1f %8.1f %8.1f %8.2fx\n", kKinds[i].meaning, *least, median(times[i]),
                *most, median(times[i]) / median(times[0]));
  }
}

}  // namespace

int main(int argc, char** argv) {
  began = Clock::now();
  try {
    if (argc == 3) {
      if (std::strcmp(argv[1], "serve") == 0) serve(argv[2]);
      for (const Kind& kind : kKinds) {
        if (std::strcmp(argv[1], kind.name) != 0) continue;
        kind.run(argv[2], began + kPatience);
        return 0;
      }
    }
    const int rounds = argc == 2 ? std::atoi(argv[1]) : 9;
    if (argc > 2 || rounds < 1) die("usage: startup [ROUNDS]");
    compare(rounds);
  } catch (const base::SetupError& error) {
    die(error.what());
  }
  return 0;
}
