// The environment variables that configure a layer: each with a default, a unit, a meaning and the
// values that are accepted. Each layer declares a table of the variables that it reads. The code
// that reads a variable and `viaduct-info --config` use the same row of the same table, so they
// agree. For set-up only: reading allocates and may throw. The environment is read anew at each
// call.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "drivers/base/setup_error.hpp"

namespace viaduct::base {

// The values that a variable accepts: a word of `words` or a number of the range, or what `parse`
// takes. With all fields empty: any text.
struct Accepted {
  std::string_view words{};                   // separated by '|'
  std::uint64_t least = 0, most = 0;          // a whole number of this range; most 0: no number
  void (*parse)(std::string_view) = nullptr;  // throws SetupError for a wrong value; used alone
};
constexpr Accepted whole_number(std::uint64_t least, std::uint64_t most) {
  return {.least = least, .most = most};
}
constexpr Accepted one_of(std::string_view words) {
  return {.words = words};
}
inline constexpr Accepted kOnOff = one_of("on|off|yes|no|1|0");

struct ConfigVar {
  std::string_view name;           // "VIADUCT_JOB"
  std::string_view default_value;  // as a user would write it
  std::string_view unit;           // "frames", "us", "" ...
  std::string_view meaning;
  Accepted accepted{};
};

// The variables of one layer. A table refers to its rows, which must outlive it. Members that take
// a name throw SetupError if the table has no such variable (has() does not).
class ConfigTable {
 public:
  constexpr explicit ConfigTable(std::span<const ConfigVar> rows) : rows_(rows) {}

  auto begin() const { return rows_.begin(); }
  auto end() const { return rows_.end(); }
  bool has(std::string_view name) const;

  // Whether the environment sets the variable to anything but an empty text.
  bool is_set(std::string_view name) const;
  // The environment's value, right or wrong, or else the default.
  std::string value(std::string_view name) const;
  // The same, checked: throws a SetupError that names the variable, the bad value and the accepted
  // values. number() is for variables that accept whole numbers only, on() for kOnOff.
  std::string text(std::string_view name) const;
  std::uint64_t number(std::string_view name) const;
  bool on(std::string_view name) const;

  // The sentences of the SetupErrors that text() would throw, for all variables of the table.
  std::vector<std::string> problems() const;
  // Throws a SetupError with the first problem.
  void check() const;

 private:
  const ConfigVar& row(std::string_view name) const;

  std::span<const ConfigVar> rows_;
};

// The names of VIADUCT_* variables in the environment that none of the tables has: misspelt, most
// likely. Sorted. Names that begin with `others` are left out: the prefix of a library whose table
// the caller does not know.
std::vector<std::string> unknown_config_vars(std::span<const ConfigTable> tables,
                                             std::string_view others = {});

// nullopt: `text` has anything but digits in it, or none, or the number is above 64 bits.
std::optional<std::uint64_t> parse_whole_number(std::string_view text);

}  // namespace viaduct::base
