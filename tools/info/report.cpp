#include "tools/info/report.hpp"

#include <algorithm>
#include <array>
#include <string_view>

namespace viaduct::info {
namespace {

using Row = std::vector<std::string>;

// Columns as wide as their widest cell; the first row is the heading.
std::string table(const std::vector<Row>& rows, std::string_view indent = "  ") {
  std::vector<std::size_t> widths;
  for (const Row& row : rows) {
    widths.resize(std::max(widths.size(), row.size()));
    for (std::size_t c = 0; c < row.size(); ++c) widths[c] = std::max(widths[c], row[c].size());
  }
  std::string out;
  for (const Row& row : rows) {
    std::string line(indent);
    for (std::size_t c = 0; c < row.size(); ++c) {
      line += row[c];
      line.append(widths[c] - row[c].size() + 2, ' ');
    }
    line.erase(line.find_last_not_of(' ') + 1);
    out += line + "\n";
  }
  return out;
}

std::string section(std::string_view title, const std::vector<Row>& rows, std::string_view none) {
  std::string out = std::string(title) + "\n";
  return out + (rows.size() > 1 ? table(rows) : "  " + std::string(none) + "\n") + "\n";
}

std::string or_dash(const std::string& text) {
  return text.empty() ? "-" : text;
}
std::string yes_no(bool yes) {
  return yes ? "yes" : "no";
}
std::string node(int n) {
  return n < 0 ? "-" : std::to_string(n);
}

std::string size(std::uint64_t bytes) {
  if (bytes == Limits::kUnlimited) return "unlimited";
  constexpr std::array<std::string_view, 5> kUnits{" B", " KiB", " MiB", " GiB", " TiB"};
  std::size_t unit = 0;
  const auto too_long = [&] { return bytes >= 10240 || (bytes >= 1024 && bytes % 1024 == 0); };
  for (; too_long() && unit + 1 < kUnits.size(); ++unit) bytes /= 1024;
  return std::to_string(bytes) + std::string(kUnits[unit]);
}

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

std::string limits(const Host& host) {
  const Limits& l = host.limits;
  std::string held;
  for (const auto& [name, capability] :
       {std::pair{"NET_RAW", Capability::net_raw}, std::pair{"NET_ADMIN", Capability::net_admin},
        std::pair{"SYS_ADMIN", Capability::sys_admin}, std::pair{"IPC_LOCK", Capability::ipc_lock}})
    held += std::string(held.empty() ? "" : " ") + name + (l.has(capability) ? "" : " (no)");
  const std::string files =
      l.open_files == Limits::kUnlimited ? "unlimited" : std::to_string(l.open_files);
  const std::string shm =
      l.shared_memory ? size(*l.shared_memory) + ", " + size(*l.shared_memory_free) + " free"
                      : "absent";
  return "Limits\n" +
         table(
             {{"capabilities", held},
              {"locked memory", size(l.locked_memory) + ", at most " + size(l.locked_memory_hard)},
              {"open files", files},
              {"/dev/shm", shm},
              {"ptrace_scope", l.ptrace_scope ? std::to_string(*l.ptrace_scope) : "none"}}) +
         "\n";
}

std::string kernel(const Host& host) {
  const Processors& p = host.processors;
  const std::string iommu = host.iommu            ? "yes"
                            : host.unsafe_noiommu ? "no, and vfio does without"
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

std::string knob_report(std::span<const link::Knob> knobs, const KnobProblems& problems) {
  std::vector<Row> rows{{"KNOB", "VALUE", "DEFAULT", "UNIT", "MEANING"}};
  for (const link::Knob& knob : knobs) {
    const std::string name(knob.name);
    rows.push_back({name, or_dash(link::knob_text(knob.name)),
                    or_dash(std::string(knob.default_value)), or_dash(std::string(knob.unit)),
                    std::string(knob.meaning)});
  }
  std::string out = table(rows, "");
  for (const std::string& name : problems.unknown)
    out += "unknown: " + name + " is no knob and has no effect; unset it or mend its name\n";
  for (const std::string& sentence : problems.bad) out += "bad: " + sentence + "\n";
  return out;
}

}  // namespace viaduct::info
