// Looks up RDMA devices by the address of their interface (rdma_devices.hpp). A device is usable if
// it is active and its interface has an IPv4 address (drivers/vi_over_verbs).
#include "tools/pingpong/testbed/rdma_devices.hpp"

#include <arpa/inet.h>

#include "drivers/vi_over_verbs/ibverbs.hpp"
#include "tools/pingpong/error.hpp"

namespace viaduct::pingpong {

namespace {

std::string text(const std::array<std::uint8_t, 4>& ip) {
  std::array<char, INET_ADDRSTRLEN> out;
  return inet_ntop(AF_INET, ip.data(), out.data(), out.size());
}

std::vector<vi::DeviceInfo> usable_devices() {
  std::vector<vi::DeviceInfo> out;
  for (const vi::DeviceInfo& device : vi::ibverbs_provider().devices())
    if (device.usable) out.push_back(device);
  return out;
}

}  // namespace

std::vector<std::string> rdma_addresses() {
  const std::vector<vi::DeviceInfo> devices = usable_devices();
  if (devices.empty())
    throw Failure(
        "this host has no RDMA device with an IPv4 address; viaduct-info says what is missing, and "
        "viaduct-vm runs this in a guest that has two");
  return {text(devices.front().ip), text(devices[devices.size() > 1 ? 1 : 0].ip)};
}

vi::DeviceInfo rdma_device(const std::string& ip) {
  for (const vi::DeviceInfo& device : usable_devices())
    if (text(device.ip) == ip) return device;
  throw Failure("no RDMA device of this host has the address " + ip +
                "; viaduct-info shows those there are");
}

}  // namespace viaduct::pingpong
