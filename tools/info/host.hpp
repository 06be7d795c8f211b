// What this machine has of what Viaduct can use: interfaces, PCI functions, hugepages, verbs
// devices, DPDK, limits, processors. look() only reads files below a root directory (/sys, /proc,
// /dev), so that tests can show it any machine; it never starts DPDK and never touches a device.
// What is missing is advice.hpp's to say.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace viaduct::info {

// A network interface of the kernel with an Ethernet address (ARPHRD_ETHER).
struct Interface {
  std::string name, mac, state, driver;  // state: operstate; driver: kind if virtual
  std::string pci;                       // "0000:3b:00.0"; empty: not a PCI device
  unsigned mtu = 0;
  bool up = false;  // administratively up (IFF_UP), so probably in use
};

// A network function on the PCI bus (class 02), whichever driver has it.
struct PciFunction {
  std::string address, vendor, device, driver;  // ids as "0x8086"; driver empty: none
  int numa_node = -1;                           // -1: not known
  std::string iommu_group;                      // empty: none
  bool group_denied = false;                    // /dev/vfio has the group, but not for this user
  std::string physical;                         // a VF: address of its PF
  unsigned total_vfs = 0, vfs = 0;              // a PF: virtual functions it can make, has made

  bool is_vf() const { return !physical.empty(); }
};

// Hugepages of one size on one NUMA node.
struct HugePages {
  int node = -1;                                     // -1: the kernel does not tell nodes apart
  std::uint64_t kilobytes = 0, total = 0, free = 0;  // size of a page; numbers of pages
};

// An RDMA device that the kernel knows. libibverbs may have no driver for it.
struct VerbsDevice {
  std::string name, state, link_layer, netdev;  // of its first port
};

// The DPDK that the program runs with. `drivers_dir` empty: drivers are linked into the program.
struct Dpdk {
  std::string version;
  std::filesystem::path drivers_dir;
  std::vector<std::string> drivers;  // network drivers found there: "memif", "ice"...
};

// Numbers of linux/capability.h.
enum class Capability : unsigned {
  net_admin = 12,
  net_raw = 13,
  ipc_lock = 14,
  sys_ptrace = 19,
  sys_admin = 21,
};

// What this process may do.
struct Limits {
  // Soft limits; kUnlimited: none.
  static constexpr std::uint64_t kUnlimited = ~std::uint64_t{0};
  std::uint64_t locked_memory = 0, locked_memory_hard = 0, open_files = 0;  // bytes, bytes, number
  std::uint64_t capabilities = 0;   // the effective ones, a bit each
  std::optional<int> ptrace_scope;  // none: the kernel is without Yama

  bool has(Capability c) const { return (capabilities >> static_cast<unsigned>(c) & 1) != 0; }
};

struct Processors {
  unsigned count = 0;
  bool constant_tsc = false, nonstop_tsc = false;  // of some processor at least
};

// All of it. Plain data; strings are empty and lists short where a file could not be read.
struct Host {
  std::vector<Interface> interfaces;
  std::vector<PciFunction> functions;
  std::vector<HugePages> huge_pages;
  std::vector<VerbsDevice> verbs;
  Dpdk dpdk;
  Limits limits;
  Processors processors;
  bool iommu = false;  // groups exist: DMA of a device can be confined to a process
  bool vfio_pci = false, ib_uverbs = false;  // the kernel's drivers are loaded
  // vfio's switch to do without an IOMMU; none where vfio is not loaded or built without it.
  std::optional<bool> unsafe_noiommu;

  // The first kernel interface on a PCI function, or nullptr.
  const Interface* interface_on(const std::string& address) const;
};

// Whether DPDK can use a PCI function through this kernel driver: vfio and uio drivers, or the
// kernel's own where it shares the device with user space (bifurcated drivers).
bool usable_by_dpdk(const std::string& driver);

// Where to look.
struct Where {
  std::filesystem::path root = "/";
  std::string dpdk_version;
  std::filesystem::path dpdk_drivers;  // absolute, looked up below root
};
// Reads everything once. Never throws for what is missing.
Host look(const Where& where);

}  // namespace viaduct::info
