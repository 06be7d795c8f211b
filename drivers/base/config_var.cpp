// Reading the environment, checking values against their row of a table, and finding VIADUCT_*
// variables that no table has. Runs at set-up only; no other thread may change the environment
// meanwhile (getenv).

#include "drivers/base/config_var.hpp"

#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cstdlib>

namespace viaduct::base {
namespace {

constexpr std::string_view kPrefix = "VIADUCT_";
// Variables by which viaduct-vm talks to programs in its guest; users do not set these.
constexpr std::string_view kGuestPrefix = "VIADUCT_VM_";

// nullptr: not set, or set to nothing, which is how many shell users take a variable back.
const char* from_environment(std::string_view name) {
  const char* const value = std::getenv(std::string(name).c_str());
  return value == nullptr || *value == '\0' ? nullptr : value;
}

// Whether `words`, separated by '|', has `value` as a whole word.
bool is_one_of(std::string_view words, std::string_view value) {
  while (!words.empty()) {
    const std::size_t end = std::min(words.find('|'), words.size());
    if (words.substr(0, end) == value) return true;
    words.remove_prefix(std::min(end + 1, words.size()));
  }
  return false;
}

bool is_number(const Accepted& accepted, std::string_view value) {
  const auto number = parse_whole_number(value);
  return number && *number >= accepted.least && *number <= accepted.most;
}

// What is accepted, for error messages: "0 or a whole number from 576 to 9000". Empty: any text.
std::string sentence(const Accepted& accepted) {
  std::string text(accepted.words);
  if (accepted.most != 0)
    text += std::string(text.empty() ? "" : " or ") + "a whole number from " +
            std::to_string(accepted.least) + " to " + std::to_string(accepted.most);
  return text;
}

// What is wrong with `value`, as a sentence for the user; empty: nothing.
std::string problem(const ConfigVar& variable, const std::string& value) {
  const Accepted& accepted = variable.accepted;
  const std::string assignment = std::string(variable.name) + "=" + value;
  if (accepted.parse != nullptr) {
    try {
      accepted.parse(value);
    } catch (const SetupError& error) {
      return assignment + ": " + error.what();
    }
    return "";
  }
  const std::string wanted = sentence(accepted);
  if (wanted.empty() || is_one_of(accepted.words, value)) return "";
  if (accepted.most != 0 && is_number(accepted, value)) return "";
  return assignment + " is not " + wanted + "; set it to that or unset it";
}

}  // namespace

std::vector<std::string> unknown_config_vars(std::span<const ConfigTable> tables,
                                             std::string_view others) {
  std::vector<std::string> unknown;
  for (char** entry = environ; entry != nullptr && *entry != nullptr; ++entry) {
    const std::string_view text(*entry);
    const std::string_view name = text.substr(0, text.find('='));
    if (!name.starts_with(kPrefix) || name.starts_with(kGuestPrefix)) continue;
    if (!others.empty() && name.starts_with(others)) continue;
    if (std::none_of(tables.begin(), tables.end(), [&](auto& table) { return table.has(name); }))
      unknown.emplace_back(name);
  }
  std::sort(unknown.begin(), unknown.end());
  return unknown;
}

std::optional<std::uint64_t> parse_whole_number(std::string_view text) {
  std::uint64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (text.empty() || error != std::errc() || end != text.data() + text.size()) return {};
  return number;
}

const ConfigVar& ConfigTable::row(std::string_view name) const {
  for (const ConfigVar& variable : rows_)
    if (variable.name == name) return variable;
  throw SetupError("there is no configuration variable " + std::string(name) +
                   "; `viaduct-info --config` prints those there are");
}

bool ConfigTable::has(std::string_view name) const {
  return std::any_of(begin(), end(),
                     [&](const ConfigVar& variable) { return variable.name == name; });
}

bool ConfigTable::is_set(std::string_view name) const {
  return from_environment(row(name).name) != nullptr;
}

std::string ConfigTable::value(std::string_view name) const {
  const ConfigVar& variable = row(name);
  const char* const set = from_environment(name);
  return set != nullptr ? set : std::string(variable.default_value);
}

std::string ConfigTable::text(std::string_view name) const {
  std::string it = value(name);
  if (std::string wrong = problem(row(name), it); !wrong.empty()) throw SetupError(wrong);
  return it;
}

std::uint64_t ConfigTable::number(std::string_view name) const {
  return parse_whole_number(text(name)).value();
}

bool ConfigTable::on(std::string_view name) const {
  return is_one_of("on|yes|1", text(name));
}

std::vector<std::string> ConfigTable::problems() const {
  std::vector<std::string> all;
  for (const ConfigVar& variable : rows_)
    if (std::string wrong = problem(variable, value(variable.name)); !wrong.empty())
      all.push_back(std::move(wrong));
  return all;
}

void ConfigTable::check() const {
  if (const auto all = problems(); !all.empty()) throw SetupError(all.front());
}

}  // namespace viaduct::base
