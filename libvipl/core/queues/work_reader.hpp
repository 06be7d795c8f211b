// WorkReader: from a descriptor, as the program has written it, to work for the device, or to the
// status bits that say what is wrong with it (VIPL 1.0: format, protection and length errors).
// Inlined, because it happens for each descriptor; the rare part is in work_reader.cpp.
//
// Each WorkQueue has one, used under its post_mutex_. Another thread of the program may change a
// descriptor that is being posted: so every field is read once, and what was checked is what is
// used.
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

// The largest MaxSegmentsPerDesc: error_of_failed_receive() has so many segments on the stack.
inline constexpr std::uint32_t kMaxSegments = 256;

// What a VI's descriptors may do, and the tables to look things up in. The pointers must stay valid
// as long as the rules are in use.
struct PostRules {
  const RegionTable* regions = nullptr;     // memory handles of this side
  const vi::Domain* domain = nullptr;       // of the VI's protection tag
  const RemoteKeys* remote_keys = nullptr;  // memory handles of the other side
  std::uint32_t max_segments = 0;       // data segments, and those of RDMA with the address segment
  std::uint64_t max_transfer_size = 0;  // bytes of a send
  bool rdma_read = false;               // the reliability level has RDMA reads
};

// The segments follow the control segment, as many as SegCount says. VIP_DESCRIPTOR names only the
// first two.
inline const VIP_DESCRIPTOR_SEGMENT* segments_of(const VIP_DESCRIPTOR& descriptor) {
  return reinterpret_cast<const VIP_DESCRIPTOR_SEGMENT*>(
      reinterpret_cast<const std::byte*>(&descriptor) + sizeof(VIP_CONTROL_SEGMENT));
}

// What a send descriptor's control word (operation, immediate, fence) means.
struct SendKind {
  enum class Form : std::uint16_t { send, rdma_write, rdma_read, wrong };
  std::uint32_t status;  // VIP_STATUS_OP_...
  Form form;
  // 1: it uses no receive descriptor of the other side, whose program learns nothing of it.
  std::uint16_t consumes_no_receive;
  vi::Verb verb;
};
static_assert(sizeof(SendKind) == 16);  // so that indexing the table is a shift
inline constexpr std::uint32_t kSendKindBits =
    VIP_CONTROL_OP_MASK | VIP_CONTROL_IMMEDIATE | VIP_CONTROL_QFENCE;

// VIPL: an RDMA read has no immediate data; operation 3 is reserved. Every send is signaled,
// because every descriptor completes.
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
// send_kind() of all words, computed at compile time. The second half is for words in which
// reserved bits are set.
inline constexpr auto kSendKinds = [] {
  std::array<SendKind, 2 * (kSendKindBits + 1)> all{};
  for (std::uint32_t bits = 0; bits < all.size(); ++bits) {
    all[bits] = send_kind(bits & kSendKindBits);
    if (bits > kSendKindBits) all[bits].form = SendKind::Form::wrong;
  }
  return all;
}();

// What a receive descriptor's control word means: only OP_SENDRECV without reserved bits is right.
struct ReceiveKind {
  static constexpr std::uint32_t status = VIP_STATUS_OP_RECEIVE;
  bool right;
};

// The kind of a control word; the unused parameter chooses between send and receive.
inline const SendKind& kind_of(std::uint32_t control, const vi::SendWork&) {
  if (control > kSendKindBits) [[unlikely]]
    return kSendKinds[(control & kSendKindBits) + kSendKindBits + 1];
  return kSendKinds[control];
}
inline ReceiveKind kind_of(std::uint32_t control, const vi::ReceiveWork&) {
  return {(control & (VIP_CONTROL_RESERVED | VIP_CONTROL_OP_MASK)) == VIP_CONTROL_OP_SENDRECV};
}

// Where the data of a descriptor is: the handle of its region; kNowhere: it has no data; kSeveral:
// in more than one region. No region has either handle.
inline constexpr VIP_MEM_HANDLE kNowhere = 0, kSeveral = 0xffffffff;

// Makes work for the device of descriptors. A field that another thread of the program may change
// meanwhile is read once.
class WorkReader {
 public:
  // From now on these rules hold.
  void use(const PostRules& rules) {
    rules_ = rules;
    forget();
  }
  const PostRules& rules() const { return rules_; }
  // Where read() writes the device's segments; there must be room for rules().max_segments.
  void put_segments_at(vi::Segment* segments) { segments_ = segments; }

  // How many descriptors that consume no receive (see SendKind) have been read so far.
  std::uint64_t no_receive_count() const { return no_receive_count_; }

  // Bytes from a descriptor at `address` to the end of its region `memory`; 0: it is not registered
  // there. Must be called before read(), which relies on the region it has looked up.
  std::uint64_t room(VIP_MEM_HANDLE memory, std::uint64_t address);
  // Reads the descriptor for which room() was called last. Returns 0, or error bits; then `work`
  // must not be used. On entry `work` has what never changes. `where` becomes the place of the
  // data.
  std::uint32_t read(const VIP_DESCRIPTOR& descriptor, std::uint64_t room, const SendKind& kind,
                     vi::SendWork& work, VIP_MEM_HANDLE& where);
  std::uint32_t read(const VIP_DESCRIPTOR& descriptor, std::uint64_t room, ReceiveKind kind,
                     vi::ReceiveWork& work, VIP_MEM_HANDLE& where);
  // For a receive in which read() found something wrong: `work` gets the segments in front of that,
  // so that shorter messages can be received.
  [[gnu::cold]] void clip(const VIP_DESCRIPTOR& descriptor, std::uint64_t room, ReceiveKind kind,
                          vi::ReceiveWork& work, VIP_MEM_HANDLE& where);

 private:
  // A region as it was when it was last looked up.
  struct Known {
    VIP_MEM_HANDLE handle = kNowhere;
    std::uint32_t key = 0;
    std::uint64_t begin = 0, end = 0;
    bool usable = false;  // it has the VI's protection tag

    [[gnu::cold]] void look_up(VIP_MEM_HANDLE wanted, const RegionTable& regions,
                               const vi::Domain* domain);
    bool holds(std::uint64_t address, std::uint32_t bytes) const {
      std::uint64_t behind = 0;
      return address >= begin && !__builtin_add_overflow(address, bytes, &behind) && behind <= end;
    }
  };

  // read_data() returns a number of bytes, or one of these: a segment is outside of memory that the
  // VI may use; there are too many segments.
  static constexpr std::uint64_t kOutside = ~std::uint64_t{0};
  static constexpr std::uint64_t kTooMany = kOutside - 1;
  static std::uint32_t error(std::uint64_t bytes) {
    if (bytes == kOutside) return VIP_STATUS_PROTECTION_ERROR;
    return bytes == kTooMany ? VIP_STATUS_FORMAT_ERROR : VIP_STATUS_LENGTH_ERROR;
  }

  // What has been looked up may be gone, since the table has another version.
  void forget() {
    memory_ = data_ = {};
    version_ = rules_.regions->version();
  }
  // Whether the whole descriptor, with `count` segments, is in memory that the VI may use. 0, or
  // error bits.
  std::uint32_t check_room(std::uint64_t room, std::uint64_t count) const;
  bool may_read(const SendKind& kind) const {
    return kind.form == SendKind::Form::rdma_read && rules_.rdma_read;
  }
  // The address segment of RDMA. False: a format error.
  bool read_remote(const VIP_ADDRESS_SEGMENT& from, const SendKind& kind, std::uint64_t count,
                   vi::SendWork& work) const;
  // All data segments: the sum of their lengths, kOutside or kTooMany.
  template <class Work>
  std::uint64_t read_data(const VIP_DATA_SEGMENT* from, std::uint64_t count, Work& work,
                          VIP_MEM_HANDLE& where);
  std::uint64_t read_many(const VIP_DATA_SEGMENT* from, std::uint64_t count,
                          std::uint32_t& with_bytes, VIP_MEM_HANDLE& where);
  // Translates one segment, which is not empty, to segment number `at` of the work.
  bool read_segment(const VIP_DATA_SEGMENT& from, VIP_MEM_HANDLE handle, std::uint32_t length,
                    std::uint32_t at);
  std::uint32_t clip_segment(const VIP_DATA_SEGMENT& from, std::uint32_t length, std::uint32_t at);

  PostRules rules_;
  vi::Segment* segments_ = nullptr;
  std::uint64_t no_receive_count_ = 0;
  // The last regions looked up, because programs have few: of descriptors, and of data.
  Known memory_, data_;
  std::uint64_t version_ = 0;  // of the region table, when they were looked up
};

inline std::uint64_t WorkReader::room(VIP_MEM_HANDLE memory, std::uint64_t address) {
  if (version_ != rules_.regions->version()) [[unlikely]]
    forget();
  if (memory_.handle != memory) [[unlikely]]
    memory_.look_up(memory, *rules_.regions, rules_.domain);
  return address >= memory_.begin && address < memory_.end ? memory_.end - address : 0;
}

// Too many segments are a format error, even if they would also reach beyond the memory.
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
    if (!data_.usable) data_ = {};  // so that it holds nothing
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

// The common case is one segment with bytes; read_many() does the others.
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
    no_receive_count_ += kind.consumes_no_receive;
    ++data;
    --count;
  }
  const std::uint64_t bytes = read_data(&data->Local, count, work, where);
  // kOutside and kTooMany are larger than any Length, so this one comparison catches them too.
  if (bytes != descriptor.CS.Length || bytes > rules_.max_transfer_size) [[unlikely]]
    return error(bytes);
  work.network_immediate = htobe32(descriptor.CS.ImmediateData);
  return 0;
}

// Length is not looked at, because programs post a receive again with the Length of the last
// message in it. The room for data is what the segments say.
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
