// The C API of the name service: VipNS... . names/name_service.hpp does the look-ups.
#include <vipl.h>

#include <cstring>
#include <map>
#include <memory>
#include <mutex>

#include "libvipl/api/guarded.hpp"
#include "libvipl/core/config_vars.hpp"
#include "libvipl/core/nic.hpp"
#include "libvipl/names/name_service.hpp"

namespace {

using namespace viaduct::vipl;

// The name services of open NICs, counted: one lives until VipNSShutdown has been called as often
// as VipNSInit. Some programs call VipNSInit before every look-up and never VipNSShutdown; some
// libraries within one program shut down while another still needs it.
class Services {
 public:
  void add(const std::shared_ptr<Nic>& nic) {
    // Before the lock is taken: this reads a file. A repeated VipNSInit reads it again.
    auto service = std::make_shared<const NameService>(nic->host_address(),
                                                       config_vars().text("VIADUCT_VIPL_HOSTS"));
    const std::lock_guard lock(mutex_);
    // NICs that were closed without VipNSShutdown.
    std::erase_if(entries_, [](const auto& entry) { return entry.second.nic.expired(); });
    Entry& entry = entries_[nic->handle()];
    entry.nic = nic;
    entry.service = std::move(service);
    ++entry.uses;
  }
  bool remove(VIP_NIC_HANDLE nic) {
    const std::lock_guard lock(mutex_);
    const auto found = entries_.find(nic);
    if (found == entries_.end()) return false;
    if (--found->second.uses == 0) entries_.erase(found);
    return true;
  }
  // nullptr: VipNSInit has not been called.
  std::shared_ptr<const NameService> find(VIP_NIC_HANDLE nic) const {
    const std::lock_guard lock(mutex_);
    const auto found = entries_.find(nic);
    return found == entries_.end() ? nullptr : found->second.service;
  }

 private:
  struct Entry {
    std::weak_ptr<Nic> nic;
    std::shared_ptr<const NameService> service;
    unsigned uses = 0;
  };

  mutable std::mutex mutex_;
  std::map<VIP_NIC_HANDLE, Entry> entries_;
};

// Never destroyed: threads of the program may outlive main().
Services& services() {
  static Services& it = *new Services;
  return it;
}

// VipNSGetHostByName, with a NIC that is open.
VIP_RETURN host_by_name(VIP_NIC_HANDLE nic, const std::string& name, VIP_NET_ADDRESS& address,
                        VIP_ULONG index) {
  const auto service = services().find(nic);
  if (service == nullptr) return VIP_ERROR_NAMESERVICE;
  // On entry HostAddressLen is the room there is. Programs that clear the struct mean that there is
  // enough.
  if (address.HostAddressLen != 0 && address.HostAddressLen < NicAddress::kBytes)
    return VIP_ERROR_RESOURCE;
  const auto found = service->address_of(name, index);
  if (!found) return VIP_ERROR_NAMESERVICE;
  write({*found, {}}, address);
  return VIP_SUCCESS;
}

// VipNSGetHostByAddr. `room`: in, the bytes that `name` has room for; out, the bytes needed, with
// the final zero.
VIP_RETURN host_by_address(VIP_NIC_HANDLE nic, const NicAddress& address, VIP_CHAR* name,
                           VIP_ULONG& room) {
  const auto service = services().find(nic);
  if (service == nullptr) return VIP_ERROR_NAMESERVICE;
  const std::string found = service->name_of(address);
  if (found.empty()) return VIP_ERROR_NAMESERVICE;
  const VIP_ULONG given = room;
  room = found.size() + 1;
  if (given < room) return VIP_ERROR_RESOURCE;
  std::memcpy(name, found.c_str(), room);
  return VIP_SUCCESS;
}

}  // namespace

VIP_RETURN VipNSInit(VIP_NIC_HANDLE NicHandle, VIP_PVOID) {
  const auto nic = Nic::find(NicHandle);
  if (nic == nullptr) return VIP_INVALID_PARAMETER;
  return guarded([&] {
    services().add(nic);
    return VIP_SUCCESS;
  });
}

VIP_RETURN VipNSGetHostByName(VIP_NIC_HANDLE NicHandle, VIP_CHAR* Name, VIP_NET_ADDRESS* Address,
                              VIP_ULONG NameIndex) {
  if (Nic::find(NicHandle) == nullptr || Name == nullptr || Address == nullptr)
    return VIP_INVALID_PARAMETER;
  return guarded([&] { return host_by_name(NicHandle, Name, *Address, NameIndex); });
}

VIP_RETURN VipNSGetHostByAddr(VIP_NIC_HANDLE NicHandle, VIP_NET_ADDRESS* Address, VIP_CHAR* Name,
                              VIP_ULONG* NameLen) {
  if (Nic::find(NicHandle) == nullptr || Address == nullptr || Name == nullptr ||
      NameLen == nullptr)
    return VIP_INVALID_PARAMETER;
  return guarded([&]() -> VIP_RETURN {
    const auto address = nic_of(*Address);
    if (!address) return VIP_INVALID_PARAMETER;
    return host_by_address(NicHandle, *address, Name, *NameLen);
  });
}

VIP_RETURN VipNSShutdown(VIP_NIC_HANDLE NicHandle) {
  if (Nic::find(NicHandle) == nullptr) return VIP_INVALID_PARAMETER;
  return services().remove(NicHandle) ? VIP_SUCCESS : VIP_ERROR_NAMESERVICE;
}
