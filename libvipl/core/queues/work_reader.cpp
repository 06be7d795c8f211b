// The rare part of reading descriptors: looking up a region, descriptors with several segments, and
// receives with wrong contents.
#include "libvipl/core/queues/work_reader.hpp"

#include <algorithm>

namespace viaduct::vipl {

// Copies what the table has now. A region that is erased later changes the table's version, and
// room() forgets the copy.
void WorkReader::Known::look_up(VIP_MEM_HANDLE wanted, const RegionTable& regions,
                                const vi::Domain* domain) {
  *this = {};
  const Region* const region = regions.find(wanted);
  if (region == nullptr) return;
  handle = wanted;
  key = region->local_key.load(std::memory_order_relaxed);
  begin = region->begin.load(std::memory_order_relaxed);
  end = region->end.load(std::memory_order_relaxed);
  usable = region->is_in(domain);
}

// The part of a segment that is inside the region looked up last. Returns the number of segments
// that this makes: 0 or 1.
std::uint32_t WorkReader::clip_segment(const VIP_DATA_SEGMENT& from, std::uint32_t length,
                                       std::uint32_t at) {
  const std::uint64_t address = from.Data.AddressBits;
  if (address < data_.begin || address >= data_.end) return 0;
  segments_[at] = {address,
                   static_cast<std::uint32_t>(std::min<std::uint64_t>(length, data_.end - address)),
                   data_.key};
  return 1;
}

// Existing programs post segments that are longer than their memory: a VIA NIC looked at no more of
// a segment than the message took.
void WorkReader::clip(const VIP_DESCRIPTOR& descriptor, std::uint64_t room, ReceiveKind kind,
                      vi::ReceiveWork& work, VIP_MEM_HANDLE& where) {
  work.count = 0;
  where = kNowhere;
  const std::uint32_t count = descriptor.CS.SegCount;
  if (check_room(room, count) != 0 || !kind.right || count > rules_.max_segments) return;
  const VIP_DATA_SEGMENT* from = &segments_of(descriptor)->Local;
  for (const VIP_DATA_SEGMENT* const end = from + count; from != end; ++from) {
    const std::uint32_t length = from->Length;
    if (length == 0) continue;
    const VIP_MEM_HANDLE handle = from->Handle;
    where = work.count == 0 || where == handle ? handle : kSeveral;
    const bool whole = read_segment(*from, handle, length, work.count);
    work.count += whole ? 1 : clip_segment(*from, length, work.count);
    if (!whole) return;
  }
}

std::uint64_t WorkReader::read_many(const VIP_DATA_SEGMENT* from, std::uint64_t count,
                                    std::uint32_t& with_bytes, VIP_MEM_HANDLE& where) {
  if (count > rules_.max_segments) return kTooMany;
  std::uint64_t bytes = 0;
  std::uint32_t n = 0;
  where = kNowhere;
  for (const VIP_DATA_SEGMENT* const end = from + count; from != end; ++from) {
    const std::uint32_t length = from->Length;
    // Devices take a length of 0 for 2 GiB (InfiniBand specification, 10.8.2). And programs may
    // have no memory registered for an empty segment.
    if (length == 0) continue;
    const VIP_MEM_HANDLE handle = from->Handle;
    if (!read_segment(*from, handle, length, n)) return kOutside;
    where = n == 0 || where == handle ? handle : kSeveral;
    bytes += length;
    ++n;
  }
  with_bytes = n;
  return bytes;
}

}  // namespace viaduct::vipl
