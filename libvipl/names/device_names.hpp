// Which device a program means that was written for another network: M-VIA's /dev/via_eth0, VI-GM's
// VINIC0, cLAN's nic0 and /dev/clanvi0. By rule, without any table to keep.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "drivers/vi_over_verbs/verbs.hpp"

namespace viaduct::vipl {

// The devices that names can mean, in the order that numbers in names refer to: "mlx5_2" before
// "mlx5_10", and those that are not usable last. `chosen` is what VIADUCT_VIPL_DEVICES says,
// "rxe1,mlx5_0@10.9.0.1": only these, in this order, with that address where there are several;
// empty: all, with their first. What matches nothing is left out.
std::vector<vi::DeviceInfo> named_devices(std::vector<vi::DeviceInfo> all, std::string_view chosen);

// The device that a name means, by the first rule that applies:
//   rxe0                   the verbs device
//   eth0, /dev/via_eth0    the device on that network interface
//   /dev/via_lo            the device on lo, or else the first one
//   nic0, VINIC0, /dev/clanvi0, /dev/via_eth0 where no interface is called eth0, ...
//                          the device with that number
//   VINIC, nic             the first one
// nullptr: none.
const vi::DeviceInfo* find_device(std::string_view name, std::span<const vi::DeviceInfo> devices,
                                  const std::function<bool(const std::string&)>& interface_exists);

// The names that lead to one of the devices, for those who ask (viaduct-info).
std::vector<std::string> names_of(std::size_t device, std::span<const vi::DeviceInfo> devices);

}  // namespace viaduct::vipl
