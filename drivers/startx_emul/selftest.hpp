// What rte_rawdev_selftest() runs: two nodes in this process on a simulated, lossy network.
#pragma once

#include <string>

namespace viaduct::startx {

// Packets of both mechanisms, priorities and orders and an RDMA transfer each way. Touches no
// device and takes milliseconds. Empty when all is well, else what is not.
std::string selftest();

}  // namespace viaduct::startx
