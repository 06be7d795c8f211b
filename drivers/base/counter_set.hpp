// A set of counters named by an enum whose last value is count_. Plain integers without atomics:
// one owner thread adds and reads.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "drivers/base/cxx20.hpp"

namespace viaduct::base {

struct CounterInfo {
  std::string_view name, meaning;
};

template <class Counter>
class CounterSet {
 public:
  static constexpr std::size_t kSize = static_cast<std::size_t>(Counter::count_);

  void add(Counter c, std::uint64_t n = 1) { values_[static_cast<std::size_t>(c)] += n; }
  std::uint64_t operator[](Counter c) const { return values_[static_cast<std::size_t>(c)]; }

 private:
  std::array<std::uint64_t, kSize> values_{};
};

// A counter as it stands now, for reports and tools. The texts are those of a table, and outlive
// it.
struct NamedCounter {
  std::string_view part;  // of the software, as "link"
  std::string_view name, meaning;
  std::uint64_t value;
  bool level = false;  // it may also become less
};

template <class Counter, std::size_t kSize>
void append(std::vector<NamedCounter>& out, std::string_view part,
            const CounterSet<Counter>& counters, const std::array<CounterInfo, kSize>& info) {
  for (std::size_t c = 0; c < kSize; ++c)
    out.push_back({part, info[c].name, info[c].meaning, counters[static_cast<Counter>(c)]});
}

// The counters that are not zero, as text: "probes 2, drop_checksum 1".
template <class Counter, std::size_t kSize>
std::string text(const CounterSet<Counter>& counters, const std::array<CounterInfo, kSize>& info) {
  std::string out;
  for (std::size_t c = 0; c < kSize; ++c) {
    const std::uint64_t value = counters[static_cast<Counter>(c)];
    if (value == 0) continue;
    out += out.empty() ? "" : ", ";
    out.append(info[c].name).append(" ").append(std::to_string(value));
  }
  return out;
}

}  // namespace viaduct::base
