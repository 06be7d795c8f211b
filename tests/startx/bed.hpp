// Nodes with a NIU each on the simulated network, for the tests in this room.
#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <vector>

#include "drivers/link/sim_net.hpp"
#include "drivers/startx_emul/niu.hpp"

namespace viaduct::startx {

struct SimNode {
  SimNode(link::SimPort& p, const link::LinkConfig& link_config, const NiuConfig& config,
          std::size_t memory_size)
      : port(p), link(p, link_config), niu(link, config), memory(memory_size) {
    region = niu.rdma().register_memory(memory);
  }
  std::uint64_t count(Counter c) const { return niu.counters()[c]; }
  Rdma<link::SimPort>& rdma() { return niu.rdma(); }
  RegionBytes bytes(std::uint64_t offset, std::uint64_t length) const {
    return {region, offset, length};
  }
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
  // All completions there are.
  std::vector<Completion> completions() {
    std::vector<Completion> all;
    for (Completion c; rdma().next_completion(c);) all.push_back(c);
    return all;
  }

  link::SimPort& port;
  link::Link<link::SimPort> link;
  Niu<link::SimPort> niu;
  std::vector<std::byte> memory;
  RegionId region;
};

struct BedConfig {
  std::size_t nodes = 2;
  link::SimConfig net;
  link::SimPortConfig port;
  link::LinkConfig link;
  NiuConfig niu;
  std::size_t memory = 1 << 20;
};

class Bed {
 public:
  explicit Bed(const BedConfig& config = {}) : net(config.net) {
    for (std::size_t i = 0; i < config.nodes; ++i) {
      link::LinkConfig link = config.link;
      link.seed = 1000 * (config.net.faults.seed + 1) + i;
      nodes_.push_back(
          std::make_unique<SimNode>(net.add_port(config.port), link, config.niu, config.memory));
    }
  }
  SimNode& operator[](std::size_t i) { return *nodes_[i]; }
  std::size_t size() const { return nodes_.size(); }
  link::PeerId peer(std::size_t at, std::size_t of) {
    return nodes_[at]->link.peer(nodes_[of]->port.address());
  }
  link::Time now() const { return net.now(); }

  // Polls everybody and lets time pass until `done` says so; false when `limit` came first.
  bool run(const std::function<bool()>& done, link::Duration limit = std::chrono::seconds{2}) {
    const link::Time end = net.now() + limit;
    while (!done()) {
      if (net.now() >= end) return false;
      poll();
      net.step(net.now() + std::chrono::microseconds{5});
    }
    return true;
  }
  void run_for(link::Duration time) {
    run([] { return false; }, time);
  }
  void poll() {
    for (auto& node : nodes_)
      if (node) node->niu.poll(net.now());
  }
  // The node is gone without a word: nothing of it reaches anybody any more.
  void vanish(std::size_t i) {
    for (auto& other : nodes_)
      if (other && other != nodes_[i]) net.partition(nodes_[i]->port, other->port);
  }

  link::SimNet net;

 private:
  std::vector<std::unique_ptr<SimNode>> nodes_;
};

inline Packet packet(std::uint32_t tag, std::uint8_t words = 2,
                     link::Order order = link::Order::ordered) {
  Packet p;
  p.tag = tag;
  p.words = words;
  p.order = order;
  for (std::uint32_t i = 0; i < kMaxWords; ++i) p.payload[i] = tag * 31 + i;
  return p;
}

inline bool intact(const Received& r) {
  for (std::uint32_t i = 0; i < r.words; ++i)
    if (r.payload[i] != r.tag * 31 + i) return false;
  return true;
}

}  // namespace viaduct::startx
