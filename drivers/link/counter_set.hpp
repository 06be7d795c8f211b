// Counters named by an enum whose last value is count_.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "drivers/setup/cxx20.hpp"

namespace viaduct::link {

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

}  // namespace viaduct::link
