// PCI addresses in port names, and what sysfs says about the functions behind them.
#pragma once

#include <string>
#include <string_view>

namespace viaduct::port {

// The full address ("0000:3b:02.1") that `devargs` begins with (the domain may be left out there),
// or "" when it names something else.
std::string pci_address(std::string_view devargs);

// Throws SetupError when DPDK cannot take the function: there is none, or the kernel's driver has
// it.
void check_pci_function(const std::string& address);

}  // namespace viaduct::port
