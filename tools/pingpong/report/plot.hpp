// Latency and bandwidth over message size, drawn by gnuplot.
#pragma once

#include <string>
#include <vector>

#include "tools/pingpong/options.hpp"
#include "tools/pingpong/report/stats.hpp"

namespace viaduct::pingpong {

void check_gnuplot();  // throws Failure when it is not installed
void plot(const Options& options, const std::vector<Series>& series);  // throws Failure

// What gnuplot is given, data included.
std::string plot_script(const Options& options, const std::vector<Series>& series);

}  // namespace viaduct::pingpong
