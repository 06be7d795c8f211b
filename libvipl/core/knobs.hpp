// The environment variables of libvipl: the only place where one is named, given a default, a unit,
// a range and a meaning. `viaduct-info --config` prints them.
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
  std::uint64_t least = 0, most = 0;  // of a number

  bool is_number() const { return most != 0; }
};

std::span<const Knob> knobs();

// What the environment says about a knob, or its default. `name` must be in the table.
std::string knob_text(std::string_view name);
// Of a knob that is a number. vi::SetupError names it, the bad value and what would be accepted.
std::uint64_t knob_number(std::string_view name);

}  // namespace viaduct::vipl
