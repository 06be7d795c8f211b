// The configuration variables of libvipl. `viaduct-info --config` prints them.
#pragma once

#include "drivers/base/config_var.hpp"

namespace viaduct::vipl {

const base::ConfigTable& config_vars();

}  // namespace viaduct::vipl
