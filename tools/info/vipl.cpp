// Formats the VIPL sections of viaduct-info (vipl.hpp); main.cpp opens the NICs.
#include "tools/info/vipl.hpp"

#include <array>
#include <cstdio>

#include "libvipl/names/device_names.hpp"
#include "tools/info/table.hpp"

namespace viaduct::info {
namespace {

std::string address_text(const vi::DeviceInfo& device) {
  if (!device.usable) return "-";
  std::array<char, sizeof "255.255.255.255"> out{};
  const auto& ip = device.ip;
  std::snprintf(out.data(), out.size(), "%u.%u.%u.%u", ip[0], ip[1], ip[2], ip[3]);
  return out.data();
}

std::string joined(const std::vector<std::string>& words) {
  std::string out;
  for (const std::string& word : words) out.append(out.empty() ? "" : " ").append(word);
  return out;
}

// The reliability levels at which the NIC can do RDMA reads.
std::string read_levels(VIP_RELIABILITY_LEVEL levels) {
  std::string out;
  if ((levels & VIP_SERVICE_RELIABLE_DELIVERY) != 0) out += " delivery";
  if ((levels & VIP_SERVICE_RELIABLE_RECEPTION) != 0) out += " reception";
  return out.empty() ? "no" : out.substr(1);
}

}  // namespace

std::string vipl_names_report(std::span<const vi::DeviceInfo> devices, std::size_t in_kernel) {
  std::vector<Row> rows{{"DEVICE", "PORT", "INTERFACE", "ADDRESS", "NAMES FOR VIPOPENNIC"}};
  std::string problems;
  for (std::size_t i = 0; i < devices.size(); ++i) {
    const vi::DeviceInfo& device = devices[i];
    rows.push_back({device.name, std::to_string(device.port), or_dash(device.interface),
                    address_text(device), joined(vipl::names_of(i, devices))});
    if (!device.usable) problems += "  " + device.name + ": " + device.problem + "\n";
  }
  const std::string_view none =
      in_kernel == 0 ? "none: a verbs device is needed, see below"
                     : "none: libibverbs has no drivers for the verbs devices, or "
                       "VIADUCT_VIPL_DEVICES names none of them; apt-get install ibverbs-providers";
  std::string out = section("NICs of Virtual Interface programs (VIPL)", rows, none);
  if (!problems.empty()) out.insert(out.size() - 1, problems);
  return out;
}

std::string vipl_limits_report(std::span<const VIP_NIC_ATTRIBUTES> nics) {
  if (nics.empty()) return "";
  std::vector<Row> rows{{"NAME", "VIS", "DESCRIPTORS A QUEUE", "SEGMENTS", "CQS", "CQ ENTRIES",
                         "REGIONS", "PTAGS", "LONGEST TRANSFER", "MTU", "RDMA READ"}};
  for (const VIP_NIC_ATTRIBUTES& n : nics)
    rows.push_back({n.Name, std::to_string(n.MaxVI), std::to_string(n.MaxDescriptorsPerQueue),
                    std::to_string(n.MaxSegmentsPerDesc), std::to_string(n.MaxCQ),
                    std::to_string(n.MaxCQEntries), std::to_string(n.MaxRegisterRegions),
                    std::to_string(n.MaxPtags), size_text(n.MaxTransferSize),
                    size_text(n.NativeMTU), read_levels(n.RDMAReadSupport)});
  return section("Limits of these NICs (VipQueryNic)", rows, "");
}

}  // namespace viaduct::info
