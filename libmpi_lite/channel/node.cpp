#include "libmpi_lite/channel/node.hpp"

#include <sched.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <sstream>

#include "drivers/link/types.hpp"
#include "libmpi_lite/launch/launch.hpp"

namespace viaduct::mpi {
namespace {

constexpr const char* kKey = "node";

// Two processes are on one node if they see each other's /proc and have the same network: emulated
// hosts differ in the latter only.
std::uint64_t own_node() {
  std::string text;
  std::getline(std::ifstream("/proc/sys/kernel/random/boot_id"), text);
  for (const char* space : {"/proc/self/ns/pid", "/proc/self/ns/net"}) {
    struct stat st {};
    if (::stat(space, &st) == 0) text += '/' + std::to_string(st.st_ino);
  }
  return std::hash<std::string>{}(text);
}

std::string own_cpus() {
  cpu_set_t set;
  CPU_ZERO(&set);
  if (::sched_getaffinity(0, sizeof set, &set) != 0) return "";
  std::string digits;
  const int most = std::min(CPU_SETSIZE, 512);  // a card has 900 characters
  for (int at = 0; at < most; at += 4) {
    int digit = 0;
    for (int bit = 0; bit < 4; ++bit) digit |= CPU_ISSET(at + bit, &set) ? 1 << bit : 0;
    digits += "0123456789abcdef"[digit];
  }
  digits.erase(digits.find_last_not_of('0') + 1);
  std::reverse(digits.begin(), digits.end());
  return digits;
}

}  // namespace

std::string NodeCard::text() const {
  std::ostringstream out;
  out << std::hex << node << '.' << std::dec << pid << '.' << segment << '.' << std::hex << address
      << '.' << (cpus.empty() ? "0" : cpus);
  return out.str();
}

NodeCard NodeCard::parse(const std::string& text) {
  NodeCard card;
  std::istringstream in(text);
  char dot[4];
  in >> std::hex >> card.node >> dot[0] >> std::dec >> card.pid >> dot[1] >> card.segment >>
      dot[2] >> std::hex >> card.address >> dot[3] >> card.cpus;
  if (!in)
    throw link::SetupError("a process of the job published '" + text +
                           "' about its node, which cannot be read; run all ranks with the same "
                           "version of the library");
  return card;
}

Nodes::Nodes(Launch& launch)
    : launch_(launch),
      rank_(launch.rank()),
      cards_(static_cast<std::size_t>(launch.size())),
      node_(static_cast<std::size_t>(launch.size()), -1) {}

NodeCard Nodes::own() {
  NodeCard card;
  card.node = own_node();
  card.pid = ::getpid();
  card.cpus = own_cpus();
  return card;
}

void Nodes::publish(const NodeCard& mine) {
  mine_ = mine;
  cards_[static_cast<std::size_t>(rank_)] = mine;
  launch_.put(kKey, mine.text());
}

const NodeCard& Nodes::card(int rank) {
  std::optional<NodeCard>& card = cards_[static_cast<std::size_t>(rank)];
  if (!card) card = NodeCard::parse(launch_.get(rank, kKey));
  return *card;
}

int Nodes::node_of(int rank) {
  int& node = node_[static_cast<std::size_t>(rank)];
  for (int r = 0; node < 0; ++r)
    if (r == rank || card(r).node == card(rank).node) node = r;
  return node;
}

}  // namespace viaduct::mpi
