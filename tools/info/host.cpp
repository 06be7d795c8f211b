// Reads /sys, /proc and /dev (host.hpp). A file that is missing or cannot be read leaves its field
// at the default: kernels and containers differ in what they show.
#include "tools/info/host.hpp"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <fstream>
#include <sstream>
#include <string_view>
#include <utility>

namespace viaduct::info {
namespace {

namespace fs = std::filesystem;

// First line of a file, without the newline; empty when it cannot be read.
std::string line_of(const fs::path& file) {
  std::ifstream in(file);
  std::string line;
  std::getline(in, line);
  while (!line.empty() && (line.back() == ' ' || line.back() == '\n')) line.pop_back();
  return line;
}

// The number that a text begins with; none if it begins with no number.
template <class Number>
std::optional<Number> parse(std::string_view text, int base = 10) {
  Number value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value, base);
  if (error != std::errc{} || end == text.data()) return {};
  return value;
}

template <class Number>
Number number_of(const fs::path& file, Number otherwise) {
  return parse<Number>(line_of(file)).value_or(otherwise);
}

// Name of what a symbolic link points to; empty when there is none.
std::string target_name(const fs::path& link) {
  std::error_code ignored;
  return fs::read_symlink(link, ignored).filename().string();
}

// Entries of a directory by name; none when it cannot be read.
std::vector<fs::path> entries(const fs::path& directory) {
  std::vector<fs::path> out;
  std::error_code error;
  for (fs::directory_iterator it(directory, error), end; !error && it != end; it.increment(error))
    out.push_back(it->path());
  std::sort(out.begin(), out.end());
  return out;
}

bool present(const fs::path& path) {
  std::error_code ignored;
  return fs::exists(path, ignored);
}

// Domain, bus, device and function, as sysfs names them.
bool is_pci_address(std::string_view name) {
  constexpr std::string_view kShape = "xxxx:xx:xx.x";
  return name.size() == kShape.size() &&
         std::equal(name.begin(), name.end(), kShape.begin(), [](char c, char shape) {
           return shape == 'x' ? std::string_view("0123456789abcdef").find(c) != std::string::npos
                               : c == shape;
         });
}

// The address of the PCI function above a device, or empty. A device may sit some levels below its
// function (virtio's does), so the last PCI address in the path counts.
std::string pci_above(const fs::path& device) {
  std::error_code error;
  const fs::path real = fs::canonical(device, error);
  std::string found;
  if (!error)
    for (const fs::path& part : real)
      if (is_pci_address(part.string())) found = part.string();
  return found;
}

// Virtual interfaces have no driver link. Their kind is DEVTYPE in uevent, where the kernel tells
// it ("bridge"; a veth pair has none).
std::string interface_driver(const fs::path& interface) {
  std::string driver = target_name(interface / "device" / "driver");
  if (!driver.empty()) return driver;
  std::ifstream in(interface / "uevent");
  for (std::string line; std::getline(in, line);)
    if (line.starts_with("DEVTYPE=")) return line.substr(8);
  return "virtual";
}

std::vector<Interface> interfaces(const fs::path& root) {
  constexpr unsigned kIffUp = 1;
  std::vector<Interface> out;
  for (const fs::path& dir : entries(root / "sys/class/net")) {
    // Files such as bonding_masters live here too; ARPHRD_ETHER is 1.
    if (line_of(dir / "type") != "1") continue;
    const std::string flags = line_of(dir / "flags");
    Interface i;
    i.name = dir.filename().string();
    i.mac = line_of(dir / "address");
    i.state = line_of(dir / "operstate");
    i.driver = interface_driver(dir);
    i.pci = pci_above(dir / "device");
    i.mtu = number_of(dir / "mtu", 0u);
    i.up = flags.starts_with("0x") &&
           (parse<unsigned>(std::string_view(flags).substr(2), 16).value_or(0) & kIffUp) != 0;
    out.push_back(std::move(i));
  }
  return out;
}

std::vector<PciFunction> functions(const fs::path& root) {
  std::vector<PciFunction> out;
  for (const fs::path& dir : entries(root / "sys/bus/pci/devices")) {
    if (!line_of(dir / "class").starts_with("0x02")) continue;  // network controllers
    PciFunction f;
    f.address = dir.filename().string();
    f.vendor = line_of(dir / "vendor");
    f.device = line_of(dir / "device");
    f.driver = target_name(dir / "driver");
    f.numa_node = number_of(dir / "numa_node", -1);
    f.iommu_group = target_name(dir / "iommu_group");
    const fs::path group = root / "dev/vfio" / f.iommu_group;
    f.group_denied =
        !f.iommu_group.empty() && present(group) && ::access(group.c_str(), R_OK | W_OK) != 0;
    f.physical = target_name(dir / "physfn");
    f.total_vfs = number_of(dir / "sriov_totalvfs", 0u);
    f.vfs = number_of(dir / "sriov_numvfs", 0u);
    out.push_back(std::move(f));
  }
  return out;
}

// Adds the hugepages of all sizes in one directory.
void add_huge_pages(std::vector<HugePages>& to, const fs::path& directory, int node) {
  constexpr std::string_view kPrefix = "hugepages-";
  for (const fs::path& dir : entries(directory)) {
    const std::string name = dir.filename().string();
    if (!name.starts_with(kPrefix)) continue;
    HugePages pages;
    pages.node = node;
    pages.kilobytes =
        parse<std::uint64_t>(std::string_view(name).substr(kPrefix.size())).value_or(0);
    pages.total = number_of<std::uint64_t>(dir / "nr_hugepages", 0);
    pages.free = number_of<std::uint64_t>(dir / "free_hugepages", 0);
    to.push_back(pages);
  }
}

// By NUMA node; as one pool (-1) on a kernel that has no nodes.
std::vector<HugePages> huge_pages(const fs::path& root) {
  std::vector<HugePages> out;
  for (const fs::path& dir : entries(root / "sys/devices/system/node")) {
    const std::string name = dir.filename().string();
    if (!name.starts_with("node")) continue;
    if (const auto node = parse<int>(std::string_view(name).substr(4)))
      add_huge_pages(out, dir / "hugepages", *node);
  }
  if (out.empty()) add_huge_pages(out, root / "sys/kernel/mm/hugepages", -1);
  std::sort(out.begin(), out.end(), [](const HugePages& a, const HugePages& b) {
    return std::pair(a.node, a.kilobytes) < std::pair(b.node, b.kilobytes);
  });
  return out;
}

// The first port of each RDMA device; the interface is that of its first GID.
std::vector<VerbsDevice> verbs_devices(const fs::path& root) {
  std::vector<VerbsDevice> out;
  for (const fs::path& dir : entries(root / "sys/class/infiniband")) {
    const fs::path port = dir / "ports/1";
    std::string state = line_of(port / "state");  // "4: ACTIVE"
    if (const auto colon = state.find(": "); colon != std::string::npos) state.erase(0, colon + 2);
    out.push_back({dir.filename().string(), state, line_of(port / "link_layer"),
                   line_of(port / "gid_attrs/ndevs/0")});
  }
  return out;
}

// The names of DPDK's network drivers: "librte_net_memif.so.23" -> memif. Every driver has several
// such files; each is named once.
std::vector<std::string> network_drivers(const fs::path& directory) {
  constexpr std::string_view kPrefix = "librte_net_";
  std::vector<std::string> out;
  for (const fs::path& file : entries(directory)) {
    const std::string name = file.filename().string();
    const auto end = name.find(".so");
    if (name.starts_with(kPrefix) && end != std::string::npos)
      out.push_back(name.substr(kPrefix.size(), end - kPrefix.size()));
  }
  std::sort(out.begin(), out.end());
  out.erase(std::unique(out.begin(), out.end()), out.end());
  return out;
}

// A limit of /proc/self/limits; 0 if it is not understood.
std::uint64_t limit(std::string_view text) {
  return text == "unlimited" ? Limits::kUnlimited : parse<std::uint64_t>(text).value_or(0);
}

// Of this process, from /proc/self and the Yama module.
Limits limits(const fs::path& root) {
  Limits out;
  std::ifstream in(root / "proc/self/limits");
  for (std::string line; std::getline(in, line);) {
    // "Max locked memory         8388608              8388608              bytes"
    const auto words = [&](std::string_view label, std::uint64_t& soft, std::uint64_t* hard) {
      if (!line.starts_with(label)) return;
      std::istringstream rest(line.substr(label.size()));
      std::string first, second;
      rest >> first >> second;
      soft = limit(first);
      if (hard != nullptr) *hard = limit(second);
    };
    words("Max locked memory", out.locked_memory, &out.locked_memory_hard);
    words("Max open files", out.open_files, nullptr);
  }
  std::ifstream status(root / "proc/self/status");
  for (std::string line; std::getline(status, line);)
    if (line.starts_with("CapEff:"))
      out.capabilities = parse<std::uint64_t>(std::string_view(line).substr(std::min(
                                                  line.find_first_not_of("\t ", 7), line.size())),
                                              16)
                             .value_or(0);
  out.ptrace_scope = parse<int>(line_of(root / "proc/sys/kernel/yama/ptrace_scope"));
  return out;
}

// Counts processors; the flags are the same on all of them.
Processors processors(const fs::path& root) {
  Processors out;
  std::ifstream in(root / "proc/cpuinfo");
  for (std::string line; std::getline(in, line);) {
    if (line.starts_with("processor")) ++out.count;
    if (!line.starts_with("flags")) continue;
    std::istringstream flags(line.substr(std::min(line.find(':') + 1, line.size())));
    for (std::string flag; flags >> flag;) {
      if (flag == "constant_tsc") out.constant_tsc = true;
      if (flag == "nonstop_tsc") out.nonstop_tsc = true;
    }
  }
  return out;
}

}  // namespace

const Interface* Host::interface_on(const std::string& address) const {
  const auto found = std::find_if(interfaces.begin(), interfaces.end(),
                                  [&](const Interface& i) { return i.pci == address; });
  return found == interfaces.end() ? nullptr : &*found;
}

bool usable_by_dpdk(const std::string& driver) {
  constexpr std::array<std::string_view, 6> kDrivers{"vfio-pci",  "uio_pci_generic", "igb_uio",
                                                     "mlx4_core", "mlx5_core",       "mana"};
  return std::find(kDrivers.begin(), kDrivers.end(), driver) != kDrivers.end();
}

Host look(const Where& where) {
  const fs::path& root = where.root;
  Host host;
  host.interfaces = interfaces(root);
  host.functions = functions(root);
  host.huge_pages = huge_pages(root);
  host.verbs = verbs_devices(root);
  host.dpdk.version = where.dpdk_version;
  host.dpdk.drivers_dir = where.dpdk_drivers;
  if (!where.dpdk_drivers.empty())
    host.dpdk.drivers = network_drivers(root / where.dpdk_drivers.relative_path());
  host.limits = limits(root);
  host.processors = processors(root);
  host.iommu = !entries(root / "sys/kernel/iommu_groups").empty();
  host.vfio_pci = present(root / "sys/bus/pci/drivers/vfio-pci");
  host.ib_uverbs = present(root / "sys/class/infiniband_verbs");
  const fs::path noiommu = root / "sys/module/vfio/parameters/enable_unsafe_noiommu_mode";
  if (present(noiommu)) host.unsafe_noiommu = line_of(noiommu) == "Y";
  return host;
}

}  // namespace viaduct::info
