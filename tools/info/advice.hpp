// From what a host has to what it lacks: why that matters and the command that mends it. A pure
// function of Host.
#pragma once

#include <string>
#include <vector>

#include "tools/info/host.hpp"

namespace viaduct::info {

struct Advice {
  std::string lack;     // what is missing
  std::string why;      // what does not work, or works worse, without it
  std::string command;  // what mends it, ready to be typed by root
};

// What is missing, grouped by subject. Empty if nothing is. Nothing is changed: commands are
// proposed to the user.
std::vector<Advice> advise(const Host& host);

}  // namespace viaduct::info
