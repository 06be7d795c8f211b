// The configuration variables of ports. `viaduct-info --config` prints them.
#pragma once

#include <string>
#include <vector>

#include "drivers/base/config_var.hpp"

namespace viaduct::port {

const base::ConfigTable& config_vars();

// VIADUCT_PORTS taken apart at the semicolons, {n} not yet expanded.
std::vector<std::string> port_list();
// The port of a local rank: the rank-th of the list, or the only one if that has {n} in it.
// SetupError if there is none.
std::string port_for_rank(unsigned rank);

}  // namespace viaduct::port
