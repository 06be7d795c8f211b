// PCI addresses, and which driver of the kernel's has a function, from /sys/bus/pci.
#include "drivers/port/pci_check.hpp"

#include <cstdio>
#include <filesystem>

#include "drivers/link/types.hpp"

namespace viaduct::port {

std::string pci_address(std::string_view devargs) {
  // %n tells how much was read: text behind the address means that it is no address.
  const std::string name(devargs.substr(0, devargs.find(',')));
  unsigned domain = 0, bus = 0, device = 0, function = 0;
  int used = 0;
  if (std::sscanf(name.c_str(), "%4x:%2x:%2x.%1x%n", &domain, &bus, &device, &function, &used) !=
          4 ||
      used != static_cast<int>(name.size())) {
    domain = 0;
    if (std::sscanf(name.c_str(), "%2x:%2x.%1x%n", &bus, &device, &function, &used) != 3 ||
        used != static_cast<int>(name.size()))
      return "";
  }
  char text[24];
  std::snprintf(text, sizeof text, "%04x:%02x:%02x.%x", domain, bus, device, function);
  return text;
}

void check_pci_function(const std::string& address) {
  namespace fs = std::filesystem;
  const fs::path function = fs::path("/sys/bus/pci/devices") / address;
  std::error_code error;
  if (!fs::exists(function, error))
    throw base::SetupError(
        "cannot open port " + address +
        ": this machine has no such PCI function; `lspci -D` or `viaduct-info` lists "
        "those it has");
  const std::string driver = fs::read_symlink(function / "driver", error).filename();
  // vfio-pci, uio_pci_generic and igb_uio exist for programs like DPDK. The others share the
  // function: DPDK's drivers for these NICs work through them.
  for (const auto* usable :
       {"vfio-pci", "uio_pci_generic", "igb_uio", "mlx4_core", "mlx5_core", "mana", "gve"})
    if (driver == usable) return;
  throw base::SetupError("cannot open port " + address + ": it is busy with " +
                         (driver.empty() ? "no driver at all" : "the kernel's driver " + driver) +
                         "; run `dpdk-devbind.py --bind=vfio-pci " + address +
                         "` as root (never on the interface you are logged in through)");
}

}  // namespace viaduct::port
