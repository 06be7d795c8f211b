// viaduct-info on machines that this test makes up.
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <fstream>

#include "drivers/port/config_vars.hpp"
#include "tools/info/advice.hpp"
#include "tools/info/report.hpp"

namespace viaduct::info {
namespace {

namespace fs = std::filesystem;
using namespace std::string_literals;

constexpr const char* kAllRights = "CapEff:\t000001ffffffffff\n";
constexpr const char* kNoRights = "CapEff:\t0000000000000000\n";

// A machine as /sys and /proc tell of it. A healthy one without network to begin with.
class Machine {
 public:
  Machine() {
    std::string pattern = (fs::temp_directory_path() / "viaduct-info-XXXXXX").string();
    if (mkdtemp(pattern.data()) == nullptr) throw std::runtime_error("mkdtemp");
    root_ = pattern;
    huge_pages(0, 2048, 512, 500);
    file("proc/self/status", kAllRights);
    limits("8388608", "8388608");
    file("proc/cpuinfo",
         "processor\t: 0\nflags\t\t: fpu constant_tsc nonstop_tsc sse\n\n"
         "processor\t: 1\nflags\t\t: fpu constant_tsc nonstop_tsc sse\n");
    verbs("mlx5_0", "4: ACTIVE");
    fs::create_directories(root_ / "sys/class/infiniband_verbs");
    for (const char* driver : {"memif", "af_packet", "af_xdp", "ring", "ice"}) pmd(driver);
  }
  ~Machine() { fs::remove_all(root_); }

  void file(const fs::path& path, const std::string& text) {
    fs::create_directories((root_ / path).parent_path());
    std::ofstream(root_ / path) << text;
  }
  void remove(const fs::path& path) { fs::remove_all(root_ / path); }

  void huge_pages(int node, int kilobytes, int total, int free) {
    const fs::path dir = std::string("sys/devices/system/node/node").append(std::to_string(node)) +
                         "/hugepages/hugepages-" + std::to_string(kilobytes) + "kB";
    file(dir / "nr_hugepages", std::to_string(total) + "\n");
    file(dir / "free_hugepages", std::to_string(free) + "\n");
  }
  void limits(const std::string& soft, const std::string& hard) {
    file("proc/self/limits",
         "Limit                     Soft Limit           Hard Limit           Units     \n"
         "Max open files            20000                20000                files     \n"
         "Max locked memory         " +
             soft + "              " + hard + "              bytes     \n");
  }
  void verbs(const std::string& name, const std::string& state) {
    const fs::path port = "sys/class/infiniband/" + name + "/ports/1";
    file(port / "state", state + "\n");
    file(port / "link_layer", "Ethernet\n");
    file(port / "gid_attrs/ndevs/0", "eth0\n");
  }
  void pmd(const std::string& driver) {
    for (const char* end : {".so", ".so.23", ".so.23.0"})
      file(kPmds / ("librte_net_" + driver + end), "");
  }

  // A network function on the PCI bus. Empty driver: bound to none.
  void pci(const std::string& address, const std::string& driver, int node = 0) {
    const fs::path dir = pci_dir(address);
    file(dir / "class", "0x020000\n");
    file(dir / "vendor", "0x8086\n");
    file(dir / "device", "0x1592\n");
    file(dir / "numa_node", std::to_string(node) + "\n");
    link("sys/bus/pci/devices/" + address, dir);
    if (!driver.empty()) {
      fs::create_directories(root_ / "sys/bus/pci/drivers" / driver);
      link(dir / "driver", "sys/bus/pci/drivers/" + driver);
    }
  }
  void sriov(const std::string& address, int total, int made) {
    file(pci_dir(address) / "sriov_totalvfs", std::to_string(total) + "\n");
    file(pci_dir(address) / "sriov_numvfs", std::to_string(made) + "\n");
  }
  void vf(const std::string& address, const std::string& physical, const std::string& driver) {
    pci(address, driver);
    link(pci_dir(address) / "physfn", pci_dir(physical));
    fs::create_directories(root_ / "sys/kernel/iommu_groups/7");
    link(pci_dir(address) / "iommu_group", "sys/kernel/iommu_groups/7");
  }
  // An interface; `between`: levels between it and its PCI function, as virtio has.
  void interface(const std::string& name, const std::string& pci, bool up,
                 const std::string& between = "") {
    const fs::path device = pci.empty() ? fs::path() : pci_dir(pci) / between;
    const fs::path dir =
        pci.empty() ? fs::path("sys/devices/virtual/net") / name : device / "net" / name;
    file(dir / "type", "1\n");
    file(dir / "address", "02:00:00:00:00:07\n");
    file(dir / "operstate", up ? "up\n" : "down\n");
    file(dir / "mtu", "9000\n");
    file(dir / "flags", up ? "0x1003\n" : "0x1002\n");
    file(dir / "uevent", pci.empty() ? "DEVTYPE=bridge\nINTERFACE=x\n" : "INTERFACE=x\n");
    if (!pci.empty()) link(dir / "device", device);
    link("sys/class/net/" + name, dir);
  }

  Host look() const {
    return info::look({.root = root_, .dpdk_version = "DPDK 22.11", .dpdk_drivers = "/" / kPmds});
  }

 private:
  static fs::path pci_dir(const std::string& address) {
    return "sys/devices/pci0000:3a/0000:3a:00.0/" + address;
  }
  void link(const fs::path& from, const fs::path& to) {
    fs::create_directories((root_ / from).parent_path());
    fs::create_symlink(root_ / to, root_ / from);
  }

  inline static const fs::path kPmds = "usr/lib/dpdk/pmds-23.0";
  fs::path root_;
};

// The command for what lacks and contains `lack`; empty when nothing does.
std::string mends(const Host& host, const std::string& lack) {
  for (const Advice& a : advise(host))
    if (a.lack.find(lack) != std::string::npos) return a.command;
  return "";
}

TEST(Info, HealthyMachineLacksNothing) {
  const Machine machine;
  const Host host = machine.look();
  EXPECT_EQ(advice_report(advise(host)), "Missing\n  nothing\n");
  EXPECT_EQ(host.processors.count, 2u);
  EXPECT_EQ(host.dpdk.drivers.size(), 5u);  // each once, whatever names it has
  EXPECT_EQ(host.limits.open_files, 20000u);
  EXPECT_EQ(host.limits.locked_memory, 8388608u);
}

TEST(Info, EmptyTreeIsNoError) {
  const Host host = look({.root = "/nonexistent-tree", .dpdk_version = "", .dpdk_drivers = "/x"});
  EXPECT_TRUE(host.interfaces.empty());
  EXPECT_FALSE(advise(host).empty());
  EXPECT_NE(host_report(host).find("this kernel has none"), std::string::npos);
}

TEST(Info, PhysicalFunctionWithoutVirtualOnes) {
  Machine machine;
  machine.pci("0000:3b:00.0", "ice", 1);
  machine.sriov("0000:3b:00.0", 64, 0);
  machine.interface("ens1", "0000:3b:00.0", true);
  const Host host = machine.look();
  ASSERT_EQ(host.functions.size(), 1u);
  EXPECT_EQ(host.functions[0].total_vfs, 64u);
  EXPECT_EQ(host.functions[0].numa_node, 1);
  EXPECT_EQ(host.functions[0].driver, "ice");
  ASSERT_EQ(host.interfaces.size(), 1u);
  EXPECT_EQ(host.interfaces[0].pci, "0000:3b:00.0");
  EXPECT_EQ(mends(host, "virtual functions"),
            "echo 2 > /sys/bus/pci/devices/0000:3b:00.0/sriov_numvfs");
  EXPECT_EQ(mends(host, "kernel module vfio-pci"), "modprobe vfio-pci");
  EXPECT_NE(mends(host, "IOMMU"), "");
  EXPECT_EQ(mends(host, "is bound to"), "") << "the physical function must stay with the kernel";
}

TEST(Info, OneVirtualFunctionAtMost) {
  Machine machine;
  machine.pci("0000:3b:00.0", "ice");
  machine.sriov("0000:3b:00.0", 1, 0);
  EXPECT_EQ(mends(machine.look(), "virtual functions"),
            "echo 1 > /sys/bus/pci/devices/0000:3b:00.0/sriov_numvfs");
}

TEST(Info, VirtualFunctionBoundToTheKernel) {
  Machine machine;
  machine.pci("0000:3b:00.0", "ice");
  machine.sriov("0000:3b:00.0", 64, 2);
  machine.vf("0000:3b:01.0", "0000:3b:00.0", "iavf");
  machine.interface("ens1v0", "0000:3b:01.0", false);
  machine.vf("0000:3b:01.1", "0000:3b:00.0", "vfio-pci");
  const Host host = machine.look();
  EXPECT_EQ(mends(host, "virtual functions"), "");
  EXPECT_EQ(mends(host, "0000:3b:01.0 (ens1v0) is bound to iavf"),
            "dpdk-devbind.py -b vfio-pci 0000:3b:01.0");
  EXPECT_EQ(mends(host, "0000:3b:01.1"), "");
  EXPECT_EQ(mends(host, "kernel module vfio-pci"), "");
  EXPECT_EQ(mends(host, "IOMMU"), "");
  const std::string report = host_report(host);
  EXPECT_NE(report.find("VF of 0000:3b:00.0"), std::string::npos);
  EXPECT_NE(report.find("2 of 64"), std::string::npos);
  EXPECT_NE(report.find("8086:1592"), std::string::npos);
}

TEST(Info, VirtualFunctionBoundToNone) {
  Machine machine;
  machine.vf("0000:3b:01.0", "0000:3b:00.0", "");
  EXPECT_EQ(mends(machine.look(), "0000:3b:01.0 is bound to none"),
            "dpdk-devbind.py -b vfio-pci 0000:3b:01.0");
}

TEST(Info, NeverTakesAnInterfaceThatIsUp) {
  Machine machine;
  machine.pci("0000:00:03.0", "virtio-pci", -1);
  machine.interface("eth0", "0000:00:03.0", true, "virtio2");
  const Host host = machine.look();
  ASSERT_EQ(host.interfaces.size(), 1u);
  EXPECT_EQ(host.interfaces[0].pci, "0000:00:03.0") << "found through virtio's own level";
  EXPECT_EQ(mends(host, "driver"), "");
}

TEST(Info, SharedDriversNeedNoBinding) {
  Machine machine;
  machine.pci("0000:3b:00.0", "mlx5_core");
  machine.interface("ens1", "0000:3b:00.0", false);
  EXPECT_EQ(mends(machine.look(), "is bound to"), "");
  EXPECT_TRUE(usable_by_dpdk("mlx5_core"));
  EXPECT_TRUE(usable_by_dpdk("vfio-pci"));
  EXPECT_FALSE(usable_by_dpdk("ice"));
  EXPECT_FALSE(usable_by_dpdk(""));
}

TEST(Info, VfioWithoutIommuAsAllowed) {
  Machine machine;
  machine.pci("0000:3b:00.0", "vfio-pci");
  EXPECT_NE(mends(machine.look(), "IOMMU").find("intel_iommu=on"), std::string::npos)
      << "a kernel may lack the switch";
  machine.file("sys/module/vfio/parameters/enable_unsafe_noiommu_mode", "N\n");
  EXPECT_EQ(mends(machine.look(), "IOMMU"),
            "echo 1 > /sys/module/vfio/parameters/enable_unsafe_noiommu_mode");
  machine.file("sys/module/vfio/parameters/enable_unsafe_noiommu_mode", "Y\n");
  EXPECT_EQ(mends(machine.look(), "IOMMU"), "");
}

TEST(Info, VfioForAnOrdinaryUser) {
  Machine machine;
  machine.vf("0000:3b:01.0", "0000:3b:00.0", "vfio-pci");
  machine.file("proc/self/status", kNoRights);
  Host host = machine.look();
  EXPECT_EQ(mends(host, "/dev/vfio"), "") << "not there";
  EXPECT_NE(mends(host, "locked memory: 8192 KiB"), "") << "its frames count as locked";
  machine.file("dev/vfio/7", "");
  host = machine.look();
  EXPECT_EQ(mends(host, "/dev/vfio"), "") << "open to us";
  host.functions[0].group_denied = true;  // a file that root may not open cannot be made here
  EXPECT_EQ(mends(host, "/dev/vfio/7"), "sudo chown $USER /dev/vfio/7");
}

TEST(Info, NoHugePages) {
  Machine machine;
  machine.huge_pages(0, 2048, 0, 0);
  EXPECT_EQ(mends(machine.look(), "hugepages: none reserved"), "sysctl -w vm.nr_hugepages=512");
}

TEST(Info, HugePagesAllInUse) {
  Machine machine;
  machine.huge_pages(0, 2048, 100, 0);
  EXPECT_EQ(mends(machine.look(), "all 100 are in use"), "sysctl -w vm.nr_hugepages=612");
}

TEST(Info, HugePagesOnTheWrongNode) {
  Machine machine;
  machine.huge_pages(1, 2048, 0, 0);
  EXPECT_EQ(mends(machine.look(), "NUMA node 1"), "") << "no device there";
  machine.pci("0000:af:00.0", "vfio-pci", 1);
  EXPECT_EQ(mends(machine.look(), "NUMA node 1"),
            "echo 512 > /sys/devices/system/node/node1/hugepages/hugepages-2048kB/nr_hugepages");
}

TEST(Info, HugePagesOfAMachineWithoutNodes) {
  Machine machine;
  machine.remove("sys/devices/system/node");
  machine.file("sys/kernel/mm/hugepages/hugepages-1048576kB/nr_hugepages", "3\n");
  machine.file("sys/kernel/mm/hugepages/hugepages-1048576kB/free_hugepages", "2\n");
  const Host host = machine.look();
  ASSERT_EQ(host.huge_pages.size(), 1u);
  EXPECT_EQ(host.huge_pages[0].node, -1);
  EXPECT_EQ(host.huge_pages[0].total, 3u);
  EXPECT_EQ(host.huge_pages[0].free, 2u);
  EXPECT_NE(host_report(host).find("1 GiB"), std::string::npos);
}

TEST(Info, VerbsDevice) {
  const Machine machine;
  const Host host = machine.look();
  ASSERT_EQ(host.verbs.size(), 1u);
  EXPECT_EQ(host.verbs[0].name, "mlx5_0");
  EXPECT_EQ(host.verbs[0].state, "ACTIVE");
  EXPECT_EQ(host.verbs[0].netdev, "eth0");
}

TEST(Info, NoVerbsDevice) {
  Machine machine;
  machine.remove("sys/class/infiniband");
  machine.interface("br0", "", false);
  machine.interface("ens5", "", true);
  EXPECT_EQ(mends(machine.look(), "verbs devices: none"),
            "modprobe rdma_rxe && rdma link add rxe0 type rxe netdev ens5");
  EXPECT_EQ(machine.look().interfaces[0].driver, "bridge");
}

TEST(Info, VerbsDeviceThatUserSpaceCannotOpen) {
  Machine machine;
  machine.remove("sys/class/infiniband_verbs");
  EXPECT_EQ(mends(machine.look(), "ib_uverbs"), "modprobe ib_uverbs");
}

TEST(Info, MissingDpdkDrivers) {
  Machine machine;
  machine.remove("usr/lib/dpdk/pmds-23.0");
  EXPECT_EQ(mends(machine.look(), "DPDK network drivers: none"), "apt-get install librte-meta-net");
  machine.pmd("memif");
  const Host host = machine.look();
  EXPECT_EQ(mends(host, "DPDK driver memif"), "");
  EXPECT_EQ(mends(host, "DPDK driver af_packet"), "apt-get install librte-meta-net");
}

TEST(Info, UnprivilegedUser) {
  Machine machine;
  machine.file("proc/self/status", kNoRights);
  machine.limits("65536", "unlimited");
  Host host = machine.look();
  EXPECT_FALSE(host.limits.has(Capability::net_raw));
  EXPECT_NE(mends(host, "CAP_NET_RAW").find("setcap cap_net_raw,cap_net_admin+ep"),
            std::string::npos);
  EXPECT_NE(mends(host, "CAP_SYS_ADMIN"), "");
  EXPECT_EQ(mends(host, "locked memory: 64 KiB"), "ulimit -l unlimited");
  machine.limits("65536", "65536");
  EXPECT_NE(mends(machine.look(), "locked memory").find("/etc/security/limits.d"),
            std::string::npos);
  machine.file("proc/self/status", "CapEff:\t0000000000007000\n");  // net_admin, net_raw, ipc_lock
  host = machine.look();
  EXPECT_EQ(mends(host, "locked memory"), "");
  EXPECT_EQ(mends(host, "CAP_NET_RAW"), "");
  EXPECT_NE(mends(host, "CAP_SYS_ADMIN"), "");
}

TEST(Info, PtraceScope) {
  Machine machine;
  const auto with = [&](const char* scope, const char* rights) {
    machine.file("proc/sys/kernel/yama/ptrace_scope", scope);
    machine.file("proc/self/status", rights);
    return mends(machine.look(), "ptrace_scope");
  };
  EXPECT_EQ(with("0\n", kNoRights), "");
  EXPECT_EQ(with("1\n", kNoRights), "sysctl -w kernel.yama.ptrace_scope=0");
  EXPECT_EQ(with("1\n", kAllRights), "");
  EXPECT_NE(with("3\n", kAllRights).find("reboot"), std::string::npos);
}

TEST(Info, TimeAndProcessors) {
  Machine machine;
  machine.file("proc/cpuinfo", "processor\t: 0\nflags\t\t: fpu constant_tsc\n");
  const Host host = machine.look();
  EXPECT_NE(mends(host, "time stamp counter"), "");
  EXPECT_NE(mends(host, "processors: one"), "");
}

TEST(Info, EveryAdviceIsComplete) {
  Machine machine;
  machine.file("proc/self/status", kNoRights);
  for (const Advice& a : advise(machine.look())) {
    EXPECT_FALSE(a.lack.empty());
    EXPECT_FALSE(a.why.empty());
    EXPECT_FALSE(a.command.empty());
  }
}

TEST(Info, ConfigReport) {
  setenv("VIADUCT_MTU", "x", 1);
  const std::string report =
      config_report(std::array{viaduct::port::config_vars()}, std::array{"VIADUCT_JOBB"s});
  unsetenv("VIADUCT_MTU");
  for (const base::ConfigVar& var : viaduct::port::config_vars()) {
    EXPECT_NE(report.find(std::string("\n").append(var.name).append(" ")), std::string::npos)
        << var.name;
    EXPECT_NE(report.find(var.meaning), std::string::npos) << var.name;
  }
  EXPECT_NE(report.find("unknown: VIADUCT_JOBB"), std::string::npos);
  EXPECT_NE(report.find("bad: VIADUCT_MTU=x is not 0 or a whole number from 576 "),
            std::string::npos);
}

}  // namespace
}  // namespace viaduct::info
