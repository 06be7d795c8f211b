// Makes plans: finds out each rank's node from the runtime (or from VIADUCT_NODE_RANKS, for tests),
// and sorts the ranks by node.
#include "libmpi_lite/collective/plan.hpp"

#include <unistd.h>

#include <string>
#include <unordered_map>

#include "libmpi_lite/core/config_vars.hpp"
#include "libmpi_lite/transfer/engine.hpp"
#include "libmpi_lite/transfer/process.hpp"

namespace viaduct::mpi {

Plan::Plan(std::span<const int> names, int me, bool oversubscribed, bool two_stage) {
  std::unordered_map<int, int> number;  // of a node, by its name
  std::vector<int> count;
  for (std::size_t rank = 0; rank < names.size(); ++rank) {
    const auto [entry, fresh] = number.try_emplace(names[rank], nodes());
    const int node = entry->second;
    if (fresh) {
      leaders_.push_back(static_cast<int>(rank));
      count.push_back(0);
    }
    node_of_.push_back(node);
    local_index_.push_back(count[at(node)]++);
  }

  // A counting sort of the ranks by node.
  starts_.push_back(0);
  for (const int n : count) starts_.push_back(starts_.back() + n);
  by_node_.resize(names.size());
  for (std::size_t rank = 0; rank < names.size(); ++rank) {
    const int place = starts_[at(node_of_[rank])] + local_index_[rank];
    by_node_[at(place)] = static_cast<int>(rank);
    if (place != static_cast<int>(rank)) ordered_ = false;
  }

  my_node_ = node_of_[at(me)];
  oversubscribed_ = oversubscribed;
  // On a single node, stages are worth while only where waits are dear: then the ranks report to
  // one and hear from it, by a star, which is two waits for each rank. Between nodes they are worth
  // while if some node has several ranks.
  staged_ = nodes() == 1 ? oversubscribed_ : two_stage && names.size() > leaders_.size();
}

namespace {

// Nodes of VIADUCT_NODE_RANKS are only pretended; each counts as a machine of its own.
bool is_oversubscribed(int node_ranks) {
  const std::string said = config_vars().text("VIADUCT_OVERSUBSCRIBED");
  if (said != "auto") return said == "on";
  return node_ranks > 0 ? node_ranks > sysconf(_SC_NPROCESSORS_ONLN)
                        : Transfer::self().config().oversubscribed;
}

}  // namespace

const Plan& make_plan(Comm& comm) {
  Process& process = Process::self();
  std::vector<int> names(static_cast<std::size_t>(comm.size()));
  const auto node_ranks = static_cast<int>(config_vars().number("VIADUCT_NODE_RANKS"));
  // Do not ask for nodes that are known: each question may be a message to the process manager.
  const bool one_node = process.launch().local_size() == process.size();
  for (int rank = 0; rank < comm.size(); ++rank) {
    int& name = names[static_cast<std::size_t>(rank)];
    if (node_ranks > 0)
      name = comm.peer(rank) / node_ranks;
    else if (!one_node)
      name = process.node_of(comm.peer(rank));
  }
  comm.plan = std::make_unique<Plan>(names, comm.rank(), is_oversubscribed(node_ranks),
                                     config_vars().on("VIADUCT_TWO_STAGE"));
  return static_cast<const Plan&>(*comm.plan);
}

}  // namespace viaduct::mpi
