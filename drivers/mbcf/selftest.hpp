// What rte_rawdev_selftest() runs: two engines in this process on a simulated, lossy network.
#pragma once

#include <string>

namespace viaduct::mbcf {

// Every kind of request, short and long, in both directions at once, and some refusals. Touches no
// device and takes milliseconds. Empty when all is well, else a sentence that says what is wrong.
std::string selftest();

}  // namespace viaduct::mbcf
