// viaduct-info: what this machine offers to Viaduct, what is missing and what mends it.
#include <rte_config.h>
#include <rte_version.h>

#include <cstdio>
#include <string_view>

#include "drivers/link/fault.hpp"
#include "drivers/link/port.hpp"
#include "drivers/link/port_plan.hpp"
#include "tools/info/report.hpp"

namespace {

constexpr std::string_view kHelp = R"(NAME
    viaduct-info - what this machine offers to Viaduct, and what is missing

SYNOPSIS
    viaduct-info [--config]

DESCRIPTION
    Lists network interfaces, PCI network functions with their drivers and virtual functions, the
    DPDK drivers installed, hugepages, verbs (RDMA) devices and limits. For everything that is
    missing it says what it is needed for and the command that mends it. Only reads: DPDK is not
    started and no device is touched.

OPTIONS
    --config   print the knobs instead: the VIADUCT_* environment variables with their values,
               defaults, units and meanings; variables and values that are not understood are
               reported
    --help     this text

EXAMPLES
    viaduct-info
    VIADUCT_MTU=9000 viaduct-info --config

EXIT STATUS
    0  done, also when something is missing
    1  --config: a knob has a bad value, or a VIADUCT_ variable is no knob
    2  wrong usage
)";

void print(std::string_view text) {
  std::fwrite(text.data(), 1, text.size(), stdout);
}

int print_host() {
  viaduct::info::Where where;
  where.dpdk_version = rte_version();
#ifdef RTE_EAL_PMD_PATH
  where.dpdk_drivers = RTE_EAL_PMD_PATH;
#endif
  const viaduct::info::Host host = viaduct::info::look(where);
  print(viaduct::info::host_report(host));
  print(viaduct::info::advice_report(viaduct::info::advise(host)));
  return 0;
}

int print_config() {
  namespace link = viaduct::link;
  viaduct::info::KnobProblems problems;
  problems.unknown = link::unknown_knobs();
  const auto check = [&](auto read) {
    try {
      read();
    } catch (const link::SetupError& error) {
      problems.bad.emplace_back(error.what());
    }
  };
  check([] { link::link_config_from_environment(); });
  // No such device is opened: planning checks the knobs that any port obeys.
  check([] { link::plan_port({.devargs = "net_null0", .frames = 0, .mtu = 0, .faults = {}}); });
  check([] { link::FaultSpec::parse(link::knob_text("VIADUCT_FAULTS")); });
  print(viaduct::info::knob_report(link::knobs(), problems));
  return problems.unknown.empty() && problems.bad.empty() ? 0 : 1;
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
