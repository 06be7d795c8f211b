// Latency and bandwidth over message size, drawn by gnuplot, which is run as a program.
#pragma once

#include <string>
#include <vector>

#include "tools/pingpong/options.hpp"
#include "tools/pingpong/report/stats.hpp"

namespace viaduct::pingpong {

// Throws Failure if gnuplot is not in PATH.
void check_gnuplot();  // throws Failure when it is not installed
// Draws Options::plot (.svg or .png by the name's ending); waits for gnuplot. Throws Failure.
void plot(const Options& options, const std::vector<Series>& series);  // throws Failure

// What gnuplot is given, data included: one panel for each measure, one curve for each layer.
std::string plot_script(const Options& options, const std::vector<Series>& series);

}  // namespace viaduct::pingpong
