// The C API of completion queues. VipCQDone looks the slot up without checking the handle:
// Cq::done() checks it under the lock, once.
#include "libvipl/core/queues/cq.hpp"

#include <vipl.h>

#include "libvipl/api/guarded.hpp"
#include "libvipl/core/nic.hpp"
#include "libvipl/core/queues/fast_path.hpp"

using namespace viaduct::vipl;

VIP_RETURN VipCreateCQ(VIP_NIC_HANDLE NicHandle, VIP_ULONG EntryCount, VIP_CQ_HANDLE* CQHandle) {
  const auto nic = Nic::find(NicHandle);
  if (nic == nullptr || CQHandle == nullptr) return VIP_INVALID_PARAMETER;
  return guarded([&] { return Cq::create(nic, EntryCount, *CQHandle); });
}

VIP_RETURN VipDestroyCQ(VIP_CQ_HANDLE CQHandle) {
  return guarded([&] { return Cq::destroy(CQHandle); });
}

VIP_RETURN VipResizeCQ(VIP_CQ_HANDLE CQHandle, VIP_ULONG EntryCount) {
  Cq* const cq = Cq::find(CQHandle);
  if (cq == nullptr) return VIP_INVALID_PARAMETER;
  return guarded([&] { return cq->resize(handle_of(CQHandle), EntryCount); });
}

VIP_RETURN VipCQDone(VIP_CQ_HANDLE CQHandle, VIP_VI_HANDLE* ViHandle, VIP_BOOLEAN* RecvQueue) {
  if (ViHandle == nullptr || RecvQueue == nullptr) return VIP_INVALID_PARAMETER;
  Cq* const cq = Cq::Table::slot_of(CQHandle);
  if (cq == nullptr) return VIP_INVALID_PARAMETER;
  return cq->done(handle_of(CQHandle), *ViHandle, *RecvQueue);
}

VIP_RETURN VipCQWait(VIP_CQ_HANDLE CQHandle, VIP_ULONG Timeout, VIP_VI_HANDLE* ViHandle,
                     VIP_BOOLEAN* RecvQueue) {
  Cq* const cq = Cq::find(CQHandle);
  if (cq == nullptr || ViHandle == nullptr || RecvQueue == nullptr) return VIP_INVALID_PARAMETER;
  return cq->wait(handle_of(CQHandle), deadline_after(Timeout), *ViHandle, *RecvQueue);
}

VIP_RETURN VipCQNotify(VIP_CQ_HANDLE CQHandle, VIP_PVOID Context, VIP_CQ_CALLBACK Callback) {
  Cq* const cq = Cq::find(CQHandle);
  if (cq == nullptr || Callback == nullptr) return VIP_INVALID_PARAMETER;
  return guarded([&] { return cq->notify(handle_of(CQHandle), Context, Callback); });
}
