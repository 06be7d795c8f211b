#include "drivers/port/eal.hpp"

#include <pthread.h>
#include <rte_eal.h>
#include <rte_errno.h>
#include <rte_lcore.h>
#include <sched.h>
#include <signal.h>
#include <unistd.h>

#include <charconv>
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

// Bytes in free hugepages of the size EAL will use (it takes the largest first, and serves one pool
// from one size).
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

// EAL only reserves addresses, and the pages would be missed when they are touched: by whichever
// process the kernel ends then.
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

// "0@(0,1,4)": EAL's one lcore may run wherever this thread may run now.
std::string lcore_map(const cpu_set_t& set) {
  std::string map = "0@(";
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
    if (!CPU_ISSET(cpu, &set)) continue;
    if (map.back() != '(') map += ',';
    map += std::to_string(cpu);
  }
  return map += ')';
}

void append_words(std::vector<std::string>& to, const std::string& text) {
  for (std::size_t at = 0; (at = text.find_first_not_of(' ', at)) != std::string::npos;) {
    const auto end = std::min(text.find(' ', at), text.size());
    to.push_back(text.substr(at, end - at));
    at = end;
  }
}

void set_tick_scale() {
  detail::tick_scale = static_cast<std::uint64_t>(static_cast<long double>(1'000'000'000) *
                                                  0x1p32L / rte_get_tsc_hz());
}

// The application's handlers must run on the application's threads: what EAL starts inherits a
// mask in which every signal is blocked that is not a fault of the thread itself.
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

// Nothing is ever put into the runtime directory of a process that shares nothing, but EAL makes
// it, and the one around it for the machine's first DPDK process. Those that are in use are not
// empty and stay.
void remove_runtime_directory(const std::filesystem::path& directory) {
  rmdir(directory.c_str());
  rmdir(directory.parent_path().c_str());
}

std::string remedy(const std::string& reason) {
  if (reason.find("hugepage") != std::string::npos || reason.find("memory") != std::string::npos)
    return "set VIADUCT_MEMORY=nohuge, or free memory";
  if (!config_vars().text("VIADUCT_EAL").empty()) return "check VIADUCT_EAL";
  return "run `viaduct-info` to see what this machine lacks";
}

void start(const std::vector<std::string>& arguments) {
  // Never freed: EAL keeps pointers into its arguments.
  static auto* const words = new std::vector<std::string>(arguments);
  words->insert(words->begin(), "viaduct");
  static auto* const argv = new std::vector<char*>;
  for (auto& word : *words) argv->push_back(word.data());
  argv->push_back(nullptr);

  cpu_set_t affinity;
  const bool affine = pthread_getaffinity_np(pthread_self(), sizeof affinity, &affinity) == 0;
  const LogCapture log;
  int result = 0, error = 0;
  std::string complaint;
  {
    const SignalsBlocked blocked;
    StdioHeld held(words->front());
    result = rte_eal_init(static_cast<int>(words->size()), argv->data());
    error = rte_errno;
    complaint = held.complaint();
  }
  if (affine) pthread_setaffinity_np(pthread_self(), sizeof affinity, &affinity);
  if (result < 0) {
    const std::string reason = !complaint.empty() ? complaint : log.reason(rte_strerror(error));
    throw base::SetupError("DPDK does not start: " + reason + "; " + remedy(reason));
  }
  remove_runtime_directory(rte_eal_get_runtime_dir());
}

}  // namespace

std::recursive_mutex& setup_lock() {
  static std::recursive_mutex mutex;
  return mutex;
}

std::vector<std::string> eal_arguments(const EalOptions& options) {
  std::vector<std::string> words{"--no-telemetry",
                                 "--file-prefix=viaduct_" + std::to_string(getpid())};
  if (options.pci_allow.empty()) {
    words.emplace_back("--no-pci");
  } else {
    words.push_back("--allow=" + options.pci_allow);
  }
  if (use_hugepages(options.memory)) {
    // Pages come from memfd, are taken as they are needed and go with the process.
    words.emplace_back("--in-memory");
  } else {
    check_memory(options.memory);
    // Pages are taken when touched: room for a few more ports is free.
    const std::size_t mib = std::max<std::size_t>(256, options.memory / kMiB * 2 + 64);
    words.insert(words.end(), {"--no-huge", "--no-shconf", "-m", std::to_string(mib)});
  }
  cpu_set_t set;
  if (pthread_getaffinity_np(pthread_self(), sizeof set, &set) == 0 && CPU_COUNT(&set) > 0)
    words.push_back("--lcores=" + lcore_map(set));
  append_words(words, config_vars().text("VIADUCT_EAL"));
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
  // EAL has no question for this, and being asked to start twice it complains on stderr. It knows
  // the TSC's frequency once it is up.
  const bool starting = rte_get_tsc_hz() == 0;
  if (starting) {
    const auto arguments = eal_arguments(options);
    try {
      start(arguments);
    } catch (const base::SetupError& error) {
      failure = error.what();
      throw;
    }
  }
  set_tick_scale();
  return starting;
}

void register_thread() {
  struct Registration {
    bool ours = false;
    Registration() {
      // Fails when all lcore numbers are taken or the application uses DPDK's multi-process mode:
      // the thread then works without caches, only more slowly.
      if (rte_lcore_id() == LCORE_ID_ANY) ours = rte_thread_register() == 0;
    }
    ~Registration() {
      if (ours) rte_thread_unregister();
    }
  };
  static thread_local Registration registration;
}

}  // namespace viaduct::port
