// The text that viaduct-info prints.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "drivers/link/knobs.hpp"
#include "tools/info/advice.hpp"
#include "tools/info/host.hpp"

namespace viaduct::info {

std::string host_report(const Host& host);
std::string advice_report(const std::vector<Advice>& advice);

// What was found wrong with the environment's VIADUCT_* variables: one sentence each.
struct KnobProblems {
  std::vector<std::string> unknown;  // names no knob has
  std::vector<std::string> bad;      // sentences about values
};
std::string knob_report(std::span<const link::Knob> knobs, const KnobProblems& problems);

}  // namespace viaduct::info
