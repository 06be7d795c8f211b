// The RDMA devices of this host, by the IPv4 address of their network interface.
#pragma once

#include <string>
#include <vector>

#include "drivers/vi_over_verbs/verbs.hpp"

namespace viaduct::pingpong {

// Two addresses to run two sides between on this host: those of two devices, or twice that of the
// only one. Throws Failure.
std::vector<std::string> rdma_addresses();

// The device with that address. Throws Failure.
vi::DeviceInfo rdma_device(const std::string& ip);

}  // namespace viaduct::pingpong
