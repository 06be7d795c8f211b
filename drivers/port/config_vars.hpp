// The configuration variables of ports (VIADUCT_...); `viaduct-info --config` prints them. They are
// read from the environment at each use, so they must be set before a port is opened.
#pragma once

#include <string>
#include <vector>

#include "drivers/base/config_var.hpp"

namespace viaduct::port {

// Lives until the process ends.
const base::ConfigTable& config_vars();

// VIADUCT_PORTS taken apart at the semicolons, {n} not yet expanded.
std::vector<std::string> port_list();
// The port of a local rank: the rank-th of the list, or the only one if that has {n} in it.
// SetupError if there is none.
std::string port_for_rank(unsigned rank);

}  // namespace viaduct::port
