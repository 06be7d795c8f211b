// The environment variables that configure a layer: each with a default, a unit, a meaning and what
// it may be. A layer declares those that it reads; reading one and `viaduct-info --config` obey the
// same row of the same table.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "drivers/base/setup_error.hpp"

namespace viaduct::base {

// Nothing of this: a variable may be any text.
struct Accepted {
  std::string_view words{};                   // one of these, separated by '|'
  std::uint64_t least = 0, most = 0;          // or a whole number; most is 0: no number
  void (*parse)(std::string_view) = nullptr;  // or what this takes without a SetupError
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

// A name that is not in the table is a SetupError, too.
class ConfigTable {
 public:
  constexpr explicit ConfigTable(std::span<const ConfigVar> rows) : rows_(rows) {}

  auto begin() const { return rows_.begin(); }
  auto end() const { return rows_.end(); }
  bool has(std::string_view name) const;

  // Whether the environment says anything about it.
  bool is_set(std::string_view name) const;
  // What the environment says, right or wrong, or the default.
  std::string value(std::string_view name) const;
  // The same, or a SetupError that names the variable, the bad value and what would be accepted.
  std::string text(std::string_view name) const;
  std::uint64_t number(std::string_view name) const;
  bool on(std::string_view name) const;

  // What text() has to say against values in the environment.
  std::vector<std::string> problems() const;
  // SetupError with the first of them.
  void check() const;

 private:
  const ConfigVar& row(std::string_view name) const;

  std::span<const ConfigVar> rows_;
};

// VIADUCT_* variables in the environment that none of the tables has: misspelt, most likely. But
// not those that begin with `others`, the prefix of a library whose table the caller does not know.
std::vector<std::string> unknown_config_vars(std::span<const ConfigTable> tables,
                                             std::string_view others = {});

// Nothing but digits.
std::optional<std::uint64_t> parse_whole_number(std::string_view text);

}  // namespace viaduct::base
