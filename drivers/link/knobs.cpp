#include "drivers/link/knobs.hpp"

#include <sys/random.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <limits>

#include "drivers/link/fault.hpp"
#include "drivers/link/frame.hpp"
#include "drivers/link/port_plan.hpp"

namespace viaduct::link {
namespace {

constexpr std::string_view kPrefix = "VIADUCT_";
constexpr std::string_view kGuestPrefix = "VIADUCT_VM_";  // what viaduct-vm tells those in a guest
constexpr std::string_view kViplPrefix = "VIADUCT_VIPL_";

constexpr Accepted kMtu{.words = "0", .least = kMinMtu, .most = kMaxMtu};
constexpr Accepted kFaults{.parse = [](std::string_view text) { FaultSpec::parse(text); }};
constexpr Accepted kEagerNet = whole_number(0, 1u << 20);

constexpr std::array kTable{
    Knob{"VIADUCT_JOB", "0", "",
         "job key, a number or any text; only ports of one job talk (MPI jobs draw another one, "
         "too)"},
    Knob{"VIADUCT_PORTS", "", "",
         "ports of this host's ranks, separated by ';'; {n} becomes the local rank"},
    Knob{"VIADUCT_FRAMES", "8191", "frames", "pool that a port sends from and receives into",
         whole_number(512, 1u << 24)},
    Knob{"VIADUCT_MTU", "0", "bytes", "MTU to ask for; 0: what the device has", kMtu},
    Knob{"VIADUCT_RX_DESCRIPTORS", "1024", "frames", "what a port can receive while not polled",
         whole_number(64, 16384)},
    Knob{"VIADUCT_RX_INTERRUPT", "on", "",
         "a PCI port wakes who sleeps, where its driver can; off: such a process naps", kOnOff},
    Knob{"VIADUCT_MEMORY", "auto", "",
         "huge: hugepages; nohuge: ordinary pages; auto: hugepages if enough are free",
         one_of("auto|huge|nohuge")},
    Knob{"VIADUCT_EAL", "", "", "further arguments for DPDK's EAL, separated by spaces"},
    Knob{"VIADUCT_CHECKSUM", "on", "", "CRC32C of every frame; off must be off on both sides",
         kOnOff},
    Knob{"VIADUCT_ACK_DELAY_US", "10", "us", "longest wait of an acknowledgement for company",
         whole_number(0, 1'000'000)},
    Knob{"VIADUCT_MIN_TIMEOUT_US", "5", "us", "floor of the measured retransmission timeout",
         whole_number(1, 1'000'000)},
    Knob{"VIADUCT_DEAD_AFTER_MS", "5000", "ms", "silence that ends a peer",
         whole_number(1, 3'600'000)},
    Knob{"VIADUCT_MAX_WINDOW", "256", "frames",
         "most in flight in one lane to one peer, and at most half of what the receiver has for it",
         whole_number(LinkConfig().idle_window, kMaxWindow)},
    Knob{"VIADUCT_CHANNEL", "mbcf", "", "what carries MPI messages between hosts: mbcf or startx",
         one_of("mbcf|startx")},
    Knob{"VIADUCT_SHM", "on", "", "shared memory between MPI processes of one node", kOnOff},
    Knob{"VIADUCT_CMA", "on", "",
         "long MPI messages within a node are copied from process to process; off: through a ring",
         kOnOff},
    Knob{
        "VIADUCT_WRITE_PROTOCOL", "on", "",
        "MPI receives tell their senders where to write before the message is sent (between nodes)",
        kOnOff},
    Knob{"VIADUCT_STATS", "off", "",
         "MPI_Finalize prints what went which way, and what was dropped or sent again", kOnOff},
    Knob{"VIADUCT_HANG_REPORT_SECONDS", "60", "s",
         "an MPI call that has waited so long says what for, once; 0: never",
         whole_number(0, 1'000'000)},
    Knob{"VIADUCT_DUMP_SIGNAL", "SIGUSR1", "",
         "signal on which an MPI process prints its state, unless the program uses it",
         one_of("SIGUSR1|SIGUSR2|off")},
    Knob{"VIADUCT_EAGER_SHM", "16384", "bytes",
         "MPI messages up to this go through a ring, longer ones are copied by both processes",
         whole_number(0, kMostEagerShm)},
    Knob{"VIADUCT_EAGER_MBCF", "16384", "bytes",
         "MPI messages up to this go through a FIFO, longer ones by Remote Write", kEagerNet},
    Knob{"VIADUCT_EAGER_STARTX", "1024", "bytes",
         "MPI messages up to this go in packets, longer ones by remote DMA", kEagerNet},
    Knob{"VIADUCT_TWO_STAGE", "on", "",
         "MPI collectives work within each node and between nodes; off: over all ranks at once",
         kOnOff},
    Knob{"VIADUCT_NODE_RANKS", "0", "ranks",
         "MPI collectives count so many ranks to a node, for trials; 0: those that are on it",
         whole_number(0, std::numeric_limits<int>::max())},
    Knob{"VIADUCT_MBCF_FIFO", "1048576", "bytes", "FIFO that an MPI process receives into",
         whole_number(64u << 10, 1u << 30)},
    Knob{"VIADUCT_FAULTS", "", "",
         "faults on what a port sends, e.g. loss=1%,dup=0.1%,reorder=1%,corrupt=0.1%,seed=7",
         kFaults},
    Knob{"VIADUCT_PCAP", "", "",
         "file that every frame sent or received is written to; {pid} and {port} are filled in"},
};

std::uint64_t random_number() {
  std::uint64_t value = 0;
  while (value == 0) {
    if (getrandom(&value, sizeof value, 0) != sizeof value && errno != EINTR)
      throw SetupError(std::string("no random numbers: getrandom: ") + std::strerror(errno) +
                       "; allow that system call (seccomp?)");
  }
  return value;
}

std::string expand(std::string_view text, std::string_view what, std::string_view with) {
  std::string out(text);
  for (std::size_t at = 0; (at = out.find(what, at)) != std::string::npos; at += with.size())
    out.replace(at, what.size(), with);
  return out;
}

}  // namespace

const KnobTable& knobs() {
  static constexpr KnobTable table(kTable);
  return table;
}

std::string knob_text(std::string_view name) {
  return knobs().text(name);
}

std::uint64_t knob_number(std::string_view name) {
  return knobs().number(name);
}

bool knob_switch(std::string_view name) {
  return knobs().on(name);
}

bool knob_is_set(std::string_view name) {
  return knobs().is_set(name);
}

// FNV-1a: every rank must get the same key from the same text, on any machine.
std::uint64_t job_key(std::string_view text) {
  if (const auto number = parse_whole_number(text)) return *number;
  std::uint64_t hash = 0xcbf29ce484222325u;
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3u;
  return hash;
}

std::vector<std::string> unknown_knobs(bool with_vipl) {
  std::vector<std::string> unknown;
  for (char** entry = environ; entry != nullptr && *entry != nullptr; ++entry) {
    const std::string_view text(*entry);
    if (!text.starts_with(kPrefix)) continue;
    if (text.starts_with(kGuestPrefix)) continue;
    if (text.starts_with(kViplPrefix) && !with_vipl) continue;
    const auto name = text.substr(0, text.find('='));
    if (!knobs().has(name)) unknown.emplace_back(name);
  }
  std::sort(unknown.begin(), unknown.end());
  return unknown;
}

std::vector<std::string> port_list() {
  std::vector<std::string> ports;
  const std::string text = knob_text("VIADUCT_PORTS");
  for (std::size_t at = 0; at < text.size();) {
    const auto end = std::min(text.find(';', at), text.size());
    const auto first = text.find_first_not_of(" \t\n", at);
    if (first < end)
      ports.push_back(text.substr(first, text.find_last_not_of(" \t\n", end - 1) + 1 - first));
    at = end + 1;
  }
  return ports;
}

std::string port_for_rank(unsigned rank) {
  const auto ports = port_list();
  if (ports.empty())
    throw SetupError(
        "this host has no ports: set VIADUCT_PORTS, for example "
        "VIADUCT_PORTS='net_af_packet0,iface=p{n}' or '0000:3b:02.0;0000:3b:02.1'");
  const bool pattern = ports.size() == 1 && ports[0].find("{n}") != std::string::npos;
  if (!pattern && rank >= ports.size())
    throw SetupError("VIADUCT_PORTS names " + std::to_string(ports.size()) +
                     " ports, but local rank " + std::to_string(rank) +
                     " needs one too; add ports (or use {n}) or start fewer ranks on this host");
  return expand(ports[pattern ? 0 : rank], "{n}", std::to_string(rank));
}

LinkConfig link_config_from_environment() {
  using std::chrono::microseconds;
  using std::chrono::milliseconds;
  // All, because some are read only later, where a wrong one would be a surprise.
  knobs().check();
  LinkConfig config;
  config.job_key = job_key(knob_text("VIADUCT_JOB"));
  config.incarnation = random_number();
  config.seed = random_number();
  config.checksum = knob_switch("VIADUCT_CHECKSUM");
  config.max_window = static_cast<std::uint32_t>(knob_number("VIADUCT_MAX_WINDOW"));
  config.ack_delay = microseconds(knob_number("VIADUCT_ACK_DELAY_US"));
  config.min_timeout = microseconds(knob_number("VIADUCT_MIN_TIMEOUT_US"));
  config.max_timeout = std::max(config.max_timeout, config.min_timeout);
  config.dead_after = milliseconds(knob_number("VIADUCT_DEAD_AFTER_MS"));
  return config;
}

}  // namespace viaduct::link
