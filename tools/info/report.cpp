// Lays out the sections of report.hpp as tables (table.hpp).
#include "tools/info/report.hpp"

#include <string_view>

#include "tools/info/table.hpp"

namespace viaduct::info {
namespace {

// A NUMA node; "-" if it is not known.
std::string node(int n) {
  return n < 0 ? "-" : std::to_string(n);
}

std::string size(std::uint64_t bytes) {
  return bytes == Limits::kUnlimited ? "unlimited" : size_text(bytes);
}

// Each interface with the devargs of an af_packet port on it.
std::string interfaces(const Host& host) {
  std::vector<Row> rows{{"INTERFACE", "MAC", "MTU", "STATE", "DRIVER", "PCI", "PORT FOR VIADUCT"}};
  for (const Interface& i : host.interfaces)
    rows.push_back({i.name, i.mac, std::to_string(i.mtu), i.state, i.driver, or_dash(i.pci),
                    "net_af_packet0,iface=" + i.name});
  return section("Network interfaces of the kernel", rows, "none");
}

std::string pci_functions(const Host& host) {
  std::vector<Row> rows{
      {"ADDRESS", "ID", "DRIVER", "NUMA", "IOMMU GROUP", "VFS", "KIND", "DPDK CAN OPEN IT"}};
  for (const PciFunction& f : host.functions) {
    const std::string vfs =
        f.total_vfs == 0 ? "-" : std::to_string(f.vfs) + " of " + std::to_string(f.total_vfs);
    const std::string id = f.vendor.size() > 2 && f.device.size() > 2
                               ? f.vendor.substr(2) + ":" + f.device.substr(2)
                               : "-";
    rows.push_back({f.address, id, or_dash(f.driver), node(f.numa_node), or_dash(f.iommu_group),
                    vfs, f.is_vf() ? "VF of " + f.physical : "physical",
                    yes_no(usable_by_dpdk(f.driver))});
  }
  return section("Network functions on the PCI bus", rows, "none");
}

// The drivers in lines of 98 columns.
std::string dpdk(const Host& host) {
  std::string drivers;
  std::string line = "   ";
  for (const std::string& driver : host.dpdk.drivers) {
    if (line.size() + driver.size() > 98) {
      drivers += line + "\n";
      line = "   ";
    }
    line += " " + driver;
  }
  drivers += line + "\n";
  std::string out = "DPDK\n  " + host.dpdk.version + "\n  ";
  if (host.dpdk.drivers_dir.empty()) return out + "network drivers: linked into the program\n\n";
  return out + "network drivers in " + host.dpdk.drivers_dir.string() + ":\n" +
         (host.dpdk.drivers.empty() ? "    none\n" : drivers) + "\n";
}

std::string huge_pages(const Host& host) {
  std::vector<Row> rows{{"NUMA", "SIZE", "TOTAL", "FREE"}};
  for (const HugePages& h : host.huge_pages)
    rows.push_back(
        {node(h.node), size(h.kilobytes * 1024), std::to_string(h.total), std::to_string(h.free)});
  return section("Hugepages", rows, "this kernel has none");
}

std::string verbs(const Host& host) {
  std::vector<Row> rows{{"DEVICE", "STATE", "LINK LAYER", "INTERFACE"}};
  for (const VerbsDevice& v : host.verbs)
    rows.push_back({v.name, or_dash(v.state), or_dash(v.link_layer), or_dash(v.netdev)});
  return section("Verbs (RDMA) devices", rows, "none");
}

// Capabilities that are not held are marked (no).
std::string limits(const Host& host) {
  const Limits& l = host.limits;
  std::string held;
  for (const auto& [name, capability] :
       {std::pair{"NET_RAW", Capability::net_raw}, std::pair{"NET_ADMIN", Capability::net_admin},
        std::pair{"SYS_ADMIN", Capability::sys_admin}, std::pair{"IPC_LOCK", Capability::ipc_lock}})
    held += std::string(held.empty() ? "" : " ") + name + (l.has(capability) ? "" : " (no)");
  const std::string files =
      l.open_files == Limits::kUnlimited ? "unlimited" : std::to_string(l.open_files);
  return "Limits\n" +
         table(
             {{"capabilities", held},
              {"locked memory", size(l.locked_memory) + ", at most " + size(l.locked_memory_hard)},
              {"open files", files},
              {"ptrace_scope", l.ptrace_scope ? std::to_string(*l.ptrace_scope) : "none"}}) +
         "\n";
}

// Processors, IOMMU, kernel modules.
std::string kernel(const Host& host) {
  const Processors& p = host.processors;
  const std::string iommu = host.iommu                            ? "yes"
                            : host.unsafe_noiommu.value_or(false) ? "no, and vfio does without"
                                                                  : "no";
  return "Processors and kernel\n" +
         table({{"processors", std::to_string(p.count)},
                {"constant, nonstop TSC", yes_no(p.constant_tsc && p.nonstop_tsc)},
                {"IOMMU", iommu},
                {"vfio-pci loaded", yes_no(host.vfio_pci)},
                {"ib_uverbs loaded", yes_no(host.ib_uverbs)}}) +
         "\n";
}

}  // namespace

std::string host_report(const Host& host) {
  return interfaces(host) + pci_functions(host) + dpdk(host) + huge_pages(host) + verbs(host) +
         limits(host) + kernel(host);
}

std::string advice_report(const std::vector<Advice>& advice) {
  if (advice.empty()) return "Missing\n  nothing\n";
  std::string out = "Missing (needed only for the purpose named)\n";
  for (const Advice& a : advice)
    out += "  * " + a.lack + "\n      why:  " + a.why + "\n      mend: " + a.command + "\n";
  return out;
}

std::string config_report(std::span<const base::ConfigTable> tables,
                          std::span<const std::string> unknown) {
  std::vector<Row> rows{{"VARIABLE", "VALUE", "DEFAULT", "UNIT", "MEANING"}};
  std::string wrong;
  for (const std::string& name : unknown)
    wrong += "unknown: " + name +
             " is no configuration variable and has no effect; unset it or mend its name\n";
  for (const base::ConfigTable& vars : tables) {
    for (const base::ConfigVar& var : vars)
      rows.push_back({std::string(var.name), or_dash(vars.value(var.name)),
                      or_dash(std::string(var.default_value)), or_dash(std::string(var.unit)),
                      std::string(var.meaning)});
    for (const std::string& sentence : vars.problems()) wrong += "bad: " + sentence + "\n";
  }
  return table(rows, "") + wrong;
}

}  // namespace viaduct::info
