// What rte_rawdev_selftest() of a StarT-X rawdev runs: two nodes in this process on a simulated
// network that loses, duplicates, reorders and corrupts frames. Any thread may run it.
#pragma once

#include <string>

namespace viaduct::startx {

// Sends packets by both mechanisms, in both priorities and orders, and an RDMA transfer each way.
// Touches no device and takes milliseconds. Empty when all arrived as sent, else what did not.
std::string selftest();

}  // namespace viaduct::startx
