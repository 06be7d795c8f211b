// Two drivers in this process on a simulated, lossy network: what rte_rawdev_selftest() runs on.
// Touches no device.
#pragma once

#include <functional>
#include <string>

#include "drivers/link/link.hpp"
#include "drivers/sim/sim_network.hpp"

namespace viaduct::rawdev {

// `Driver` is made of a link and a `Config` and has poll(now).
template <class Driver, class Config>
class SelftestPair {
 public:
  explicit SelftestPair(const Config& config = {})
      : net_(faulty()), sides_{Side(net_, 1, config), Side(net_, 2, config)} {}

  Driver& operator[](std::size_t i) { return sides_[i].driver; }
  // The other one, as driver i knows it.
  link::PeerId other(std::size_t i) { return sides_[i].link.peer(sides_[1 - i].port.address()); }
  link::Time now() const { return net_.now(); }
  std::uint64_t lost_frames() const { return net_.faults().lost; }

  // Polls both until `done` says so, up to two simulated seconds.
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

// `Test` has run() and tells of lost_frames(). Empty when all is well, else what is not.
template <class Test>
std::string run_selftest() {
  try {
    Test test;
    const std::string wrong = test.run();
    if (wrong.empty() && test.lost_frames() == 0)
      return "no frame was lost: recovery was not tested";
    return wrong;
  } catch (const std::exception& error) {
    return error.what();
  }
}

}  // namespace viaduct::rawdev
