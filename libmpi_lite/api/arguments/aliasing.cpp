// The slow part of the aliasing check (aliasing.hpp): flattens blocks into ranges of addresses and
// sweeps over both sorted lists. Runs only when the spans of two arguments overlap.
#include "libmpi_lite/api/arguments/aliasing.hpp"

namespace viaduct::mpi {
namespace {

// Bytes of data that are looked at in one block with gaps. A limit, because at worst each byte
// becomes a range of its own, and a block may have gigabytes.
constexpr MPI_Count kLookedAt = 4096;

// Appends the ranges of the block's data. The type map is walked item by item, leaf by leaf; `from`
// and `to` count bytes of data within a leaf, whose units of `piece.unit` bytes lie `piece.stride`
// apart.
void add_ranges(const Items& items, std::vector<AddressRange>& ranges) {
  const Datatype& type = *items.type;
  if (items.bytes() == 0) return;
  if (type.contiguous()) return ranges.push_back(span_of(items));
  MPI_Count left = std::min(kLookedAt, items.bytes());
  auto leaf = [&](std::uintptr_t at, const Layout::Piece& piece, MPI_Count from, MPI_Count to) {
    for (MPI_Count unit = from / piece.unit; unit * piece.unit < to; ++unit) {
      const std::uintptr_t start = at + static_cast<std::uintptr_t>(unit * piece.stride);
      const MPI_Count begin = unit * piece.unit;
      ranges.push_back({start + static_cast<std::uintptr_t>(std::max(from, begin) - begin),
                        start + static_cast<std::uintptr_t>(std::min(to - begin, piece.unit))});
    }
  };
  for (MPI_Count item = 0; left > 0; ++item) {
    const MPI_Count bytes = std::min(left, type.size());
    type.type_map().visit(
        reinterpret_cast<std::uintptr_t>(byte_at(items.data, item * type.extent())), 0, bytes,
        leaf);
    left -= bytes;
  }
}

std::vector<AddressRange> sorted_ranges(const std::vector<Items>& blocks) {
  std::vector<AddressRange> ranges;
  for (const Items& items : blocks) add_ranges(items, ranges);
  std::ranges::sort(ranges, {}, &AddressRange::from);
  return ranges;
}

}  // namespace

AddressRange span_with_gaps(Items items) {
  // The first or the last item may be the lowest: the extent of a type may be negative.
  const MPI_Count last = (items.count - 1) * items.type->extent();
  const auto at = [&](MPI_Count offset) {
    return reinterpret_cast<std::uintptr_t>(byte_at(items.data, offset));
  };
  return {at(items.type->true_lb() + std::min<MPI_Count>(0, last)),
          at(items.type->true_ub() + std::max<MPI_Count>(0, last))};
}

// A sweep over both lists in the order of addresses. A range that begins before the furthest end of
// the other argument's ranges overlaps one of them. The furthest end counts, not the last one,
// because ranges of one argument may lie within each other.
bool share_bytes(const std::vector<Items>& a, const std::vector<Items>& b) {
  const std::vector<AddressRange> ours = sorted_ranges(a), theirs = sorted_ranges(b);
  auto our = ours.begin(), their = theirs.begin();
  std::uintptr_t our_end = 0, their_end = 0;
  while (our != ours.end() || their != theirs.end()) {
    const bool next_is_ours =
        their == theirs.end() || (our != ours.end() && our->from <= their->from);
    const AddressRange& next = next_is_ours ? *our++ : *their++;
    if (next.from < (next_is_ours ? their_end : our_end)) return true;
    std::uintptr_t& end = next_is_ours ? our_end : their_end;
    end = std::max(end, next.to);
  }
  return false;
}

}  // namespace viaduct::mpi
