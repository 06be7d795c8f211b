// An endpoint: a port, its link and one driver on it, opened together as programs do it.
#pragma once

#include <memory>
#include <string>

#include "drivers/link/config.hpp"
#include "drivers/link/link.hpp"
#include "drivers/port/config_vars.hpp"
#include "drivers/port/eal.hpp"
#include "drivers/port/port.hpp"

namespace viaduct::endpoint {

// SetupError if a configuration variable of ports or links has a wrong value: before a port is
// opened, because some are read only later, where that would be a surprise.
inline void check_config() {
  port::config_vars().check();
  link::config_vars().check();
}

// `Self` is the driver's own node, derived from this with these constructors. `Driver` is made of a
// link and a `DriverConfig` and has poll(now).
template <class Self, class Driver, class DriverConfig>
class EndpointOf {
 public:
  using Config = DriverConfig;

  // `port` as PortConfig::devargs has it; everything else from the VIADUCT_* environment variables.
  // Throws SetupError.
  static std::unique_ptr<Self> open(const std::string& port, const Config& config = {}) {
    port::PortConfig port_config;
    port_config.devargs = port;
    check_config();
    return open(port_config, link::link_config_from_environment(), config);
  }
  static std::unique_ptr<Self> open(const port::PortConfig& port, const link::LinkConfig& link,
                                    const Config& config) {
    return std::make_unique<Self>(port::Port::open(port), link, config);
  }
  EndpointOf(std::unique_ptr<port::Port> port, const link::LinkConfig& link, const Config& config)
      : port_(std::move(port)), link_(*port_, link), driver_(link_, config) {}

  port::Port& port() { return *port_; }
  link::Link<port::Port>& link() { return link_; }
  Driver& driver() { return driver_; }
  link::Address address() const { return port_->address(); }
  void poll() { driver_.poll(port::now()); }

 private:
  std::unique_ptr<port::Port> port_;
  link::Link<port::Port> link_;
  Driver driver_;
};

}  // namespace viaduct::endpoint
