// What rte_rawdev_selftest() runs: two engines in this process on a simulated, lossy network.
#pragma once

#include <string>

namespace viaduct::mbcf {

// Every request, short and long, at once and in both directions. Touches no device and takes
// milliseconds. Empty when all is well, else what is not.
std::string selftest();

}  // namespace viaduct::mbcf
