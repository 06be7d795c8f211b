// The C API of Virtual Interfaces, except for connections (connection.cpp) and data (data.cpp).
#include "libvipl/core/vi.hpp"

#include <vipl.h>

#include "libvipl/api/guarded.hpp"
#include "libvipl/core/nic.hpp"

using namespace viaduct::vipl;

VIP_RETURN VipCreateVi(VIP_NIC_HANDLE NicHandle, VIP_VI_ATTRIBUTES* ViAttribs,
                       VIP_CQ_HANDLE SendCQHandle, VIP_CQ_HANDLE RecvCQHandle,
                       VIP_VI_HANDLE* ViHandle) {
  const auto nic = Nic::find(NicHandle);
  if (nic == nullptr || ViAttribs == nullptr || ViHandle == nullptr) return VIP_INVALID_PARAMETER;
  return guarded(
      [&] { return Vi::create(nic, *ViAttribs, SendCQHandle, RecvCQHandle, *ViHandle); });
}

VIP_RETURN VipDestroyVi(VIP_VI_HANDLE ViHandle) {
  return guarded([&] { return Vi::destroy(ViHandle); });
}

VIP_RETURN VipSetViAttributes(VIP_VI_HANDLE ViHandle, VIP_VI_ATTRIBUTES* ViAttribs) {
  Vi* const vi = Vi::find(ViHandle);
  if (vi == nullptr || ViAttribs == nullptr) return VIP_INVALID_PARAMETER;
  return guarded([&] { return vi->set_attributes(ViHandle, *ViAttribs); });
}

VIP_RETURN VipQueryVi(VIP_VI_HANDLE ViHandle, VIP_VI_STATE* State, VIP_VI_ATTRIBUTES* ViAttribs,
                      VIP_BOOLEAN* SendQEmpty, VIP_BOOLEAN* RecvQEmpty) {
  Vi* const vi = Vi::find(ViHandle);
  if (vi == nullptr) return VIP_INVALID_PARAMETER;
  Vi::Answer answer;
  const VIP_RETURN result = vi->query(ViHandle, answer);
  if (result != VIP_SUCCESS) return result;
  // Programs pass NULL for what they do not ask for.
  if (State != nullptr) *State = answer.state;
  if (ViAttribs != nullptr) *ViAttribs = answer.attributes;
  if (SendQEmpty != nullptr) *SendQEmpty = answer.send_empty ? VIP_TRUE : VIP_FALSE;
  if (RecvQEmpty != nullptr) *RecvQEmpty = answer.receive_empty ? VIP_TRUE : VIP_FALSE;
  return VIP_SUCCESS;
}

VIP_RETURN VipSetViCapacity(VIP_VI_HANDLE ViHandle, VIP_ULONG SendDescriptors,
                            VIP_ULONG RecvDescriptors, VIP_ULONG SegmentsPerDesc) {
  Vi* const vi = Vi::find(ViHandle);
  if (vi == nullptr) return VIP_INVALID_PARAMETER;
  return guarded([&] {
    return vi->set_capacity(ViHandle, {SendDescriptors, RecvDescriptors, SegmentsPerDesc});
  });
}

VIP_PVOID VipGetUserData(VIP_VI_HANDLE ViHandle) {
  const Vi* const vi = Vi::find(ViHandle);
  return vi != nullptr ? vi->user_data.load() : nullptr;
}

void VipSetUserData(VIP_VI_HANDLE ViHandle, VIP_PVOID UserData) {
  Vi* const vi = Vi::find(ViHandle);
  if (vi != nullptr) vi->user_data = UserData;
}
