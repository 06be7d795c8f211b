// Figures as text: tables for people, JSON for programs. One row for each Series.
#pragma once

#include <iosfwd>
#include <vector>

#include "tools/pingpong/options.hpp"
#include "tools/pingpong/report/stats.hpp"

namespace viaduct::pingpong {

// The figures, what was lost, and a table of ratios for each of the yardsticks (raw, raw-fetch,
// packet, udp, tcp, verbs) that is in the run.
void print_tables(std::ostream& out, const Options& options, const std::vector<Series>& series);

// An array of objects; what was not measured, or where nothing came through, is null.
void print_json(std::ostream& out, const Options& options, const std::vector<Series>& series);
void write_json(const Options& options, const std::vector<Series>& series);  // throws Failure

}  // namespace viaduct::pingpong
