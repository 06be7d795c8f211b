// All rounds of a run, and what comes of them.
#pragma once

#include <vector>

#include "tools/pingpong/options.hpp"
#include "tools/pingpong/session.hpp"

namespace viaduct::pingpong {

// Rounds are interleaved: each measures every layer at every size once, and starts with another
// layer than the one before, so that whatever else happens on the machine happens to all of them.
std::vector<Series> measure(Session& session, const Options& options);

// Prints the tables; writes the JSON file and the plot if they are asked for.
void report(const Options& options, const std::vector<Series>& series);

// Before anything is measured: can the files be written, is gnuplot there? Throws Failure.
void check_outputs(const Options& options);

}  // namespace viaduct::pingpong
