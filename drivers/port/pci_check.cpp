// PCI addresses, and which driver of the kernel's has a function, from /sys/bus/pci.
#include "drivers/port/pci_check.hpp"

#include <rte_pci.h>

#include <filesystem>

#include "drivers/link/types.hpp"

namespace viaduct::port {

std::string pci_address(std::string_view devargs) {
  rte_pci_addr address{};
  const std::string name(devargs.substr(0, devargs.find(',')));
  if (rte_pci_addr_parse(name.c_str(), &address) != 0) return "";
  char text[PCI_PRI_STR_SIZE];
  rte_pci_device_name(&address, text, sizeof text);
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
