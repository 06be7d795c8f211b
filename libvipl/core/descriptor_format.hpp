// From a descriptor, as a program has written it, to work for the device, or to the status bits
// that say what is wrong with it. All in place, because it happens for each descriptor.
#pragma once

#include <endian.h>

#include <array>
#include <cstddef>
#include <cstdint>

#include <vipl.h>

#include "drivers/vi_over_verbs/verbs.hpp"
#include "libvipl/core/region_table.hpp"

namespace viaduct::vipl {

inline constexpr std::uint32_t kMostSegments = 256;

// What a VI lets its descriptors do.
struct PostRules {
  const RegionTable* regions = nullptr;
  const vi::Domain* domain = nullptr;  // of its tag
  std::uint32_t max_segments = 0;
  std::uint32_t max_transfer_size = 0;  // of sends
  bool rdma_read = false;
};

// Segments lie behind the control segment without end; the struct names only the first two.
inline const VIP_DESCRIPTOR_SEGMENT* segments_of(const VIP_DESCRIPTOR& descriptor) {
  return reinterpret_cast<const VIP_DESCRIPTOR_SEGMENT*>(
      reinterpret_cast<const std::byte*>(&descriptor) + sizeof(VIP_CONTROL_SEGMENT));
}

struct ReadSegments {
  std::uint32_t wrong;  // error bits; if there are any, nothing else is of use
  std::uint32_t count;  // of those with bytes
  std::uint64_t bytes;
  VIP_MEM_HANDLE where;  // the region, kNowhere or kSeveral
};
// No regions have these handles.
inline constexpr VIP_MEM_HANDLE kNowhere = 0, kSeveral = 0xffffffff;

// `recent`: where the data before was, in which it is looked for first, because programs have few
// regions.
inline ReadSegments read_segments(const VIP_DATA_SEGMENT* from, std::uint32_t count,
                                  const PostRules& rules, const Region*& recent, vi::Segment* to) {
  constexpr ReadSegments kProtection{VIP_STATUS_PROTECTION_ERROR, 0, 0, kNowhere};
  const VIP_DATA_SEGMENT* const end = from + count;
  const vi::Segment* const first = to;
  const Region* region = recent;
  std::uint64_t bytes = 0;
  VIP_MEM_HANDLE where = kNowhere;
  for (; from != end; ++from) {
    const std::uint32_t length = from->Length;
    // Devices take a length of 0 for 2 GiB (InfiniBand specification, 10.8.2), and programs have
    // nothing registered for a message without bytes.
    if (length == 0) [[unlikely]]
      continue;
    if (const VIP_MEM_HANDLE handle = from->Handle; !region->is(handle)) [[unlikely]] {
      region = rules.regions->find(handle);
      if (region == nullptr) return kProtection;
      recent = region;
      if (to != first) where = kSeveral;
    }
    const std::uint64_t address = from->Data.AddressBits;
    if (length > region->room(address) || !region->is_in(rules.domain)) [[unlikely]]
      return kProtection;
    *to++ = {address, length, region->local_key.load(std::memory_order_relaxed)};
    bytes += length;
  }
  if (where == kNowhere && to != first) where = region->handle.load(std::memory_order_relaxed);
  return {0, static_cast<std::uint32_t>(to - first), bytes, where};
}

// The descriptor's own memory, `room` bytes of `memory`, and its form. 0, or the error bits.
inline std::uint32_t check_control(std::uint32_t bits, std::uint32_t segments, const Region& memory,
                                   std::uint64_t room, const PostRules& rules) {
  if (!memory.is_in(rules.domain)) [[unlikely]]
    return VIP_STATUS_PROTECTION_ERROR;
  if ((bits & VIP_CONTROL_RESERVED) != 0 || segments > rules.max_segments) [[unlikely]]
    return VIP_STATUS_FORMAT_ERROR;
  const std::size_t bytes = sizeof(VIP_CONTROL_SEGMENT) + segments * sizeof(VIP_DATA_SEGMENT);
  return bytes <= room ? 0 : VIP_STATUS_PROTECTION_ERROR;
}

// What the operation and the other bits of a control word mean.
struct SendKind {
  std::uint32_t status;  // VIP_STATUS_OP_...
  std::uint32_t wrong;   // error bits
  vi::Operation operation;
  std::uint32_t flags;
};
inline constexpr std::uint32_t kSendKindBits =
    VIP_CONTROL_OP_MASK | VIP_CONTROL_IMMEDIATE | VIP_CONTROL_QFENCE;

constexpr SendKind send_kind(std::uint32_t bits) {
  using vi::Operation;
  const bool immediate = (bits & VIP_CONTROL_IMMEDIATE) != 0;
  const std::uint32_t fence = (bits & VIP_CONTROL_QFENCE) != 0 ? vi::SendWork::kFence : 0;
  const std::uint32_t flags = vi::SendWork::kSignaled | fence;
  switch (bits & VIP_CONTROL_OP_MASK) {
    case VIP_CONTROL_OP_SENDRECV:
      return {VIP_STATUS_OP_SEND, 0, immediate ? Operation::send_with_immediate : Operation::send,
              flags};
    case VIP_CONTROL_OP_RDMAWRITE:
      return {VIP_STATUS_OP_RDMA_WRITE, 0,
              immediate ? Operation::rdma_write_with_immediate : Operation::rdma_write, flags};
    case VIP_CONTROL_OP_RDMAREAD:
      return {VIP_STATUS_OP_RDMA_READ, immediate ? VIP_STATUS_FORMAT_ERROR : 0u,
              Operation::rdma_read, flags};
    default: return {VIP_STATUS_OP_SEND, VIP_STATUS_FORMAT_ERROR, Operation::send, flags};
  }
}
inline constexpr auto kSendKinds = [] {
  std::array<SendKind, kSendKindBits + 1> all{};
  for (std::uint32_t bits = 0; bits < all.size(); ++bits) all[bits] = send_kind(bits);
  return all;
}();

inline const SendKind& kind_of(const VIP_DESCRIPTOR& descriptor) {
  return kSendKinds[descriptor.CS.Control & kSendKindBits];
}

// What the status says of the operation, in a send queue and in a receive queue.
inline std::uint32_t operation_of(const VIP_DESCRIPTOR& descriptor, const vi::SendWork&) {
  return kind_of(descriptor).status;
}
inline std::uint32_t operation_of(const VIP_DESCRIPTOR&, const vi::ReceiveWork&) {
  return VIP_STATUS_OP_RECEIVE;
}

// From a descriptor that is `room` bytes before the end of its region to work; segments go to `to`,
// and `work` has what never changes. `recent` as above; `where` the data is. 0, or the
// error bits: then nothing is of use.
inline std::uint32_t read_work(const VIP_DESCRIPTOR& descriptor, const Region& memory,
                               std::uint64_t room, const PostRules& rules, const Region*& recent,
                               vi::SendWork& work, vi::Segment* to, VIP_MEM_HANDLE& where) {
  const VIP_CONTROL_SEGMENT& control = descriptor.CS;
  const SendKind& kind = kind_of(descriptor);
  std::uint32_t segments = control.SegCount;  // once: another thread might change it meanwhile
  if (const std::uint32_t wrong = check_control(control.Control, segments, memory, room, rules))
      [[unlikely]]
    return wrong;
  if (kind.wrong != 0) [[unlikely]]
    return kind.wrong;
  work.operation = kind.operation;
  work.flags = kind.flags;
  const VIP_DESCRIPTOR_SEGMENT* data = segments_of(descriptor);
  if (kind.status != VIP_STATUS_OP_SEND) {
    if (segments == 0 || (kind.status == VIP_STATUS_OP_RDMA_READ && !rules.rdma_read)) [[unlikely]]
      return VIP_STATUS_FORMAT_ERROR;
    work.remote_address = data->Remote.Data.AddressBits;
    work.remote_key = data->Remote.Handle;
    ++data;
    --segments;
  }
  const ReadSegments read = read_segments(&data->Local, segments, rules, recent, to);
  if (read.wrong != 0) [[unlikely]]
    return read.wrong;
  if (read.bytes != control.Length || read.bytes > rules.max_transfer_size) [[unlikely]]
    return VIP_STATUS_LENGTH_ERROR;
  work.count = read.count;
  where = read.where;
  work.network_immediate = htobe32(control.ImmediateData);
  return 0;
}

// The room for data is what the segments say: programs post a descriptor again with the Length that
// the last message had.
inline std::uint32_t read_work(const VIP_DESCRIPTOR& descriptor, const Region& memory,
                               std::uint64_t room, const PostRules& rules, const Region*& recent,
                               vi::ReceiveWork& work, vi::Segment* to, VIP_MEM_HANDLE& where) {
  const VIP_CONTROL_SEGMENT& control = descriptor.CS;
  if ((control.Control & VIP_CONTROL_OP_MASK) != VIP_CONTROL_OP_SENDRECV) [[unlikely]]
    return VIP_STATUS_FORMAT_ERROR;
  const std::uint32_t segments = control.SegCount;  // once, as above
  if (const std::uint32_t wrong = check_control(control.Control, segments, memory, room, rules))
      [[unlikely]]
    return wrong;
  const ReadSegments read =
      read_segments(&segments_of(descriptor)->Local, segments, rules, recent, to);
  work.count = read.count;
  where = read.where;
  return read.wrong;
}

}  // namespace viaduct::vipl
