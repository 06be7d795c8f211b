// Who runs on the same node, that is: reaches the same memory.
#pragma once

#include <bitset>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace viaduct::mpi {

class Launch;

// What a process tells about itself.
struct NodeCard {
  std::uint64_t node = 0;     // the same for processes that reach each other's memory
  std::uint64_t machine = 0;  // the same for those that share CPUs
  int pid = 0;
  int segment = -1;           // descriptor of its shared memory; -1: none
  std::uint64_t address = 0;  // of that memory in its own address space
  using Cpus = std::bitset<1024>;
  Cpus cpus;  // those it may run on

  std::string text() const;
  // Throws SetupError.
  static NodeCard parse(const std::string& text);
};

class Nodes {
 public:
  static constexpr const char* kKey = "node";  // of a card, at the process manager

  explicit Nodes(Launch& launch);

  // This process's card without the shared memory.
  static NodeCard own();
  void publish(const NodeCard& mine);
  int rank() const { return rank_; }  // this process's
  // Asks the process manager once. Throws SetupError.
  const NodeCard& card(int rank);
  bool same_node(int rank) { return card(rank).node == mine_.node; }
  // Whether on some machine processes of the job share CPUs; all processes come to the same result.
  // Emulated hosts and containers are nodes of their own, but take each other's CPUs. Asks about
  // all processes, unless `one_machine` and this one may use CPUs enough for all.
  bool oversubscribed(bool one_machine);
  // The lowest rank on its node.
  int node_of(int rank);

 private:
  Launch& launch_;
  const int rank_;
  NodeCard mine_;
  std::vector<std::optional<NodeCard>> cards_;
  std::vector<int> node_;  // -1: not known yet
};

}  // namespace viaduct::mpi
