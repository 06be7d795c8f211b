// viaduct-info: what this machine offers to Viaduct, what is missing and what mends it; or the
// configuration variables. Looking is host.hpp's, judging advice.hpp's, printing report.hpp's; here
// they are joined, and VIPL's NICs are opened. One argument at most, so a library for command lines
// would be longer than the check.
#include <rte_config.h>
#include <rte_version.h>

#include <vipl.h>

#include <array>
#include <cstdio>
#include <string>
#include <string_view>
#include <vector>

#include "drivers/link/config.hpp"
#include "drivers/port/config_vars.hpp"
#include "drivers/vi_over_verbs/ibverbs.hpp"
#include "libmpi_lite/core/config_vars.hpp"
#include "libvipl/core/config_vars.hpp"
#include "libvipl/names/device_names.hpp"
#include "tools/info/report.hpp"
#include "tools/info/vipl.hpp"

namespace {

constexpr std::string_view kHelp = R"(NAME
    viaduct-info - what this machine offers to Viaduct, and what is missing

SYNOPSIS
    viaduct-info [--config]

DESCRIPTION
    Lists network interfaces, PCI network functions with their drivers and virtual functions, the
    DPDK drivers installed, hugepages, verbs (RDMA) devices, the names under which Virtual Interface
    programs find them, and limits. For everything that is missing it says what it is needed for and
    the command that mends it. Only reads: DPDK is not started, verbs devices are asked for their
    limits, no other device is touched.

OPTIONS
    --config   print the configuration instead: the VIADUCT_* environment variables with their values,
               defaults, units and meanings; variables and values that are not understood are
               reported
    --help     this text

EXAMPLES
    viaduct-info
    VIADUCT_MTU=9000 viaduct-info --config

EXIT STATUS
    0  done, also when something is missing
    1  --config: a variable has a bad value, or there is no such VIADUCT_ variable
    2  wrong usage
)";

void print(std::string_view text) {
  std::fwrite(text.data(), 1, text.size(), stdout);
}

// What the RDMA devices are to VIPL programs, in VIPL's terms. Opens each usable NIC to query its
// limits. `in_kernel` 0: libibverbs is not asked, as it would complain.
std::string vipl_report(std::size_t in_kernel) {
  namespace vipl = viaduct::vipl;
  std::vector<viaduct::vi::DeviceInfo> devices;
  if (in_kernel > 0)
    devices = vipl::named_devices(viaduct::vi::ibverbs_provider().devices(),
                                  vipl::config_vars().text("VIADUCT_VIPL_DEVICES"));
  std::vector<VIP_NIC_ATTRIBUTES> nics;
  for (const auto& device : devices) {
    VIP_NIC_HANDLE nic = nullptr;
    if (!device.usable || VipOpenNic(device.name.c_str(), &nic) != VIP_SUCCESS) continue;
    VIP_NIC_ATTRIBUTES attributes;
    if (VipQueryNic(nic, &attributes) == VIP_SUCCESS) nics.push_back(attributes);
    VipCloseNic(nic);
  }
  return viaduct::info::vipl_names_report(devices, in_kernel) +
         viaduct::info::vipl_limits_report(nics);
}

// The default: tables of what there is, and what is missing. Always 0: to lack something is no
// error.
int print_host() {
  viaduct::info::Where where;
  where.dpdk_version = rte_version();
#ifdef RTE_EAL_PMD_PATH
  where.dpdk_drivers = RTE_EAL_PMD_PATH;
#endif
  const viaduct::info::Host host = viaduct::info::look(where);
  print(viaduct::info::host_report(host));
  print(vipl_report(host.verbs.size()));
  print(viaduct::info::advice_report(viaduct::info::advise(host)));
  return 0;
}

// --config. 1 if a value is bad or a variable is unknown.
int print_config() {
  using namespace viaduct;
  const std::array tables{port::config_vars(), link::config_vars(), mpi::config_vars(),
                          vipl::config_vars()};
  const std::vector<std::string> unknown = base::unknown_config_vars(tables);
  bool bad = false;
  for (const viaduct::base::ConfigTable& table : tables) bad = bad || !table.problems().empty();
  print(viaduct::info::config_report(tables, unknown));
  return unknown.empty() && !bad ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  const std::string_view option = argc > 1 ? argv[1] : "";
  if (argc > 2 || (argc == 2 && option != "--config" && option != "--help" && option != "-h")) {
    std::fprintf(stderr, "viaduct-info: unexpected argument '%s'; see viaduct-info --help\n",
                 argv[argc > 2 ? 2 : 1]);
    return 2;
  }
  if (option == "--config") return print_config();
  if (option.empty()) return print_host();
  print(kHelp);
  return 0;
}
