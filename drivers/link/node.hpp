// A port, its link and one driver on it, opened together as programs do it.
#pragma once

#include <memory>
#include <string>

#include "drivers/link/eal.hpp"
#include "drivers/link/knobs.hpp"
#include "drivers/link/link.hpp"
#include "drivers/link/port.hpp"

namespace viaduct::link {

// `Self` is the driver's own node, derived from this with these constructors. `Driver` is made of a
// link and a `DriverConfig` and has poll(now).
template <class Self, class Driver, class DriverConfig>
class NodeOf {
 public:
  using Config = DriverConfig;

  // `port` as PortConfig::devargs has it; everything else from the VIADUCT_* environment variables.
  // Throws SetupError.
  static std::unique_ptr<Self> open(const std::string& port, const Config& config = {}) {
    PortConfig port_config;
    port_config.devargs = port;
    return open(port_config, link_config_from_environment(), config);
  }
  static std::unique_ptr<Self> open(const PortConfig& port, const LinkConfig& link,
                                    const Config& config) {
    return std::make_unique<Self>(Port::open(port), link, config);
  }
  NodeOf(std::unique_ptr<Port> port, const LinkConfig& link, const Config& config)
      : port_(std::move(port)), link_(*port_, link), driver_(link_, config) {}

  Port& port() { return *port_; }
  Link<Port>& link() { return link_; }
  Driver& driver() { return driver_; }
  Address address() const { return port_->address(); }
  void poll() { driver_.poll(now()); }

 private:
  std::unique_ptr<Port> port_;
  Link<Port> link_;
  Driver driver_;
};

}  // namespace viaduct::link
