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
#include "libvipl/core/remote_keys.hpp"

namespace viaduct::vipl {

inline constexpr std::uint32_t kMaxSegments = 256;

// What a VI lets its descriptors do.
struct PostRules {
  const RegionTable* regions = nullptr;
  const vi::Domain* domain = nullptr;  // of its tag
  const RemoteKeys* remote_keys = nullptr;
  std::uint32_t max_segments = 0;
  std::uint64_t max_transfer_size = 0;  // of sends
  bool rdma_read = false;
};

// Segments lie behind the control segment without end; the struct names only the first two.
inline const VIP_DESCRIPTOR_SEGMENT* segments_of(const VIP_DESCRIPTOR& descriptor) {
  return reinterpret_cast<const VIP_DESCRIPTOR_SEGMENT*>(
      reinterpret_cast<const std::byte*>(&descriptor) + sizeof(VIP_CONTROL_SEGMENT));
}

// What the operation and the other bits of a control word mean.
struct SendKind {
  enum class Form : std::uint16_t { send, rdma_write, rdma_read, wrong };
  std::uint32_t status;  // VIP_STATUS_OP_...
  Form form;
  // 1: it uses no receive of the other side's, which learns nothing of it.
  std::uint16_t is_silent;
  vi::Verb verb;
};
static_assert(sizeof(SendKind) == 16);  // which is how its place in a table is found fast
inline constexpr std::uint32_t kSendKindBits =
    VIP_CONTROL_OP_MASK | VIP_CONTROL_IMMEDIATE | VIP_CONTROL_QFENCE;

constexpr SendKind send_kind(std::uint32_t bits) {
  using vi::Operation;
  using Form = SendKind::Form;
  const bool immediate = (bits & VIP_CONTROL_IMMEDIATE) != 0;
  const std::uint32_t fence = (bits & VIP_CONTROL_QFENCE) != 0 ? vi::Verb::kFence : 0;
  const std::uint32_t flags = vi::Verb::kSignaled | fence;
  switch (bits & VIP_CONTROL_OP_MASK) {
    case VIP_CONTROL_OP_SENDRECV:
      return {VIP_STATUS_OP_SEND,
              Form::send,
              0,
              {immediate ? Operation::send_with_immediate : Operation::send, flags}};
    case VIP_CONTROL_OP_RDMAWRITE:
      return {VIP_STATUS_OP_RDMA_WRITE,
              Form::rdma_write,
              static_cast<std::uint16_t>(immediate ? 0 : 1),
              {immediate ? Operation::rdma_write_with_immediate : Operation::rdma_write, flags}};
    case VIP_CONTROL_OP_RDMAREAD:
      return {VIP_STATUS_OP_RDMA_READ,
              immediate ? Form::wrong : Form::rdma_read,
              1,
              {Operation::rdma_read, flags}};
    default: return {VIP_STATUS_OP_SEND, Form::wrong, 0, {Operation::send, flags}};
  }
}
// The second half is of words in which other bits are set.
inline constexpr auto kSendKinds = [] {
  std::array<SendKind, 2 * (kSendKindBits + 1)> all{};
  for (std::uint32_t bits = 0; bits < all.size(); ++bits) {
    all[bits] = send_kind(bits & kSendKindBits);
    if (bits > kSendKindBits) all[bits].form = SendKind::Form::wrong;
  }
  return all;
}();

struct ReceiveKind {
  static constexpr std::uint32_t status = VIP_STATUS_OP_RECEIVE;
  bool right;
};

inline const SendKind& kind_of(std::uint32_t control, const vi::SendWork&) {
  if (control > kSendKindBits) [[unlikely]]
    return kSendKinds[(control & kSendKindBits) + kSendKindBits + 1];
  return kSendKinds[control];
}
inline ReceiveKind kind_of(std::uint32_t control, const vi::ReceiveWork&) {
  return {(control & (VIP_CONTROL_RESERVED | VIP_CONTROL_OP_MASK)) == VIP_CONTROL_OP_SENDRECV};
}

// What is known of where the data is: the handle of its region, or one that no region has.
inline constexpr VIP_MEM_HANDLE kNowhere = 0, kSeveral = 0xffffffff;

// Makes work of descriptors. What may be changed meanwhile, by another thread, is read once.
class WorkReader {
 public:
  void use(const PostRules& rules) {
    rules_ = rules;
    forget();
  }
  const PostRules& rules() const { return rules_; }
  // With room for rules().max_segments.
  void put_segments_at(vi::Segment* segments) { segments_ = segments; }

  // How many RDMA descriptors were read that are silent.
  std::uint64_t silent() const { return silent_; }

  // Of a descriptor there: the bytes to the end of its memory; 0: that is not registered.
  std::uint64_t room(VIP_MEM_HANDLE memory, std::uint64_t address);
  // The same descriptor. 0, or the error bits: then nothing is of use. `work` has what never
  // changes, and the segments. `where` the data is.
  std::uint32_t read(const VIP_DESCRIPTOR& descriptor, std::uint64_t room, const SendKind& kind,
                     vi::SendWork& work, VIP_MEM_HANDLE& where);
  std::uint32_t read(const VIP_DESCRIPTOR& descriptor, std::uint64_t room, ReceiveKind kind,
                     vi::ReceiveWork& work, VIP_MEM_HANDLE& where);
  // Of a receive with which something is wrong: work with room for as much as the VI may receive in
  // front of that.
  [[gnu::cold]] void clip(const VIP_DESCRIPTOR& descriptor, std::uint64_t room, ReceiveKind kind,
                          vi::ReceiveWork& work, VIP_MEM_HANDLE& where);

 private:
  // A region as it was when it was last looked up.
  struct Known {
    VIP_MEM_HANDLE handle = kNowhere;
    std::uint32_t key = 0;
    std::uint64_t begin = 0, end = 0;
    bool usable = false;  // it has the tag of the VI

    [[gnu::cold]] void look_up(VIP_MEM_HANDLE wanted, const RegionTable& regions,
                               const vi::Domain* domain);
    bool holds(std::uint64_t address, std::uint32_t bytes) const {
      std::uint64_t behind = 0;
      return address >= begin && !__builtin_add_overflow(address, bytes, &behind) && behind <= end;
    }
  };

  // In the place of a number of bytes: why there is none.
  static constexpr std::uint64_t kOutside = ~std::uint64_t{0};  // of memory that the VI may use
  static constexpr std::uint64_t kTooMany = kOutside - 1;
  static std::uint32_t error(std::uint64_t bytes) {
    if (bytes == kOutside) return VIP_STATUS_PROTECTION_ERROR;
    return bytes == kTooMany ? VIP_STATUS_FORMAT_ERROR : VIP_STATUS_LENGTH_ERROR;
  }

  void forget() {
    memory_ = data_ = {};
    version_ = rules_.regions->version();
  }
  std::uint32_t check_room(std::uint64_t room, std::uint64_t count) const;
  bool may_read(const SendKind& kind) const {
    return kind.form == SendKind::Form::rdma_read && rules_.rdma_read;
  }
  bool read_remote(const VIP_ADDRESS_SEGMENT& from, const SendKind& kind, std::uint64_t count,
                   vi::SendWork& work) const;
  template <class Work>
  std::uint64_t read_data(const VIP_DATA_SEGMENT* from, std::uint64_t count, Work& work,
                          VIP_MEM_HANDLE& where);
  std::uint64_t read_many(const VIP_DATA_SEGMENT* from, std::uint64_t count,
                          std::uint32_t& with_bytes, VIP_MEM_HANDLE& where);
  bool read_segment(const VIP_DATA_SEGMENT& from, VIP_MEM_HANDLE handle, std::uint32_t length,
                    std::uint32_t at);
  std::uint32_t clip_segment(const VIP_DATA_SEGMENT& from, std::uint32_t length, std::uint32_t at);

  PostRules rules_;
  vi::Segment* segments_ = nullptr;
  std::uint64_t silent_ = 0;
  // The last ones, because programs have few regions: of descriptors, and of data.
  Known memory_, data_;
  std::uint64_t version_ = 0;  // of the table that they are from
};

inline std::uint64_t WorkReader::room(VIP_MEM_HANDLE memory, std::uint64_t address) {
  if (version_ != rules_.regions->version()) [[unlikely]]
    forget();
  if (memory_.handle != memory) [[unlikely]]
    memory_.look_up(memory, *rules_.regions, rules_.domain);
  return address >= memory_.begin && address < memory_.end ? memory_.end - address : 0;
}

// For the whole descriptor. 0, or the error bits.
inline std::uint32_t WorkReader::check_room(std::uint64_t room, std::uint64_t count) const {
  const std::size_t bytes = sizeof(VIP_CONTROL_SEGMENT) + count * sizeof(VIP_DATA_SEGMENT);
  if (memory_.usable && bytes <= room) [[likely]]
    return 0;
  return memory_.usable && count > rules_.max_segments ? VIP_STATUS_FORMAT_ERROR
                                                       : VIP_STATUS_PROTECTION_ERROR;
}

// The address segment of RDMA, which counts as one of `count`.
inline bool WorkReader::read_remote(const VIP_ADDRESS_SEGMENT& from, const SendKind& kind,
                                    std::uint64_t count, vi::SendWork& work) const {
  if (count - 1 >= rules_.max_segments) return false;  // none, or too many
  if (kind.form != SendKind::Form::rdma_write && !may_read(kind)) return false;
  work.remote_address = from.Data.AddressBits;
  work.remote_key = rules_.remote_keys->of(from.Handle);
  return true;
}

// `length` is not 0. False: it is outside.
inline bool WorkReader::read_segment(const VIP_DATA_SEGMENT& from, VIP_MEM_HANDLE handle,
                                     std::uint32_t length, std::uint32_t at) {
  if (data_.handle != handle) [[unlikely]] {
    data_.look_up(handle, *rules_.regions, rules_.domain);
    if (!data_.usable) data_ = {};  // holds nothing
  }
  const std::uint64_t address = from.Data.AddressBits;
  if (!data_.holds(address, length)) [[unlikely]]
    return false;
  vi::Segment& to = segments_[at];
  to.address = address;
  to.length = length;
  to.key = data_.key;
  return true;
}

// By far the most descriptors have one segment.
template <class Work>
inline std::uint64_t WorkReader::read_data(const VIP_DATA_SEGMENT* from, std::uint64_t count,
                                           Work& work, VIP_MEM_HANDLE& where) {
  std::uint32_t length = 0;
  if (count != 1 || (length = from->Length) == 0) [[unlikely]]
    return read_many(from, count, work.count, where);
  work.count = 1;
  where = from->Handle;
  if (!read_segment(*from, where, length, 0)) [[unlikely]]
    return kOutside;
  return length;
}

inline std::uint32_t WorkReader::read(const VIP_DESCRIPTOR& descriptor, std::uint64_t room,
                                      const SendKind& kind, vi::SendWork& work,
                                      VIP_MEM_HANDLE& where) {
  std::uint64_t count = descriptor.CS.SegCount;
  if (const std::uint32_t wrong = check_room(room, count)) [[unlikely]]
    return wrong;
  work.verb = kind.verb;
  const VIP_DESCRIPTOR_SEGMENT* data = segments_of(descriptor);
  if (kind.form != SendKind::Form::send) [[unlikely]] {
    if (!read_remote(data->Remote, kind, count, work)) return VIP_STATUS_FORMAT_ERROR;
    silent_ += kind.is_silent;
    ++data;
    --count;
  }
  const std::uint64_t bytes = read_data(&data->Local, count, work, where);
  if (bytes != descriptor.CS.Length || bytes > rules_.max_transfer_size) [[unlikely]]
    return error(bytes);
  work.network_immediate = htobe32(descriptor.CS.ImmediateData);
  return 0;
}

// The room for data is what the segments say: programs post a descriptor again with the Length that
// the last message had.
inline std::uint32_t WorkReader::read(const VIP_DESCRIPTOR& descriptor, std::uint64_t room,
                                      ReceiveKind kind, vi::ReceiveWork& work,
                                      VIP_MEM_HANDLE& where) {
  const std::uint64_t count = descriptor.CS.SegCount;
  if (const std::uint32_t wrong = check_room(room, count)) [[unlikely]]
    return wrong;
  if (!kind.right) [[unlikely]]
    return VIP_STATUS_FORMAT_ERROR;
  const std::uint64_t bytes = read_data(&segments_of(descriptor)->Local, count, work, where);
  return bytes < kTooMany ? 0 : error(bytes);
}

}  // namespace viaduct::vipl
