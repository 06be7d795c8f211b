// The rules of advice.hpp, one function for each subject. Each lack names a purpose, because a host
// needs only what its user wants to do.
#include "tools/info/advice.hpp"

#include <algorithm>
#include <set>
#include <string_view>

namespace viaduct::info {
namespace {

using List = std::vector<Advice>;

constexpr std::uint64_t kMegabyte = std::uint64_t{1} << 20;

// Where a PCI function's directory is, in a command.
std::string sysfs(const std::string& address) {
  return "/sys/bus/pci/devices/" + address;
}

// None reserved, all in use, or none on a NUMA node that has a network device.
void about_huge_pages(const Host& host, List& out) {
  const auto sum = [&](auto member) {
    std::uint64_t n = 0;
    for (const HugePages& h : host.huge_pages) n += h.*member;
    return n;
  };
  const std::uint64_t total = sum(&HugePages::total);
  if (total == 0) {
    out.push_back({"hugepages: none reserved",
                   "ports on PCI devices need them unless there is an IOMMU, and all ports have "
                   "fewer TLB misses with them; vdevs (memif, af_packet) also work without",
                   "sysctl -w vm.nr_hugepages=512"});
    return;
  }
  if (sum(&HugePages::free) == 0)
    out.push_back({"hugepages: all " + std::to_string(total) + " are in use",
                   "a port opened now falls back to ordinary pages",
                   "sysctl -w vm.nr_hugepages=" + std::to_string(total + 512)});
  // A NIC whose node has no hugepages gets its frames from another node: each DMA crosses between
  // the sockets.
  std::set<int> with_nic;
  for (const PciFunction& f : host.functions)
    if (f.numa_node >= 0) with_nic.insert(f.numa_node);
  for (const int node : with_nic) {
    const auto here = [&](const HugePages& h) { return h.node == node; };
    const auto pages = [&](const HugePages& h) { return here(h) && h.total > 0; };
    const auto& all = host.huge_pages;
    if (std::none_of(all.begin(), all.end(), here) || std::any_of(all.begin(), all.end(), pages))
      continue;
    const std::string n = std::to_string(node);
    out.push_back({"hugepages: none on NUMA node " + n + ", where a network device is",
                   "its frames would cross between the processors' memories",
                   "echo 512 > /sys/devices/system/node/node" + n +
                       "/hugepages/hugepages-2048kB/nr_hugepages"});
  }
}

// Functions that could make virtual functions and have made none.
void about_virtual_functions(const Host& host, List& out) {
  for (const PciFunction& f : host.functions) {
    if (f.total_vfs == 0 || f.vfs > 0) continue;
    // Two are enough to try; the user may ask for more.
    const unsigned some = std::min(f.total_vfs, 2u);
    out.push_back(
        {"virtual functions: " + f.address + " has made 0 of " + std::to_string(f.total_vfs),
         "each process needs a port of its own, and the kernel keeps the physical one",
         "echo " + std::to_string(some) + " > " + sysfs(f.address) + "/sriov_numvfs"});
  }
}

// Functions to bind to vfio-pci, and what vfio-pci needs. Only functions whose loss would do no
// harm are proposed: a physical one keeps its kernel driver when it can make virtual functions, and
// a function whose interface is up may carry the login of the user who reads this.
void about_binding(const Host& host, List& out) {
  bool wanted = false;
  for (const PciFunction& f : host.functions) {
    if (usable_by_dpdk(f.driver)) {
      wanted = wanted || f.driver == "vfio-pci";
      continue;
    }
    const Interface* interface = host.interface_on(f.address);
    if ((interface != nullptr && interface->up) || f.total_vfs > 0) continue;
    wanted = true;
    const std::string name = interface != nullptr ? " (" + interface->name + ")" : "";
    out.push_back(
        {"driver: " + f.address + name + " is bound to " + (f.driver.empty() ? "none" : f.driver),
         "DPDK opens a port on it only through vfio-pci",
         "dpdk-devbind.py -b vfio-pci " + f.address});
  }
  const bool any_vfs = std::any_of(host.functions.begin(), host.functions.end(),
                                   [](const PciFunction& f) { return f.total_vfs > 0; });
  if (!wanted && !any_vfs) return;
  if (!host.vfio_pci)
    out.push_back({"kernel module vfio-pci: not loaded", "it gives PCI devices to user space",
                   "modprobe vfio-pci"});
  if (!host.iommu && !host.unsafe_noiommu)
    out.push_back(
        {"IOMMU: off or absent",
         "vfio-pci refuses devices without one; switch it on in the firmware's setup and, "
         "on Intel's processors, on the kernel's command line",
         "sed -i 's/^GRUB_CMDLINE_LINUX=\"/&intel_iommu=on /' /etc/default/grub && "
         "update-grub  (then reboot)"});
  else if (!host.iommu && !*host.unsafe_noiommu)
    out.push_back({"IOMMU: off or absent",
                   "vfio-pci refuses devices without one; switch it on with intel_iommu=on (Intel) "
                   "on the kernel's command line, or, if every user of the machine is trusted, do "
                   "without",
                   "echo 1 > /sys/module/vfio/parameters/enable_unsafe_noiommu_mode"});
  for (const PciFunction& f : host.functions)
    if (f.group_denied && f.driver == "vfio-pci")
      out.push_back({"/dev/vfio/" + f.iommu_group + ": closed to this user",
                     "who opens a port on " + f.address + " must own its IOMMU group",
                     "sudo chown $USER /dev/vfio/" + f.iommu_group});
}

// No driver at all, or one of the four that need no hardware is missing.
void about_dpdk(const Host& host, List& out) {
  if (host.dpdk.drivers_dir.empty()) return;  // drivers are linked into the program
  const auto missing = [&](std::string_view name) {
    const auto& all = host.dpdk.drivers;
    return std::find(all.begin(), all.end(), name) == all.end();
  };
  if (host.dpdk.drivers.empty()) {
    out.push_back({"DPDK network drivers: none in " + host.dpdk.drivers_dir.string(),
                   "no port can be opened", "apt-get install librte-meta-net"});
    return;
  }
  struct Row {
    std::string_view name, why;
  };
  for (const Row row : {Row{"memif", "processes on one machine talk through it at memory speed"},
                        Row{"af_packet", "it opens a port on any network interface"},
                        Row{"af_xdp", "it opens a port on a network interface with fewer copies"},
                        Row{"ring", "two ports in one process are made of it"}})
    if (missing(row.name))
      out.push_back({"DPDK driver " + std::string(row.name) + ": not installed",
                     std::string(row.why), "apt-get install librte-meta-net"});
}

// No RDMA device, or none that user space can open. The command names an interface that is up.
void about_verbs(const Host& host, List& out) {
  if (host.verbs.empty()) {
    const auto up = std::find_if(host.interfaces.begin(), host.interfaces.end(),
                                 [](const Interface& i) { return i.up && i.name != "lo"; });
    const std::string netdev = up == host.interfaces.end() ? "eth0" : up->name;
    out.push_back({"verbs devices: none",
                   "Virtual Interfaces run on RDMA devices; Soft-RoCE makes one of any interface "
                   "that has an IPv4 address (without the kernel module: `viaduct-vm COMMAND` runs "
                   "a command in a guest that has two such devices)",
                   "modprobe rdma_rxe && rdma link add rxe0 type rxe netdev " + netdev});
  } else if (!host.ib_uverbs) {
    out.push_back({"kernel module ib_uverbs: not loaded",
                   "user space cannot open the verbs devices", "modprobe ib_uverbs"});
  }
}

// Capabilities and limits of this process.
void about_rights(const Host& host, List& out) {
  const Limits& l = host.limits;
  if (!l.has(Capability::net_raw) || !l.has(Capability::net_admin))
    out.push_back(
        {"capabilities CAP_NET_RAW and CAP_NET_ADMIN: not held",
         "af_packet ports on this machine's interfaces need both; memif and ring ports do "
         "not, nor do ports inside `unshare -Urn`",
         "setcap cap_net_raw,cap_net_admin+ep build/tools/viaduct-pingpong"});
  if (!l.has(Capability::sys_admin) || !l.has(Capability::net_admin))
    out.push_back({"capability CAP_SYS_ADMIN: not held",
                   "af_xdp ports and emulated hosts (viaduct-testbed) need it",
                   "sudo -s  (containers: --privileged)"});
  const bool vfio = std::any_of(host.functions.begin(), host.functions.end(),
                                [](const PciFunction& f) { return f.driver == "vfio-pci"; });
  // What one port needs at least: 128 MiB for the frames on a PCI function, 8 MiB elsewhere.
  const std::uint64_t needed = (vfio ? 128 : 8) * kMegabyte;
  if (l.locked_memory < needed && !l.has(Capability::ipc_lock))
    out.push_back(
        {"limit on locked memory: " + std::to_string(l.locked_memory / 1024) + " KiB",
         std::string("af_packet rings, af_xdp frames, registered memory and the frames of ") +
             "PCI devices are locked: " + (vfio ? "128" : "8") + " MiB a port at least",
         l.locked_memory_hard >= needed
             ? "ulimit -l " + (l.locked_memory_hard == Limits::kUnlimited
                                   ? "unlimited"
                                   : std::to_string(l.locked_memory_hard / 1024))
             : "echo '* - memlock unlimited' > /etc/security/limits.d/viaduct.conf  "
               "(then log in again)"});
  if (l.open_files < 1024)
    out.push_back({"limit on open files: " + std::to_string(l.open_files),
                   "DPDK and shared-memory segments need several descriptors for each process",
                   "ulimit -n 1024"});
  // ptrace_scope 3 forbids process_vm_readv() to everybody, 1 and 2 to processes without
  // CAP_SYS_PTRACE.
  if (l.ptrace_scope && *l.ptrace_scope > 0 &&
      (*l.ptrace_scope >= 3 || !l.has(Capability::sys_ptrace)))
    out.push_back(
        {"kernel.yama.ptrace_scope: " + std::to_string(*l.ptrace_scope),
         "processes of one user may not read each other's memory, so long messages on one "
         "host take two copies in place of one",
         *l.ptrace_scope >= 3 ? "echo kernel.yama.ptrace_scope=0 > /etc/sysctl.d/99-viaduct.conf  "
                                "(then reboot: 3 cannot be undone at run time)"
                              : "sysctl -w kernel.yama.ptrace_scope=0"});
}

// Too few processors, or a time-stamp counter that timeouts cannot rely on.
void about_processors(const Host& host, List& out) {
  if (host.processors.count == 1)
    out.push_back({"processors: one",
                   "two processes that poll take turns, so round trips last a scheduler's slice",
                   "add a processor to this virtual machine"});
  if (!host.processors.constant_tsc || !host.processors.nonstop_tsc)
    out.push_back({"time stamp counter: not known to be constant and nonstop",
                   "timeouts are measured with it and would be wrong when the frequency changes",
                   "in a QEMU guest: -cpu host,+invtsc"});
}

}  // namespace

std::vector<Advice> advise(const Host& host) {
  List out;
  about_dpdk(host, out);
  about_virtual_functions(host, out);
  about_binding(host, out);
  about_huge_pages(host, out);
  about_rights(host, out);
  about_verbs(host, out);
  about_processors(host, out);
  return out;
}

}  // namespace viaduct::info
