// Text in columns (table.hpp). Lines end without spaces.
#include "tools/info/table.hpp"

#include <algorithm>
#include <array>

namespace viaduct::info {

std::string table(const std::vector<Row>& rows, std::string_view indent) {
  std::vector<std::size_t> widths;
  for (const Row& row : rows) {
    widths.resize(std::max(widths.size(), row.size()));
    // Rows may have different numbers of cells.
    for (std::size_t c = 0; c < row.size(); ++c) widths[c] = std::max(widths[c], row[c].size());
  }
  std::string out;
  for (const Row& row : rows) {
    std::string line(indent);
    for (std::size_t c = 0; c < row.size(); ++c) {
      line += row[c];
      line.append(widths[c] - row[c].size() + 2, ' ');
    }
    line.erase(line.find_last_not_of(' ') + 1);
    out += line + "\n";
  }
  return out;
}

std::string section(std::string_view title, const std::vector<Row>& rows, std::string_view none) {
  std::string out = std::string(title) + "\n";
  return out + (rows.size() > 1 ? table(rows) : "  " + std::string(none) + "\n") + "\n";
}

std::string or_dash(const std::string& text) {
  return text.empty() ? "-" : text;
}

std::string yes_no(bool yes) {
  return yes ? "yes" : "no";
}

std::string size_text(std::uint64_t bytes) {
  constexpr std::array<std::string_view, 5> kUnits{" B", " KiB", " MiB", " GiB", " TiB"};
  std::size_t unit = 0;
  const auto too_long = [&] { return bytes >= 10240 || (bytes >= 1024 && bytes % 1024 == 0); };
  for (; too_long() && unit + 1 < kUnits.size(); ++unit) bytes /= 1024;
  return std::to_string(bytes) + std::string(kUnits[unit]);
}

}  // namespace viaduct::info
