// PCI addresses in port names, and what sysfs says about the functions behind them. port_config.cpp
// asks before DPDK does, because DPDK's own errors do not name the remedy.
#pragma once

#include <string>
#include <string_view>

namespace viaduct::port {

// The full address ("0000:3b:02.1") if `devargs` begins with a PCI address, with or without its
// domain ("3b:02.1"), or "" when it names something else.
std::string pci_address(std::string_view devargs);

// Throws SetupError when DPDK cannot use the function: it does not exist, or a driver of the
// kernel's has it that does not share it.
void check_pci_function(const std::string& address);

}  // namespace viaduct::port
