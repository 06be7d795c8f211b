// The C API of NICs: opening by name, attributes, the error handler.
#include "libvipl/core/nic.hpp"

#include <net/if.h>
#include <vipl.h>

#include "libvipl/api/guarded.hpp"
#include "libvipl/core/config_vars.hpp"
#include "libvipl/core/device_source.hpp"
#include "libvipl/names/device_names.hpp"

namespace {

using namespace viaduct;
using namespace viaduct::vipl;

constexpr const char* kChosen = "VIADUCT_VIPL_DEVICES";

// The sentence for the user when no device is left: there is none, or the user's choice names none.
std::string lack_of_devices(const std::vector<vi::DeviceInfo>& all) {
  if (all.empty()) return "no RDMA device: viaduct-info says how to get one on an ordinary NIC";
  std::string there;
  for (const vi::DeviceInfo& device : all) there += (there.empty() ? "" : ", ") + device.name;
  return std::string(kChosen) + "=" + config_vars().text(kChosen) +
         " names no RDMA device of this host, or an address that is not its own: choose from " +
         there + ", or unset it";
}

VIP_RETURN open_nic(const VIP_CHAR* name, VIP_NIC_HANDLE& handle) {
  // All variables: some are read only later, when an error could no longer be reported.
  config_vars().check();
  const std::vector<vi::DeviceInfo> all = device_source().devices();
  const std::vector<vi::DeviceInfo> devices = named_devices(all, config_vars().text(kChosen));
  if (devices.empty()) throw vi::SetupError(lack_of_devices(all));
  const auto interface_exists = [](const std::string& n) { return if_nametoindex(n.c_str()) != 0; };
  const vi::DeviceInfo* const device = find_device(name, devices, interface_exists);
  if (device == nullptr) return VIP_INVALID_PARAMETER;
  if (!device->usable) throw vi::SetupError(device->name + ": " + device->problem);
  NicAddress address;
  address.ip = device->ip;
  address.port = static_cast<std::uint16_t>(config_vars().number("VIADUCT_VIPL_PORT"));
  handle = Nic::open(name, device_source().open(*device), address)->handle();
  return VIP_SUCCESS;
}

}  // namespace

VIP_RETURN VipOpenNic(const VIP_CHAR* DeviceName, VIP_NIC_HANDLE* NicHandle) {
  if (DeviceName == nullptr || NicHandle == nullptr) return VIP_INVALID_PARAMETER;
  return guarded([&] { return open_nic(DeviceName, *NicHandle); });
}

VIP_RETURN VipCloseNic(VIP_NIC_HANDLE NicHandle) {
  return guarded([&] { return Nic::close(NicHandle) ? VIP_SUCCESS : VIP_INVALID_PARAMETER; });
}

VIP_RETURN VipQueryNic(VIP_NIC_HANDLE NicHandle, VIP_NIC_ATTRIBUTES* Attributes) {
  const auto nic = Nic::find(NicHandle);
  if (nic == nullptr || Attributes == nullptr) return VIP_INVALID_PARAMETER;
  *Attributes = nic->attributes();
  return VIP_SUCCESS;
}

VIP_RETURN VipErrorCallback(VIP_NIC_HANDLE NicHandle, VIP_PVOID Context,
                            VIP_ERROR_HANDLER Handler) {
  const auto nic = Nic::find(NicHandle);
  if (nic == nullptr) return VIP_INVALID_PARAMETER;
  nic->handlers().set_error_handler(Context, Handler);
  return VIP_SUCCESS;
}

// IP networks have no fabric that could be discovered.
VIP_RETURN VipQuerySystemManagementInfo(VIP_NIC_HANDLE NicHandle, VIP_ULONG InfoType,
                                        VIP_PVOID SysManInfo) {
  if (Nic::find(NicHandle) == nullptr || SysManInfo == nullptr || InfoType != VIP_SMI_AUTODISCOVERY)
    return VIP_INVALID_PARAMETER;
  return VIP_ERROR_NOT_SUPPORTED;
}
