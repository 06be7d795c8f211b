// Nodes with a driver each on the simulated network, for the tests of the drivers. Node is the
// type of the driver's tests: constructible from (port, link config, driver config), with `port`,
// `link` and poll(now).
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "drivers/link/link.hpp"
#include "drivers/sim/sim_network.hpp"
#include "tests/link/sim_schedule.hpp"

namespace viaduct::link::test {

// A node's memory that others write into and read from, with a pattern of its own for each seed.
struct NodeMemory {
  explicit NodeMemory(std::size_t size) : memory(size) {}
  void fill(std::size_t offset, std::size_t length, std::uint32_t seed) {
    for (std::size_t i = 0; i < length; ++i) memory[offset + i] = pattern(i, seed);
  }
  bool holds(std::size_t offset, std::size_t length, std::uint32_t seed) const {
    for (std::size_t i = 0; i < length; ++i)
      if (memory[offset + i] != pattern(i, seed)) return false;
    return true;
  }
  static std::byte pattern(std::size_t i, std::uint32_t seed) {
    return static_cast<std::byte>(((i + 1) * 2654435761u + seed * 40503u) >> 13);
  }

  std::vector<std::byte> memory;
};

template <class DriverConfig>
struct BedConfigOf {
  std::size_t nodes = 2;
  sim::SimConfig net{};
  sim::SimPortConfig port{};
  LinkConfig link{};
  DriverConfig driver{};
  PauseConfig pauses{};
};

template <class Node, class DriverConfig>
class BedOf {
 public:
  explicit BedOf(const BedConfigOf<DriverConfig>& config = {})
      : net(config.net),
        schedule(net, [this](std::size_t i, Time now) { nodes_[i]->poll(now); }),
        config_(config) {
    schedule.set_pauses(config.pauses);
    for (std::size_t i = 0; i < config.nodes; ++i)
      nodes_.push_back(make(net.add_port(config.port)));
  }
  ~BedOf() { net.hook = nullptr; }
  Node& operator[](std::size_t i) { return *nodes_[i]; }
  std::size_t size() const { return nodes_.size(); }
  PeerId peer(std::size_t at, std::size_t of) {
    return nodes_[at]->link.peer(nodes_[of]->port.address());
  }
  Time now() const { return net.now(); }
  // The same as node `at` reads it: it may lose its CPU (BedConfigOf::pauses).
  Time now(std::size_t at) { return schedule.read_clock(at); }

  // Polls everybody and lets time pass until `done` says so; false when `limit` came first.
  bool run(const std::function<bool()>& done, Duration limit = std::chrono::seconds{2}) {
    const Time end = net.now() + limit;
    while (!done()) {
      if (net.now() >= end) return false;
      poll();
      net.step(net.now() + std::chrono::microseconds{5});
    }
    return true;
  }
  void run_for(Duration time) {
    run([] { return false; }, time);
  }
  void poll() { schedule.poll_all(nodes_.size()); }
  // The node is gone without a word: nothing of it reaches anybody any more.
  void vanish(std::size_t i) {
    for (auto& other : nodes_)
      if (other != nodes_[i]) net.partition(nodes_[i]->port, other->port);
  }
  // It dies without a word and starts anew at the same port.
  void restart(std::size_t i) {
    sim::SimPort& port = nodes_[i]->port;
    vanish(i);
    nodes_[i].reset();
    for (auto& other : nodes_)
      if (other) net.heal(port, other->port);
    nodes_[i] = make(port);
  }

  sim::SimNetwork net;
  SimSchedule schedule;

 private:
  std::unique_ptr<Node> make(sim::SimPort& port) {
    LinkConfig link = config_.link;
    link.seed = 1000 * (config_.net.faults.seed + 1) + lives_++;
    return std::make_unique<Node>(port, link, config_.driver);
  }

  const BedConfigOf<DriverConfig> config_;
  std::uint64_t lives_ = 0;
  std::vector<std::unique_ptr<Node>> nodes_;
};

}  // namespace viaduct::link::test
