// All rounds of a run, and what comes of them: tables, JSON, a plot. Used by the client only.
#pragma once

#include <vector>

#include "tools/pingpong/options.hpp"
#include "tools/pingpong/session.hpp"

namespace viaduct::pingpong {

// Measures every layer at every size in every round; one Series for each layer and size, layers
// first. Rounds are interleaved: each round measures everything once and starts with another layer
// than the one before, so that whatever else happens on the machine happens to all layers. Ends the
// session. Throws what the session throws, with the layer and size in front of the reason.
std::vector<Series> measure(Session& session, const Options& options);

// Prints the tables; writes the JSON file and the plot if they are asked for.
void report(const Options& options, const std::vector<Series>& series);

// Before anything is measured: can the files be written, is gnuplot there? Throws Failure.
void check_outputs(const Options& options);

}  // namespace viaduct::pingpong
