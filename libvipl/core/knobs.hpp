// The environment variables of libvipl: the only place where one is named, given a default, a unit,
// a meaning and what it may be. `viaduct-info --config` prints them.
#pragma once

#include "drivers/setup/knob_table.hpp"

namespace viaduct::vipl {

const KnobTable& knobs();

// What the environment says about a knob, or its default. `name` must be in the table. SetupError
// names the knob, the bad value and what would be accepted.
std::string knob_text(std::string_view name);
std::uint64_t knob_number(std::string_view name);

}  // namespace viaduct::vipl
