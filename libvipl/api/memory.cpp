// The C API of protection tags and registered memory. The lambdas tie three parts together: Memory
// asks the NIC whether a VI uses the region, and has the connection manager tell the other sides of
// a new remote key.
#include "libvipl/core/memory.hpp"

#include <vipl.h>

#include "libvipl/api/guarded.hpp"
#include "libvipl/core/nic.hpp"

using namespace viaduct::vipl;

VIP_RETURN VipCreatePtag(VIP_NIC_HANDLE NicHandle, VIP_PROTECTION_HANDLE* Ptag) {
  const auto nic = Nic::find(NicHandle);
  if (nic == nullptr || Ptag == nullptr) return VIP_INVALID_PARAMETER;
  return guarded([&] { return nic->memory().create_tag(*Ptag); });
}

VIP_RETURN VipDestroyPtag(VIP_NIC_HANDLE NicHandle, VIP_PROTECTION_HANDLE Ptag) {
  const auto nic = Nic::find(NicHandle);
  if (nic == nullptr) return VIP_INVALID_PARAMETER;
  return nic->memory().destroy_tag(Ptag);
}

VIP_RETURN VipRegisterMem(VIP_NIC_HANDLE NicHandle, VIP_PVOID VirtualAddress, VIP_ULONG Length,
                          VIP_MEM_ATTRIBUTES* MemAttribs, VIP_MEM_HANDLE* MemoryHandle) {
  const auto nic = Nic::find(NicHandle);
  if (nic == nullptr || MemoryHandle == nullptr) return VIP_INVALID_PARAMETER;
  return guarded(
      [&] { return nic->memory().add(VirtualAddress, Length, MemAttribs, *MemoryHandle); });
}

VIP_RETURN VipDeregisterMem(VIP_NIC_HANDLE NicHandle, VIP_PVOID VirtualAddress,
                            VIP_MEM_HANDLE MemoryHandle) {
  const auto nic = Nic::find(NicHandle);
  if (nic == nullptr) return VIP_INVALID_PARAMETER;
  return guarded([&] {
    return nic->memory().remove(
        VirtualAddress, MemoryHandle, [&] { return nic->uses(MemoryHandle); },
        [&] { nic->manager().announce(MemoryHandle, 0); });
  });
}

VIP_RETURN VipSetMemAttributes(VIP_NIC_HANDLE NicHandle, VIP_PVOID Address,
                               VIP_MEM_HANDLE MemHandle, VIP_MEM_ATTRIBUTES* MemAttribs) {
  const auto nic = Nic::find(NicHandle);
  if (nic == nullptr || MemAttribs == nullptr) return VIP_INVALID_PARAMETER;
  return guarded([&] {
    return nic->memory().change(
        Address, MemHandle, *MemAttribs, [&] { return nic->uses(MemHandle); },
        [&](std::uint32_t key) { nic->manager().announce(MemHandle, key); });
  });
}

VIP_RETURN VipQueryMem(VIP_NIC_HANDLE NicHandle, VIP_PVOID Address, VIP_MEM_HANDLE MemHandle,
                       VIP_MEM_ATTRIBUTES* MemAttribs) {
  const auto nic = Nic::find(NicHandle);
  if (nic == nullptr || MemAttribs == nullptr) return VIP_INVALID_PARAMETER;
  return nic->memory().query(Address, MemHandle, *MemAttribs);
}
