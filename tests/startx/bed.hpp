// Nodes with a NIU each on the simulated network, for the tests of StarT-X.
#pragma once

#include <gtest/gtest.h>

#include <vector>

#include "drivers/startx_emul/niu.hpp"
#include "tests/support/driver_bed.hpp"

namespace viaduct::startx {

struct SimNodeConfig {
  NiuConfig niu;
  std::size_t memory = 1 << 20;
};

struct SimNode : link::test::NodeMemory {
  SimNode(sim::SimPort& p, const link::LinkConfig& link_config, const SimNodeConfig& config)
      : NodeMemory(config.memory), port(p), link(p, link_config), niu(link, config.niu) {
    region = niu.rdma().register_memory(memory);
  }
  void poll(link::Time now) { niu.poll(now); }
  std::uint64_t count(Counter c) const { return niu.counters()[c]; }
  Rdma<sim::SimPort>& rdma() { return niu.rdma(); }
  RegionBytes bytes(std::uint64_t offset, std::uint64_t length) const {
    return {region, offset, length};
  }
  // All completions there are.
  std::vector<Completion> completions() {
    std::vector<Completion> all;
    for (Completion c; rdma().next_completion(c);) all.push_back(c);
    return all;
  }

  sim::SimPort& port;
  link::Link<sim::SimPort> link;
  Niu<sim::SimPort> niu;
  RegionId region;
};

using BedConfig = link::test::BedConfigOf<SimNodeConfig>;
using Bed = link::test::BedOf<SimNode, SimNodeConfig>;

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
