// Durations as text for people.

#include "drivers/base/time.hpp"

#include <cstdio>

namespace viaduct::base {

std::string text(Duration span) {
  const auto ns = static_cast<double>(span.count());
  char out[32];
  if (ns < 1e3)
    std::snprintf(out, sizeof out, "%.0f ns", ns);
  else if (ns < 1e9)
    std::snprintf(out, sizeof out, "%.1f %s", ns < 1e6 ? ns / 1e3 : ns / 1e6,
                  ns < 1e6 ? "us" : "ms");
  else
    std::snprintf(out, sizeof out, "%.1f s", ns / 1e9);
  return out;
}

}  // namespace viaduct::base
