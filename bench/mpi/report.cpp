// Prints rows as a table, and as JSON: an array of objects.
#include <cstdio>
#include <fstream>

#include "bench.hpp"

namespace bench {

const char* name_of(Unit unit) {
  switch (unit) {
    case Unit::us: return "us";
    case Unit::mb_per_s: return "MB/s";
    case Unit::per_second: return "msg/s";
  }
  return "";
}

void print_heading() {
  std::printf("%-16s %9s %12s %12s %12s  %-6s %7s\n", "test", "bytes", "least", "median", "most",
              "unit", "samples");
  std::fflush(stdout);
}

void print_row(const Row& row) {
  const int digits = row.unit == Unit::us ? 3 : row.unit == Unit::mb_per_s ? 1 : 0;
  std::printf("%-16s %9zu %12.*f %12.*f %12.*f  %-6s %7d\n", row.test.c_str(), row.bytes, digits,
              row.min, digits, row.median, digits, row.max, name_of(row.unit), row.samples);
  std::fflush(stdout);
}

void write_json(const std::string& file, const std::vector<Row>& rows) {
  std::ofstream out(file);
  out << "[\n";
  const char* comma = "";
  for (const Row& row : rows) {
    out << comma << "  {\"test\": \"" << row.test << "\", \"bytes\": " << row.bytes
        << ", \"ranks\": " << world_size() << ", \"unit\": \"" << name_of(row.unit)
        << "\", \"least\": " << row.min << ", \"median\": " << row.median
        << ", \"most\": " << row.max << ", \"samples\": " << row.samples << "}";
    comma = ",\n";
  }
  out << "\n]\n";
  if (!out.flush()) fail("cannot write " + file);
}

}  // namespace bench
