// Which RDMA device a program means that was written for another VIA network: M-VIA's
// /dev/via_eth0, VI-GM's VINIC0, cLAN's nic0 and /dev/clanvi0. By rule, so there is no table to
// maintain.
//
// Pure functions; any thread.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "drivers/vi_over_verbs/verbs.hpp"

namespace viaduct::vipl {

// The devices that names can refer to, in the order of the numbers in names: usable ones first,
// each group in natural order ("mlx5_2" before "mlx5_10"). `chosen` is the value of
// VIADUCT_VIPL_DEVICES, e.g. "rxe1,mlx5_0@10.9.0.1": only these devices, in this order, with that
// IPv4 address of a port that has several. Empty: all devices, each with its first address. Entries
// that match nothing are left out.
std::vector<vi::DeviceInfo> named_devices(std::vector<vi::DeviceInfo> all, std::string_view chosen);

// The device that `name` means, by the first rule that applies:
//   rxe0                   the verbs device
//   eth0, /dev/via_eth0    the device on that network interface
//   /dev/via_lo            the device on lo, or else the first one
//   nic0, VINIC0, /dev/clanvi0, /dev/via_eth0 where no interface is called eth0, ...
//                          the device with that number
//   VINIC, nic             the first one
// nullptr: no device. `interface_exists` asks the system, or a test. The result points into
// `devices`.
const vi::DeviceInfo* find_device(std::string_view name, std::span<const vi::DeviceInfo> devices,
                                  const std::function<bool(const std::string&)>& interface_exists);

// All names that lead to device number `device`, for viaduct-info.
std::vector<std::string> names_of(std::size_t device, std::span<const vi::DeviceInfo> devices);

}  // namespace viaduct::vipl
