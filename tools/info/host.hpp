// What this machine has of what Viaduct can use. Only reads files below a root directory, so that
// tests can show it any machine; never starts DPDK, never touches a device.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace viaduct::info {

// A network interface of the kernel.
struct Interface {
  std::string name, mac, state, driver;
  std::string pci;  // "0000:3b:00.0"; empty: not a PCI device
  unsigned mtu = 0;
  bool up = false;  // administratively: somebody uses it
};

// A network function on the PCI bus, whichever driver has it.
struct PciFunction {
  std::string address, vendor, device, driver;  // driver empty: bound to none
  int numa_node = -1;
  std::string iommu_group;    // empty: none
  bool group_denied = false;  // /dev/vfio has the group, but not for this user
  std::string physical;       // a VF: address of its PF
  unsigned total_vfs = 0, vfs = 0;

  bool is_vf() const { return !physical.empty(); }
};

struct HugePages {
  int node = -1;  // -1: the kernel does not tell nodes apart
  std::uint64_t kilobytes = 0, total = 0, free = 0;
};

struct VerbsDevice {
  std::string name, state, link_layer, netdev;  // of its first port
};

struct Dpdk {
  std::string version;
  std::filesystem::path drivers_dir;
  std::vector<std::string> drivers;  // network drivers found there: "memif", "ice"...
};

enum class Capability : unsigned {
  net_admin = 12,
  net_raw = 13,
  ipc_lock = 14,
  sys_ptrace = 19,
  sys_admin = 21,
};

struct Limits {
  // Soft limits; kUnlimited: none.
  static constexpr std::uint64_t kUnlimited = ~std::uint64_t{0};
  std::uint64_t locked_memory = 0, locked_memory_hard = 0, open_files = 0;
  std::uint64_t capabilities = 0;  // the effective ones
  std::optional<int> ptrace_scope;

  bool has(Capability c) const { return (capabilities >> static_cast<unsigned>(c) & 1) != 0; }
};

struct Processors {
  unsigned count = 0;
  bool constant_tsc = false, nonstop_tsc = false;
};

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

// A driver through which DPDK uses a PCI function: vfio and uio ones, or the kernel's own where it
// shares the device with user space (bifurcated drivers).
bool usable_by_dpdk(const std::string& driver);

struct Where {
  std::filesystem::path root = "/";
  std::string dpdk_version;
  std::filesystem::path dpdk_drivers;  // absolute, looked up below root
};
Host look(const Where& where);

}  // namespace viaduct::info
