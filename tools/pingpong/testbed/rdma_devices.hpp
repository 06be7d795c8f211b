// The RDMA devices of this host, by the IPv4 address of their network interface, for the layers
// verbs and vipl-*.
#pragma once

#include <string>
#include <vector>

#include "drivers/vi_over_verbs/verbs.hpp"

namespace viaduct::pingpong {

// Two IPv4 addresses to run two sides between on this host: those of two devices, or twice that of
// the only one. Throws Failure if there is no usable device.
std::vector<std::string> rdma_addresses();

// The device with that IPv4 address. Throws Failure if there is none.
vi::DeviceInfo rdma_device(const std::string& ip);

}  // namespace viaduct::pingpong
