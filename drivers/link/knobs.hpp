// The table of VIADUCT_* environment variables: the only place where a knob is named, given a
// default, a unit, a meaning and what it may be. `viaduct-info --config` prints it.
#pragma once

#include <string>
#include <vector>

#include "drivers/link/link_config.hpp"
#include "drivers/link/types.hpp"
#include "drivers/setup/knob_table.hpp"

namespace viaduct::link {

// Must fit in a ring in shared memory; the channel makes sure of it.
inline constexpr std::size_t kMostEagerShm = 32632;

const KnobTable& knobs();

// What the environment says about a knob, or its default. `name` must be in the table. SetupError
// names the knob, the bad value and what would be accepted.
std::string knob_text(std::string_view name);
std::uint64_t knob_number(std::string_view name);
bool knob_switch(std::string_view name);
// Whether the environment says anything about it.
bool knob_is_set(std::string_view name);

// The job key that a text stands for (VIADUCT_JOB): a number is itself.
std::uint64_t job_key(std::string_view text);

// VIADUCT_* variables in the environment that no row of the table names: misspelt, most likely.
// Those of libvipl, which has a table of its own, only if asked for.
std::vector<std::string> unknown_knobs(bool with_vipl = false);

// VIADUCT_PORTS taken apart at the semicolons, {n} not yet expanded.
std::vector<std::string> port_list();
// The port of a local rank: the rank-th of the list, or the only one if that has {n} in it.
// SetupError if there is none.
std::string port_for_rank(unsigned rank);

// LinkConfig from the environment; seed and incarnation from getrandom(2). SetupError if any knob
// of the table has a wrong value, so that a program finds out before it opens a port.
LinkConfig link_config_from_environment();

}  // namespace viaduct::link
