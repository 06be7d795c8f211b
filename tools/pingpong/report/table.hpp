// Figures as text: tables for people, JSON for programs.
#pragma once

#include <iosfwd>
#include <vector>

#include "tools/pingpong/options.hpp"
#include "tools/pingpong/report/stats.hpp"

namespace viaduct::pingpong {

void print_tables(std::ostream& out, const Options& options, const std::vector<Series>& series);

// An array of objects; what was not measured, or where nothing came through, is null.
void print_json(std::ostream& out, const Options& options, const std::vector<Series>& series);
void write_json(const Options& options, const std::vector<Series>& series);  // throws Failure

}  // namespace viaduct::pingpong
