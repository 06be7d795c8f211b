// From what a host has to what it lacks: why that matters and the command that mends it.
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

std::vector<Advice> advise(const Host& host);

}  // namespace viaduct::info
