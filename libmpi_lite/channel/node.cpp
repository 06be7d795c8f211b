// Node cards: what makes two processes neighbours, how a card is written as text, and the count of
// CPUs per machine. shm_segment.cpp uses the cards to reach the memory of neighbours.
#include "libmpi_lite/channel/node.hpp"

#include <sched.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <fstream>
#include <string_view>
#include <unordered_map>

#include "drivers/link/types.hpp"
#include "libmpi_lite/launch/launch.hpp"

namespace viaduct::mpi {
namespace {

// Names the kernel that runs here: the boot id differs between machines and between boots.
std::string own_machine() {
  std::string text;
  std::getline(std::ifstream("/proc/sys/kernel/random/boot_id"), text);
  return text;
}

// Names the node. Two processes are on one node if they see each other's /proc (PID namespace) and
// have the same network (network namespace). Emulated hosts on one machine differ in the latter
// only.
std::string own_node(const std::string& machine) {
  std::string text = machine;
  for (const char* space : {"/proc/self/ns/pid", "/proc/self/ns/net"}) {
    struct stat st {};
    if (::stat(space, &st) == 0) text += '/' + std::to_string(st.st_ino);
  }
  return text;
}

// The CPU affinity mask. None where the kernel has more CPUs than a cpu_set_t can name.
NodeInfo::Cpus own_cpus() {
  NodeInfo::Cpus cpus;
  cpu_set_t set;
  CPU_ZERO(&set);
  if (::sched_getaffinity(0, sizeof set, &set) != 0) return cpus;
  for (std::size_t cpu = 0; cpu < cpus.size() && cpu < CPU_SETSIZE; ++cpu)
    cpus[cpu] = CPU_ISSET(cpu, &set);
  return cpus;
}

// A CPU set is written as hexadecimal digits, CPU 0 in the lowest bit of the last digit.
constexpr std::string_view kDigits = "0123456789abcdef";

std::string digits_of(const NodeInfo::Cpus& cpus) {
  std::string digits;
  for (std::size_t at = 0; at < cpus.size(); at += 4) {
    std::size_t digit = 0;
    for (std::size_t bit = 0; bit < 4; ++bit) digit |= std::size_t{cpus[at + bit]} << bit;
    digits += kDigits[digit];
  }
  digits.erase(std::max(digits.find_last_not_of('0') + 1, std::size_t{1}));
  std::reverse(digits.begin(), digits.end());
  return digits;
}

bool read_digits(std::string_view digits, NodeInfo::Cpus& cpus) {
  if (digits.empty() || digits.size() > cpus.size() / 4) return false;
  for (const char c : digits) {
    const std::size_t digit = kDigits.find(c);
    if (digit == kDigits.npos) return false;
    cpus = cpus << 4 | NodeInfo::Cpus(digit);
  }
  return true;
}

// A number and a dot. Written with to_chars, because streams write numbers as the program's locale
// says, and the ranks may have different locales.
template <class T>
std::string field(T number, int base) {
  char text[24];
  char* const end = std::to_chars(text, text + sizeof text, number, base).ptr;
  return std::string(text, end) + '.';
}

template <class T>
bool take_field(std::string_view& text, T& number, int base) {
  const char* const last = text.data() + text.size();
  const auto [end, error] = std::from_chars(text.data(), last, number, base);
  if (error != std::errc() || end == last || *end != '.') return false;
  text.remove_prefix(static_cast<std::size_t>(end - text.data()) + 1);
  return true;
}

}  // namespace

std::string NodeInfo::text() const {
  return field(node, 16) + field(machine, 16) + field(pid, 10) + field(segment, 10) +
         field(address, 16) + digits_of(cpus);
}

NodeInfo NodeInfo::parse(const std::string& text) {
  NodeInfo card;
  std::string_view rest = text;
  if (!take_field(rest, card.node, 16) || !take_field(rest, card.machine, 16) ||
      !take_field(rest, card.pid, 10) || !take_field(rest, card.segment, 10) ||
      !take_field(rest, card.address, 16) || !read_digits(rest, card.cpus))
    throw base::SetupError("a process of the job published '" + text +
                           "' about its node, which cannot be read; run all ranks with the same "
                           "version of the library");
  return card;
}

Nodes::Nodes(Launch& launch)
    : launch_(launch),
      rank_(launch.rank()),
      cards_(static_cast<std::size_t>(launch.size())),
      node_(static_cast<std::size_t>(launch.size()), -1) {}

NodeInfo Nodes::own() {
  NodeInfo card;
  const std::string machine = own_machine();
  card.node = std::hash<std::string>{}(own_node(machine));
  card.machine = std::hash<std::string>{}(machine);
  card.pid = ::getpid();
  card.cpus = own_cpus();
  return card;
}

void Nodes::publish(const NodeInfo& mine) {
  mine_ = mine;
  cards_[static_cast<std::size_t>(rank_)] = mine;
  launch_.put(kKey, mine.text());
}

const NodeInfo& Nodes::card(int rank) {
  std::optional<NodeInfo>& card = cards_[static_cast<std::size_t>(rank)];
  if (!card) card = NodeInfo::parse(launch_.get(rank, kKey));
  return *card;
}

bool Nodes::oversubscribed(bool one_machine) {
  struct Use {
    NodeInfo::Cpus cpus;
    std::size_t processes = 0;
  };
  // All processes are on this machine, and it has a CPU for each. The others come to the same
  // result, whatever their own affinity masks are: the union that they count contains this mask.
  if (one_machine && mine_.cpus.count() >= cards_.size()) return false;
  std::unordered_map<std::uint64_t, Use> machines;
  for (int r = 0; r < static_cast<int>(cards_.size()); ++r) {
    Use& use = machines[card(r).machine];
    use.cpus |= card(r).cpus;
    ++use.processes;
  }
  return std::any_of(machines.begin(), machines.end(), [](const auto& entry) {
    const Use& use = entry.second;
    return use.cpus.any() && use.cpus.count() < use.processes;  // no CPUs: unknown
  });
}

int Nodes::node_of(int rank) {
  int& node = node_[static_cast<std::size_t>(rank)];
  // Ends at `rank` itself at the latest.
  for (int r = 0; node < 0; ++r)
    if (r == rank || card(r).node == card(rank).node) node = r;
  return node;
}

}  // namespace viaduct::mpi
