// The C API of NICs that their program drives: an extension of this library (VIP_HAS_OWN_PROGRESS).
#include <vipl.h>

#include "libvipl/api/guarded.hpp"
#include "libvipl/core/nic.hpp"
#include "libvipl/core/progress/own_progress.hpp"

using namespace viaduct::vipl;

VIP_RETURN VipNicOwnProgress(VIP_NIC_HANDLE NicHandle, VIP_BOOLEAN OwnPort) {
  const auto nic = Nic::find(NicHandle);
  if (nic == nullptr) return VIP_INVALID_PARAMETER;
  return guarded([&] { return nic->drive_by_program(OwnPort != VIP_FALSE); });
}

// The table of NICs is not asked while nothing is due: it takes a lock.
VIP_RETURN VipNicProgress(VIP_NIC_HANDLE NicHandle) {
  if (OwnProgress::is_early(handle_of(NicHandle))) return VIP_NOT_DONE;
  const auto nic = Nic::find(NicHandle);
  if (nic == nullptr) return VIP_INVALID_PARAMETER;
  return guarded([&] { return nic->progress(); });
}

VIP_RETURN VipNicDescriptor(VIP_NIC_HANDLE NicHandle, int* FileDescriptor) {
  const auto nic = Nic::find(NicHandle);
  if (nic == nullptr || FileDescriptor == nullptr) return VIP_INVALID_PARAMETER;
  return nic->descriptor(*FileDescriptor);
}

VIP_RETURN VipNicArm(VIP_NIC_HANDLE NicHandle, VIP_CQ_HANDLE* CQHandles, VIP_ULONG CQCount) {
  const auto nic = Nic::find(NicHandle);
  if (nic == nullptr || (CQHandles == nullptr && CQCount != 0)) return VIP_INVALID_PARAMETER;
  return guarded([&] { return nic->arm({CQHandles, CQCount}); });
}
