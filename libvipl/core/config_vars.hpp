// The table of libvipl's configuration variables (VIADUCT_VIPL_...). docs/vipl.md explains them;
// `viaduct-info --config` prints them.
#pragma once

#include "drivers/base/config_var.hpp"

namespace viaduct::vipl {

// The table. It reads the environment when it is asked; any thread may ask.
const base::ConfigTable& config_vars();

}  // namespace viaduct::vipl
