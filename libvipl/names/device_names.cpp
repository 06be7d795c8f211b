// The rules that device_names.hpp lists. api/nic.cpp uses them to open, viaduct-info to print.
#include "libvipl/names/device_names.hpp"

#include <arpa/inet.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <optional>

namespace viaduct::vipl {
namespace {

using Devices = std::span<const vi::DeviceInfo>;

// Prefixes of numbered names; a prefix of another one comes after it.
constexpr std::array<std::string_view, 6> kNumbered{"VINIC", "clanvi", "via_eth",
                                                    "via",   "nic",    "vi"};
constexpr std::string_view kDirectory = "/dev/", kOnInterface = "via_";

// Compares runs of digits as numbers, all else byte by byte.
bool natural_less(std::string_view a, std::string_view b) {
  const auto is_digit = [](char c) { return c >= '0' && c <= '9'; };
  while (!a.empty() && !b.empty()) {
    if (is_digit(a[0]) && is_digit(b[0])) {
      const auto number = [&](std::string_view& text) {
        unsigned long value = 0;
        const auto end = std::from_chars(text.data(), text.data() + text.size(), value).ptr;
        text.remove_prefix(static_cast<std::size_t>(end - text.data()));
        return value;
      };
      const unsigned long x = number(a), y = number(b);
      if (x != y) return x < y;
    } else {
      if (a[0] != b[0]) return a[0] < b[0];
      a.remove_prefix(1);
      b.remove_prefix(1);
    }
  }
  return a.size() < b.size();
}

// The first device whose `member` is `value`; nullptr: none.
template <typename Member>
const vi::DeviceInfo* find_by(Member member, std::string_view value, Devices devices) {
  const auto found = std::ranges::find(devices, value, member);
  return found == devices.end() ? nullptr : &*found;
}

// Removes the prefix. False: `text` does not begin with it.
bool take(std::string_view& text, std::string_view prefix) {
  if (!text.starts_with(prefix)) return false;
  text.remove_prefix(prefix.size());
  return true;
}

// The number in a numbered name; 0 if only the prefix is there. nullopt: it is no numbered name.
std::optional<std::size_t> number_in(std::string_view name) {
  for (const std::string_view prefix : kNumbered) {
    std::string_view digits = name;
    if (!take(digits, prefix)) continue;
    if (digits.empty()) return 0;
    std::size_t number = 0;
    const auto [end, wrong] = std::from_chars(digits.data(), digits.data() + digits.size(), number);
    if (wrong == std::errc() && end == digits.data() + digits.size()) return number;
  }
  return std::nullopt;
}

// The device of one entry of VIADUCT_VIPL_DEVICES: "rxe0", or "rxe0@10.9.0.1".
std::optional<vi::DeviceInfo> chosen_device(std::string_view entry, Devices all) {
  const std::size_t at = std::min(entry.find('@'), entry.size());
  const std::string_view name = entry.substr(0, at);
  if (at == entry.size()) {
    const vi::DeviceInfo* const device = find_by(&vi::DeviceInfo::name, name, all);
    return device != nullptr ? std::optional(*device) : std::nullopt;
  }
  std::array<std::uint8_t, 4> ip{};
  if (::inet_pton(AF_INET, std::string(entry.substr(at + 1)).c_str(), ip.data()) != 1)
    return std::nullopt;
  for (const vi::DeviceInfo& device : all) {
    const auto address = std::ranges::find(device.addresses, ip, &vi::PortAddress::ip);
    if (device.name != name || address == device.addresses.end()) continue;
    vi::DeviceInfo chosen = device;
    chosen.use(*address);
    return chosen;
  }
  return std::nullopt;
}

}  // namespace

std::vector<vi::DeviceInfo> named_devices(std::vector<vi::DeviceInfo> all,
                                          std::string_view chosen) {
  std::stable_sort(all.begin(), all.end(), [](const vi::DeviceInfo& a, const vi::DeviceInfo& b) {
    return natural_less(a.name, b.name);
  });
  std::stable_partition(all.begin(), all.end(),
                        [](const vi::DeviceInfo& device) { return device.usable; });
  if (chosen.empty()) return all;
  std::vector<vi::DeviceInfo> out;
  while (!chosen.empty()) {
    const std::size_t comma = std::min(chosen.find(','), chosen.size());
    if (auto device = chosen_device(chosen.substr(0, comma), all))
      out.push_back(std::move(*device));
    chosen.remove_prefix(std::min(comma + 1, chosen.size()));
  }
  return out;
}

const vi::DeviceInfo* find_device(std::string_view name, Devices devices,
                                  const std::function<bool(const std::string&)>& interface_exists) {
  if (const auto* device = find_by(&vi::DeviceInfo::name, name, devices)) return device;
  std::string_view rest = name;
  take(rest, kDirectory);
  std::string_view interface = rest;
  const bool on_interface = take(interface, kOnInterface);
  if (const auto* device = find_by(&vi::DeviceInfo::interface, interface, devices))
    return interface.empty() ? nullptr : device;
  if (on_interface && interface == "lo") return devices.empty() ? nullptr : &devices.front();
  // An interface without an RDMA device: its number would lead to some other device.
  if (on_interface && interface_exists(std::string(interface))) return nullptr;
  const auto number = number_in(rest);
  return number && *number < devices.size() ? &devices[*number] : nullptr;
}

std::vector<std::string> names_of(std::size_t which, Devices devices) {
  const vi::DeviceInfo& device = devices[which];
  const std::string number = std::to_string(which);
  std::vector<std::string> out{device.name,    device.interface, "/dev/via_" + device.interface,
                               "nic" + number, "VINIC" + number, "/dev/clanvi" + number,
                               "VINIC"};
  // As if every interface existed: only names are listed that mean this device whatever interfaces
  // there are. A device with two ports is there twice under one name, which leads to the first.
  const auto every = [](const std::string&) { return true; };
  std::erase_if(
      out, [&](const std::string& name) { return find_device(name, devices, every) != &device; });
  return out;
}

}  // namespace viaduct::vipl
