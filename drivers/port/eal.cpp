// Starting EAL: its arguments (memory, buses, lcores), and keeping its side effects (affinity,
// signals, output, directories) from the application. port.cpp calls it when the first port is
// opened.
#include "drivers/port/eal.hpp"

#include <pthread.h>
#include <rte_eal.h>
#include <rte_errno.h>
#include <rte_lcore.h>
#include <sched.h>
#include <signal.h>
#include <unistd.h>

#include <charconv>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <limits>

#include "drivers/port/config_vars.hpp"
#include "drivers/port/quirks/log_capture.hpp"

namespace viaduct::port {

std::uint64_t detail::tick_scale = 0;

namespace {

constexpr std::size_t kMiB = 1u << 20;

// Bytes in free hugepages of the size that has most. EAL serves one pool from one size, so sizes
// are not added up.
std::size_t free_hugepages() {
  std::size_t most = 0;
  std::error_code ignored;
  for (const auto& entry :
       std::filesystem::directory_iterator("/sys/kernel/mm/hugepages", ignored)) {
    const std::string name = entry.path().filename();  // hugepages-2048kB
    std::size_t kib = 0, count = 0;
    constexpr std::string_view prefix = "hugepages-";
    if (!name.starts_with(prefix)) continue;
    std::from_chars(name.data() + prefix.size(), name.data() + name.size(), kib);
    std::ifstream(entry.path() / "free_hugepages") >> count;
    most = std::max(most, kib * 1024 * count);
  }
  return most;
}

// Without hugepages EAL only reserves addresses. If memory is short, that shows when the pages are
// touched, and then the kernel kills some process. So refuse at once.
void check_memory(std::size_t memory) {
  std::size_t kib = 0;
  std::ifstream file("/proc/meminfo");
  for (std::string name; file >> name && name != "MemAvailable:";)
    file.ignore(std::numeric_limits<std::streamsize>::max(), '\n');
  if (file >> kib && memory / 1024 > kib)
    throw base::SetupError("too little memory: the frames of a port need " +
                           std::to_string(memory / kMiB) + " MiB and " +
                           std::to_string(kib / 1024) + " MiB are available; lower VIADUCT_FRAMES");
}

// As VIADUCT_MEMORY says; `auto` uses hugepages if enough of them are free.
bool use_hugepages(std::size_t memory) {
  const std::string wish = config_vars().text("VIADUCT_MEMORY");
  if (wish == "nohuge") return false;
  const std::size_t have = free_hugepages();
  // Besides the frames EAL wants a little for itself.
  const std::size_t want = memory + 16 * kMiB;
  if (have >= want) return true;
  if (wish == "auto") return false;
  throw base::SetupError("too few hugepages: VIADUCT_MEMORY=huge needs " +
                         std::to_string(want / kMiB) + " MiB and " + std::to_string(have / kMiB) +
                         " MiB are free; run `sysctl -w vm.nr_hugepages=" +
                         std::to_string((want + 2 * kMiB - 1) / (2 * kMiB)) +
                         "` as root, or set VIADUCT_MEMORY=nohuge");
}

// "0@(0,1,4)": one lcore, number 0, that may run on every CPU on which this thread may run now. By
// default EAL would make an lcore, with a thread, for each CPU.
std::string lcore_map(const cpu_set_t& set) {
  std::string map = "0@(";
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
    if (!CPU_ISSET(cpu, &set)) continue;
    if (map.back() != '(') map += ',';
    map += std::to_string(cpu);
  }
  return map += ')';
}

// No quoting: EAL's arguments have no spaces in them.
void append_words(std::vector<std::string>& to, const std::string& text) {
  for (std::size_t at = 0; (at = text.find_first_not_of(' ', at)) != std::string::npos;) {
    const auto end = std::min(text.find(' ', at), text.size());
    to.push_back(text.substr(at, end - at));
    at = end;
  }
}

// 32 fraction bits, see now().
void set_tick_scale() {
  detail::tick_scale = static_cast<std::uint64_t>(static_cast<long double>(1'000'000'000) *
                                                  0x1p32L / rte_get_tsc_hz());
}

// The application's signal handlers must run on the application's threads. EAL's threads inherit
// the mask of the thread that starts them, so meanwhile block all signals but those that a thread's
// own fault raises.
class SignalsBlocked {
 public:
  SignalsBlocked() {
    sigset_t all;
    sigfillset(&all);
    for (const int fault : {SIGBUS, SIGSEGV, SIGILL, SIGFPE, SIGTRAP}) sigdelset(&all, fault);
    pthread_sigmask(SIG_SETMASK, &all, &before_);
  }
  ~SignalsBlocked() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }

 private:
  sigset_t before_;
};

// EAL makes a runtime directory, and the one around it for the machine's first DPDK process, but a
// process that shares nothing puts no file there. rmdir() leaves directories that are in use,
// because they are not empty.
void remove_runtime_directory() {
  const std::filesystem::path directory = rte_eal_get_runtime_dir();
  rmdir(directory.c_str());
  rmdir(directory.parent_path().c_str());
}

std::string remedy(const std::string& reason) {
  if (reason.find("hugepage") != std::string::npos || reason.find("memory") != std::string::npos)
    return "set VIADUCT_MEMORY=nohuge, or free memory";
  if (!config_vars().text("VIADUCT_EAL").empty()) return "check VIADUCT_EAL";
  return "run `viaduct-info` to see what this machine lacks";
}

// rte_eal_init(), with the application's affinity, signals and output kept as they are.
void init_eal(const std::vector<std::string>& arguments) {
  // Never freed: EAL keeps pointers into its arguments.
  static auto* const words = new std::vector<std::string>(arguments);
  words->insert(words->begin(), "viaduct");
  static auto* const argv = new std::vector<char*>;
  for (auto& word : *words) argv->push_back(word.data());
  argv->push_back(nullptr);

  cpu_set_t affinity;
  const bool affine = pthread_getaffinity_np(pthread_self(), sizeof affinity, &affinity) == 0;
  // The socket of telemetry is in the directory until DPDK's exit handler removes it. Exit handlers
  // run in the reverse order, so this one comes first.
  if (config_vars().on("VIADUCT_TELEMETRY")) std::atexit(remove_runtime_directory);
  const LogCapture log;
  int result = 0, error = 0;
  std::string complaint;
  {
    const SignalsBlocked blocked;
    StdioCapture held(words->front());
    result = rte_eal_init(static_cast<int>(words->size()), argv->data());
    error = rte_errno;
    complaint = held.complaint();
  }
  if (affine) pthread_setaffinity_np(pthread_self(), sizeof affinity, &affinity);
  if (result < 0) {
    const std::string reason = !complaint.empty() ? complaint : log.reason(rte_strerror(error));
    throw base::SetupError("DPDK does not start: " + reason + "; " + remedy(reason));
  }
  remove_runtime_directory();
}

}  // namespace

std::recursive_mutex& setup_lock() {
  static std::recursive_mutex mutex;
  return mutex;
}

std::vector<std::string> eal_arguments(const EalOptions& options) {
  std::vector<std::string> words{"--file-prefix=viaduct_" + std::to_string(getpid())};
  // Telemetry is a thread, and a socket that outlives a process that is killed.
  if (!config_vars().on("VIADUCT_TELEMETRY")) words.emplace_back("--no-telemetry");
  if (options.pci_allow.empty()) {
    words.emplace_back("--no-pci");
  } else {
    words.push_back("--allow=" + options.pci_allow);
  }
  if (use_hugepages(options.memory)) {
    // Pages come from memfd: they are taken as needed and go with the process, and no file is left.
    words.emplace_back("--in-memory");
  } else {
    check_memory(options.memory);
    // Pages are taken only when touched, so room for a few more ports costs nothing.
    const std::size_t mib = std::max<std::size_t>(256, options.memory / kMiB * 2 + 64);
    words.insert(words.end(), {"--no-huge", "--no-shconf", "-m", std::to_string(mib)});
  }
  cpu_set_t set;
  if (pthread_getaffinity_np(pthread_self(), sizeof set, &set) == 0 && CPU_COUNT(&set) > 0)
    words.push_back("--lcores=" + lcore_map(set));
  append_words(words, config_vars().text("VIADUCT_EAL"));
  // EAL prints its help and calls exit().
  for (const std::string_view word : words)
    if (word == "-h" || (word.starts_with("--he") && std::string_view("--help").starts_with(word)))
      throw base::SetupError("VIADUCT_EAL=" + std::string(word) +
                             " would end the program; `dpdk-testpmd --help` prints EAL's options");
  return words;
}

bool ensure_eal(const EalOptions& options) {
  static std::string failure;  // EAL cannot be started twice, not even after a failure
  const std::lock_guard lock(setup_lock());
  if (detail::tick_scale != 0) return false;
  if (!failure.empty()) throw base::SetupError(failure);
  // Has the application started EAL? EAL has no function that tells, and a second rte_eal_init()
  // complains on stderr. But the TSC's frequency is known only once EAL is up.
  const bool starting = rte_get_tsc_hz() == 0;
  if (starting) {
    const auto arguments = eal_arguments(options);
    try {
      init_eal(arguments);
    } catch (const base::SetupError& error) {
      failure = error.what();
      throw;
    }
  }
  set_tick_scale();
  return starting;
}

void register_thread() {
  // The destructor of a thread_local object runs when its thread ends.
  struct Registration {
    bool ours = false;
    Registration() {
      // Registration fails when all lcore ids are taken, or the application uses DPDK's
      // multi-process mode. Then the thread works without mempool caches, only more slowly.
      if (rte_lcore_id() == LCORE_ID_ANY) ours = rte_thread_register() == 0;
    }
    ~Registration() {
      if (ours) rte_thread_unregister();
    }
  };
  static thread_local Registration registration;
}

}  // namespace viaduct::port
