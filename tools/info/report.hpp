// The text that viaduct-info prints.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "drivers/base/config_var.hpp"
#include "tools/info/advice.hpp"
#include "tools/info/host.hpp"

namespace viaduct::info {

std::string host_report(const Host& host);
std::string advice_report(const std::vector<Advice>& advice);

// Each library has a table. Of what is wrong in the environment, one sentence each; `unknown` are
// variables that are in no table.
std::string config_report(std::span<const base::ConfigTable> tables,
                          std::span<const std::string> unknown);

}  // namespace viaduct::info
