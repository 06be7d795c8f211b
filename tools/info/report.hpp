// The text that viaduct-info prints, from data that others have collected. Pure functions.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "drivers/base/config_var.hpp"
#include "tools/info/advice.hpp"
#include "tools/info/host.hpp"

namespace viaduct::info {

// All of the host, a section each; advice_report() prints what is missing, or that nothing is.
std::string host_report(const Host& host);
std::string advice_report(const std::vector<Advice>& advice);

// A table of all configuration variables with their values; each library brings a ConfigTable.
// Below it a sentence for everything that is wrong in the environment. `unknown`: variables
// VIADUCT_* that are in no table.
std::string config_report(std::span<const base::ConfigTable> tables,
                          std::span<const std::string> unknown);

}  // namespace viaduct::info
