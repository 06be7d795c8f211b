// Columns of text.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace viaduct::info {

using Row = std::vector<std::string>;

// Columns as wide as their widest cell; the first row is the heading.
std::string table(const std::vector<Row>& rows, std::string_view indent = "  ");
// A table below a title; `none` in its place if it has no rows but the heading.
std::string section(std::string_view title, const std::vector<Row>& rows, std::string_view none);

std::string or_dash(const std::string& text);
std::string yes_no(bool yes);
// "32 KiB": the largest unit that loses little or nothing.
std::string size_text(std::uint64_t bytes);

}  // namespace viaduct::info
