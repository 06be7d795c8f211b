// The environment variables of libvipl: the only place where one is named, given a default, a unit
// and a meaning. `viaduct-info --config` prints them.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace viaduct::vipl {

struct Knob {
  std::string_view name;
  std::string_view default_value;
  std::string_view unit;
  std::string_view meaning;
};

std::span<const Knob> knobs();

// What the environment says about a knob, or its default. `name` must be in the table.
std::string knob_text(std::string_view name);
// vi::SetupError names the knob, the bad value and what would be accepted.
std::uint64_t knob_number(std::string_view name, std::uint64_t least, std::uint64_t most);

}  // namespace viaduct::vipl
