// Copies between buffers of any types, and the forms of arguments that name data for all ranks.
#include "libmpi_lite/collective/buffers.hpp"

#include <algorithm>

#include "libmpi_lite/channel/copy.hpp"

namespace viaduct::mpi {

void pack(const Items& items, std::byte* bytes) {
  if (items.bytes() > 0) items.type->pack(items.data, 0, {bytes, length(items)});
}

void unpack(const std::byte* bytes, const Items& items) {
  if (items.bytes() > 0)
    items.type->unpack(const_cast<void*>(items.data), 0, {bytes, length(items)});
}

namespace {

[[gnu::cold, gnu::noinline]] void refuse_lengths(Collective& op, MPI_Count from, MPI_Count to) {
  op.abort_everywhere(MPI_ERR_TRUNCATE, "this rank has " + std::to_string(from) +
                                            " bytes for itself and expects " + std::to_string(to));
}

}  // namespace

void copy(Collective& op, const Items& from, const Items& to) {
  const MPI_Count total = to.bytes();
  if (from.bytes() != total) [[unlikely]]
    refuse_lengths(op, from.bytes(), total);
  if (op.aborted()) [[unlikely]]
    return;
  // In place: the items are where they belong.
  if (total == 0 || (from.data == to.data && from.type == to.type)) return;

  // A packed copy in between is needed only if both types have gaps.
  const auto bytes = static_cast<std::size_t>(total);
  if (to.type->contiguous() && from.type->contiguous()) {
    copy_data(to.first_byte(), {from.first_byte(), bytes});
  } else if (to.type->contiguous()) {
    from.type->pack(from.data, 0, {to.first_byte(), bytes});
  } else if (from.type->contiguous()) {
    to.type->unpack(const_cast<void*>(to.data), 0, {from.first_byte(), bytes});
  } else {
    const Scratch packed(bytes);
    from.type->pack(from.data, 0, packed.span());
    to.type->unpack(const_cast<void*>(to.data), 0, packed.span());
  }
}

Spread::Spread(Collective& op, const Part& part)
    : data_(part.data), count_(part.count), type_(&op.hold(part.type)) {}

Spread::Spread(Collective& op, const Parts& parts)
    : data_(parts.data),
      type_(&op.hold(parts.type)),
      counts_(parts.counts),
      displacements_(parts.displacements) {}

Spread::Spread(Collective& op, const MixedParts& parts)
    : data_(parts.data),
      counts_(parts.counts),
      displacements_(parts.displacements),
      types_(parts.types) {
  // With a count of 0 the handle is not significant and need not be valid.
  for (int block = 0; block < parts.blocks; ++block)
    held_.push_back(&op.hold(parts.counts[block] ? parts.types[block] : MPI_BYTE));
}

}  // namespace viaduct::mpi
