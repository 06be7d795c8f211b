// What programs of the Virtual Interface library find on this machine: which names lead to which
// device, and what it can do.
#pragma once

#include <span>
#include <string>
#include <vector>

#include <vipl.h>

#include "drivers/vi_over_verbs/verbs.hpp"

namespace viaduct::info {

// The devices in the order of their numbers (named_devices()). `in_kernel`: how many the kernel
// has; libibverbs may lack their drivers.
std::string vipl_names_report(std::span<const vi::DeviceInfo> devices, std::size_t in_kernel);

// Of those that could be opened.
std::string vipl_limits_report(std::span<const VIP_NIC_ATTRIBUTES> nics);

}  // namespace viaduct::info
