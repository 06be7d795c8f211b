// The C API of the data path: posting descriptors and getting them back. No lock and no reference
// is taken here. The slot of the handle is found without a check, because the WorkQueue checks the
// handle under its own lock.
#include <vipl.h>

#include "libvipl/api/guarded.hpp"
#include "libvipl/core/queues/fast_path.hpp"

namespace {

using namespace viaduct::vipl;

using Queue = WorkQueue& (Vi::*)();

// The descriptor is written on every return: programs drain a queue until it is NULL.
template <Queue kQueue>
VIP_RETURN done(VIP_VI_HANDLE handle, VIP_DESCRIPTOR** descriptor) {
  if (descriptor == nullptr) return VIP_INVALID_PARAMETER;
  *descriptor = nullptr;
  Vi* const vi = Vi::Table::slot_of(handle);
  if (vi == nullptr) return VIP_INVALID_PARAMETER;
  return (vi->*kQueue)().done(handle_of(handle), *descriptor);
}

template <Queue kQueue>
VIP_RETURN wait(VIP_VI_HANDLE handle, VIP_ULONG timeout, VIP_DESCRIPTOR** descriptor) {
  if (descriptor == nullptr) return VIP_INVALID_PARAMETER;
  *descriptor = nullptr;
  Vi* const vi = Vi::Table::slot_of(handle);
  if (vi == nullptr) return VIP_INVALID_PARAMETER;
  return (vi->*kQueue)().wait(handle_of(handle), deadline_after(timeout), *descriptor);
}

template <Queue kQueue>
VIP_RETURN notify(VIP_VI_HANDLE handle, VIP_PVOID context, VIP_VI_CALLBACK callback) {
  Vi* const vi = Vi::Table::slot_of(handle);
  if (vi == nullptr || callback == nullptr) return VIP_INVALID_PARAMETER;
  return guarded([&] { return (vi->*kQueue)().notify(handle_of(handle), context, callback); });
}

// Template arguments, so that each call is direct.
constexpr Queue kSends = &Vi::send_queue, kReceives = &Vi::receive_queue;

}  // namespace

VIP_RETURN VipPostSend(VIP_VI_HANDLE ViHandle, VIP_DESCRIPTOR* DescriptorPtr,
                       VIP_MEM_HANDLE MemoryHandle) {
  Vi* const vi = Vi::Table::slot_of(ViHandle);
  if (vi == nullptr) return VIP_INVALID_PARAMETER;
  return vi->send_queue().post_send(handle_of(ViHandle), DescriptorPtr, MemoryHandle);
}

VIP_RETURN VipPostRecv(VIP_VI_HANDLE ViHandle, VIP_DESCRIPTOR* DescriptorPtr,
                       VIP_MEM_HANDLE MemoryHandle) {
  Vi* const vi = Vi::Table::slot_of(ViHandle);
  if (vi == nullptr) return VIP_INVALID_PARAMETER;
  return vi->receive_queue().post_receive(handle_of(ViHandle), DescriptorPtr, MemoryHandle);
}

VIP_RETURN VipSendDone(VIP_VI_HANDLE ViHandle, VIP_DESCRIPTOR** DescriptorPtr) {
  return done<kSends>(ViHandle, DescriptorPtr);
}

VIP_RETURN VipRecvDone(VIP_VI_HANDLE ViHandle, VIP_DESCRIPTOR** DescriptorPtr) {
  return done<kReceives>(ViHandle, DescriptorPtr);
}

VIP_RETURN VipSendWait(VIP_VI_HANDLE ViHandle, VIP_ULONG Timeout, VIP_DESCRIPTOR** DescriptorPtr) {
  return wait<kSends>(ViHandle, Timeout, DescriptorPtr);
}

VIP_RETURN VipRecvWait(VIP_VI_HANDLE ViHandle, VIP_ULONG Timeout, VIP_DESCRIPTOR** DescriptorPtr) {
  return wait<kReceives>(ViHandle, Timeout, DescriptorPtr);
}

VIP_RETURN VipSendNotify(VIP_VI_HANDLE ViHandle, VIP_PVOID Context, VIP_VI_CALLBACK Callback) {
  return notify<kSends>(ViHandle, Context, Callback);
}

VIP_RETURN VipRecvNotify(VIP_VI_HANDLE ViHandle, VIP_PVOID Context, VIP_VI_CALLBACK Callback) {
  return notify<kReceives>(ViHandle, Context, Callback);
}
