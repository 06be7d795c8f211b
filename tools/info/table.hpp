// Text in columns, for the reports of viaduct-info.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace viaduct::info {

// The cells of a row, from left to right.
using Row = std::vector<std::string>;

// Columns as wide as their widest cell, two spaces apart; the first row is the heading.
std::string table(const std::vector<Row>& rows, std::string_view indent = "  ");
// A title, a table below it, and an empty line. `none` in place of the table if it has no rows but
// the heading.
std::string section(std::string_view title, const std::vector<Row>& rows, std::string_view none);

std::string or_dash(const std::string& text);
std::string yes_no(bool yes);
// "32 KiB": the largest unit that loses little or nothing: a number below 10240 that is not a whole
// multiple of 1024 stays as it is.
std::string size_text(std::uint64_t bytes);

}  // namespace viaduct::info
