#include "libmpi_lite/collective/reduction.hpp"

#include <algorithm>

namespace viaduct::mpi {
namespace {

// The bytes that `count` items touch, counted from the buffer's address.
struct Reach {
  MPI_Count from, to;
};
Reach reach(const Datatype& type, MPI_Count count) {
  if (count == 0) return {0, 0};
  const MPI_Count last = (count - 1) * type.extent();
  return {type.true_lb() + std::min<MPI_Count>(0, last),
          type.true_ub() + std::max<MPI_Count>(0, last)};
}
std::size_t width(Reach r) {
  return static_cast<std::size_t>(r.to - r.from);
}

}  // namespace

Ranges even_ranges(MPI_Count count, int parts) {
  Ranges ranges;
  ranges.reserve(static_cast<std::size_t>(parts));
  const MPI_Count each = count / parts, more = count % parts;
  for (MPI_Count i = 0, first = 0; i < parts; ++i) {
    ranges.push_back({first, each + (i < more)});
    first += ranges.back().count;
  }
  return ranges;
}

Reduction::Reduction(Collective& op, const Op& function, MPI_Datatype type, MPI_Count count)
    : function_(&function), type_(&op.hold(type)), handle_(type), count_(count) {
  op.hold(function);
}

void Reduction::combine(const void* left, void* right, MPI_Count count) const {
  if (count == 0) return;
  if (datatype_handles.find(reinterpret_cast<std::uintptr_t>(handle_)) == type_) [[likely]] {
    function_->apply(left, right, count, handle_);
    return;
  }
  // The user has freed the type; the user's function still needs a handle.
  const std::uintptr_t handle = datatype_handles.add(Ref<Datatype>(type_));
  function_->apply(left, right, count, reinterpret_cast<MPI_Datatype>(handle));
  datatype_handles.remove(handle);
}

Reduction::Room::Room(const Reduction& reduction, MPI_Count count)
    : memory_(width(reach(*reduction.type_, count))),
      data_(reinterpret_cast<void*>(
          reinterpret_cast<std::intptr_t>(memory_.data()) -
          static_cast<std::intptr_t>(reach(*reduction.type_, count).from))) {}

}  // namespace viaduct::mpi
