// An endpoint: a port, the link over that port and one driver on the link, opened together.
// Programs use the drivers' own classes, which derive from EndpointOf. The endpoint owns all three,
// and tells telemetry of them; members are in the order of construction, so the port ends last. One
// owner thread.
#pragma once

#include <memory>
#include <string>

#include "drivers/endpoint/telemetry.hpp"
#include "drivers/link/config.hpp"
#include "drivers/link/link.hpp"
#include "drivers/port/config_vars.hpp"
#include "drivers/port/eal.hpp"
#include "drivers/port/port.hpp"

namespace viaduct::endpoint {

// Throws SetupError if a configuration variable of ports or links has a wrong value. Called before
// a port is opened: some variables are read only later, where an error would be a surprise.
inline void check_config() {
  port::config_vars().check();
  link::config_vars().check();
}

// `Self` is the driver's own endpoint class, which derives from this class and inherits its
// constructors. `Driver` is constructed from a link and a `DriverConfig` and has poll(now).
template <class Self, class Driver, class DriverConfig>
class EndpointOf {
 public:
  using Config = DriverConfig;

  // Opens the port that `port` names, in the form of PortConfig::devargs; the VIADUCT_* environment
  // variables say everything else. Throws SetupError.
  static std::unique_ptr<Self> open(const std::string& port, const Config& config = {}) {
    port::PortConfig port_config;
    port_config.devargs = port;
    check_config();
    return open(port_config, link::link_config_from_environment(), config);
  }
  // The same from explicit configurations; the link and driver variables of the environment play no
  // part. Throws SetupError.
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
  // All progress of driver and link, at the present time of the port's clock.
  void poll() { driver_.poll(port::now()); }

 private:
  std::unique_ptr<port::Port> port_;
  link::Link<port::Port> link_;
  Driver driver_;
  Telemetry telemetry_{*port_, link_};
};

}  // namespace viaduct::endpoint
