// Applying the operation, and the layout of buffers for vectors of any type.
#include "libmpi_lite/collective/algorithms/reduction.hpp"

#include <algorithm>
#include <cstddef>

namespace viaduct::mpi {
namespace {

// Bytes: the alignment of the strictest basic type. Vectors start and end at multiples of it, so
// that items are aligned as in the program's own buffers, which user functions may rely on.
constexpr MPI_Count kAlignment = alignof(std::max_align_t);

// The bytes that `count` items touch, from the buffer's address on; `from` may be negative, and is
// rounded down, `to` up.
struct Reach {
  MPI_Count from, to;
};
Reach reach(const Datatype& type, MPI_Count count) {
  if (count == 0) return {0, 0};
  const MPI_Count last = (count - 1) * type.extent();
  const MPI_Count from = type.true_lb() + std::min<MPI_Count>(0, last);
  const MPI_Count to = type.true_ub() + std::max<MPI_Count>(0, last);
  return {from & -kAlignment, (to + kAlignment - 1) & -kAlignment};
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
    : op_(&op), function_(&function), type_(&op.hold(type)), handle_(type), count_(count) {
  op.hold(function);
}

void Reduction::combine(const void* left, void* right, MPI_Count count) const {
  if (count == 0 || op_->lacks_data()) return;
  if (datatype_handles.find(reinterpret_cast<std::uintptr_t>(handle_)) == type_) [[likely]] {
    function_->apply(left, right, count, handle_);
    return;
  }
  // The program has freed the handle, or it names another type by now. The user function still
  // needs one, so make one for the call.
  const std::uintptr_t handle = datatype_handles.add(Ref<Datatype>(type_));
  function_->apply(left, right, count, reinterpret_cast<MPI_Datatype>(handle));
  datatype_handles.remove(handle);
}

Reduction::VectorBuffers::VectorBuffers(const Reduction& reduction, MPI_Count count, int vectors)
    : from_(reach(*reduction.type_, count).from),
      width_(reach(*reduction.type_, count).to - from_),
      memory_(static_cast<std::size_t>(width_ * vectors)) {}

void* Reduction::VectorBuffers::vector(int k) const {
  return byte_at(memory_.data(), k * width_ - from_);
}

}  // namespace viaduct::mpi
