// What programs of the Virtual Interface library (VIPL) find on this machine: which names lead to
// which device, and what each device can do.
#pragma once

#include <span>
#include <string>
#include <vector>

#include <vipl.h>

#include "drivers/vi_over_verbs/verbs.hpp"

namespace viaduct::info {

// The devices in the order of their numbers, as named_devices() gives them. `in_kernel`: how many
// RDMA devices the kernel has; libibverbs may lack drivers for them, and then the report says so.
std::string vipl_names_report(std::span<const vi::DeviceInfo> devices, std::size_t in_kernel);

// The limits of the NICs that could be opened; empty if none could.
std::string vipl_limits_report(std::span<const VIP_NIC_ATTRIBUTES> nics);

}  // namespace viaduct::info
