// Two drivers in this process on a simulated, lossy network: what rte_rawdev_selftest() runs on.
// Touches no device. Time is simulated as well, and the faults are seeded, so that a run can
// be repeated. Thread rule: one thread uses a pair.
#pragma once

#include <functional>
#include <string>

#include "drivers/link/link.hpp"
#include "drivers/sim/sim_network.hpp"

namespace viaduct::rawdev {

// `Driver` is constructed from a link and a `Config` and has poll(now). The pair owns the network,
// both links and both drivers.
template <class Driver, class Config>
class SelftestPair {
 public:
  explicit SelftestPair(const Config& config = {})
      : net_(faulty()), sides_{Side(net_, 1, config), Side(net_, 2, config)} {}

  Driver& operator[](std::size_t i) { return sides_[i].driver; }
  // The peer at the other side, as driver i names it.
  link::PeerId other(std::size_t i) { return sides_[i].link.peer(sides_[1 - i].port.address()); }
  link::Time now() const { return net_.now(); }
  std::uint64_t lost_frames() const { return net_.faults().lost; }

  // Polls both sides until `done` returns true. False: it did not within two simulated seconds.
  bool wait(const std::function<bool()>& done) {
    const link::Time end = net_.now() + std::chrono::seconds{2};
    while (!done()) {
      if (net_.now() > end) return false;
      for (Side& side : sides_) side.driver.poll(net_.now());
      net_.step(net_.now() + std::chrono::microseconds{10});
    }
    return true;
  }

 private:
  // A port, its link and its driver. The network owns the port.
  struct Side {
    Side(sim::SimNetwork& net, std::uint64_t seed, const Config& config)
        : port(net.add_port()), link(port, link_config(seed)), driver(link, config) {}
    sim::SimPort& port;
    link::Link<sim::SimPort> link;
    Driver driver;
  };
  static sim::SimConfig faulty() {
    sim::SimConfig c;
    c.faults = {.loss = 0.02, .duplicate = 0.01, .reorder = 0.02, .corrupt = 0.01, .seed = 1};
    return c;
  }
  static link::LinkConfig link_config(std::uint64_t seed) {
    link::LinkConfig c;
    c.seed = seed;
    c.max_peers = 4;
    return c;
  }

  sim::SimNetwork net_;
  Side sides_[2];
};

// Runs a `Test`, which has run() (empty, or what failed) and lost_frames(). Empty when all is well.
// A run in which no frame was lost fails: it would not have tested loss recovery.
template <class Test>
std::string run_selftest() {
  try {
    Test test;
    std::string wrong = test.run();
    if (wrong.empty() && test.lost_frames() == 0)
      return "no frame was lost: recovery was not tested";
    return wrong;
  } catch (const std::exception& error) {
    return error.what();
  }
}

}  // namespace viaduct::rawdev
