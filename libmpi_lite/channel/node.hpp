// Which processes run on the same node, that is, can reach each other's memory; and whether the job
// is oversubscribed. Each process publishes a card about its node through the process manager, and
// reads the others' cards when they are needed.
//
// channel/open.cpp owns the one Nodes object of a process. Thread rule: that of Channel.
#pragma once

#include <bitset>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace viaduct::mpi {

class Launch;

// What a process tells the others about itself and its node.
struct NodeInfo {
  std::uint64_t node = 0;     // hash: the same for processes that can reach each other's memory
  std::uint64_t machine = 0;  // hash: the same for processes under one kernel, which share CPUs
  int pid = 0;                // as the processes of its node see it
  int segment = -1;           // file descriptor of its shared memory segment; -1: it has none
  std::uint64_t address = 0;  // of that memory in its own address space
  using Cpus = std::bitset<1024>;
  Cpus cpus;  // CPUs that the process may run on; none: unknown

  // The card as text without blanks: what Launch::put() takes.
  std::string text() const;
  // Throws SetupError if the text is not a card.
  static NodeInfo parse(const std::string& text);
};

class Nodes {
 public:
  static constexpr const char* kKey = "node";  // key of the card at the process manager

  explicit Nodes(Launch& launch);

  // This process's card, without the shared memory segment.
  static NodeInfo own();
  // Makes the card known to the others, from the job's next fence on. Once, before all calls below.
  void publish(const NodeInfo& mine);
  int rank() const { return rank_; }  // this process's
  // The card of that rank. Asks the process manager at the first call for a rank, which blocks for
  // the answer; later calls do not. Throws SetupError.
  const NodeInfo& card(int rank);
  bool same_node(int rank) { return card(rank).node == mine_.node; }
  // Whether on some machine processes of the job have to share CPUs; all processes of the job come
  // to the same result. Emulated hosts and containers are nodes of their own, but take each other's
  // CPUs. `one_machine`: the launcher has started all processes on one host. The call reads the
  // cards of all processes, unless this is so and this process may use enough CPUs for all of them.
  // Throws SetupError.
  bool oversubscribed(bool one_machine);
  // A number for the node of that rank: the lowest rank on it. Throws SetupError.
  int node_of(int rank);

 private:
  Launch& launch_;
  const int rank_;
  NodeInfo mine_;
  std::vector<std::optional<NodeInfo>> cards_;  // by rank; those that have been read
  std::vector<int> node_;  // by rank; what node_of() has found, -1: not known yet
};

}  // namespace viaduct::mpi
