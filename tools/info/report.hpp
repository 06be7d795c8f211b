// The text that viaduct-info prints.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tools/info/advice.hpp"
#include "tools/info/host.hpp"

namespace viaduct::info {

std::string host_report(const Host& host);
std::string advice_report(const std::vector<Advice>& advice);

// What was found wrong with the environment's VIADUCT_* variables: one sentence each.
struct KnobProblems {
  std::vector<std::string> unknown;  // names no knob has
  std::vector<std::string> bad;      // sentences about values
};
struct KnobRow {
  std::string name, value, default_value, unit, meaning;
};
// Of a table of knobs, each library has one.
template <class Knob>
std::vector<KnobRow> knob_rows(std::span<const Knob> knobs,
                               std::string (*value)(std::string_view name)) {
  std::vector<KnobRow> out;
  for (const Knob& knob : knobs)
    out.push_back({std::string(knob.name), value(knob.name), std::string(knob.default_value),
                   std::string(knob.unit), std::string(knob.meaning)});
  return out;
}
std::string knob_report(const std::vector<KnobRow>& knobs, const KnobProblems& problems);

}  // namespace viaduct::info
