// Parts of arrays: MPI_Type_create_subarray and MPI_Type_create_darray (MPI 5.0, sections 5.1.3 and
// 5.1.4). Both take the dimensions one by one, from the one in which neighbours are adjacent in
// memory to the outermost. In each step the type made so far is an element (row, plane, ...) of the
// next larger array, and the step takes the elements that belong to the part.
#include "libmpi_lite/core/data/datatype_builder.hpp"
#include "libmpi_lite/core/error.hpp"

namespace viaduct::mpi {

namespace {

// Throws Error where the product does not fit.
MPI_Count checked_product(MPI_Count a, MPI_Count b) {
  MPI_Count product;
  if (__builtin_mul_overflow(a, b, &product))
    throw Error(MPI_ERR_VALUE_TOO_LARGE, "the array has more bytes than 64 bits can tell");
  return product;
}

// The dimension that is taken at `step`. In Fortran's order neighbours in the first dimension are
// adjacent, in C's order those in the last.
std::size_t dimension(std::size_t step, std::size_t dimensions, int order) {
  return order == MPI_ORDER_FORTRAN ? step : dimensions - 1 - step;
}

// A type that only serves to make another. No program sees it, so its shape does not matter.
Ref<Datatype> finish_part(DatatypeBuilder& builder) {
  return builder.finish({MPI_COMBINER_NAMED, {}, {}, {}});
}

// A part of an array, while it is being made: it covers the dimensions taken so far.
struct Part {
  Ref<Datatype> type;  // the part, seen from its own beginning
  MPI_Count stride;    // bytes from one neighbour in the next dimension to the other
  MPI_Count start;     // bytes from the beginning of the array to the beginning of the part
};

// The elements [first, first + count) of the next dimension.
void take_range(Part& part, MPI_Count first, MPI_Count count) {
  DatatypeBuilder builder;
  builder.add(*part.type, 0, count, part.stride);
  part.type = finish_part(builder);
  part.start += checked_product(first, part.stride);
}

// The distribution MPI_DISTRIBUTE_CYCLIC: blocks of `block` elements go to the processes in turn.
// `size`: elements of the dimension.
void take_cyclic(Part& part, MPI_Count size, MPI_Count block, int processes, int process) {
  const MPI_Count first = checked_product(block, process),
                  round = checked_product(block, processes);
  const MPI_Count left = size - first;  // from this process's first element to the end
  // Whole blocks of this process, and the elements in its last block, if the array's end cuts it.
  const MPI_Count whole = left < block ? 0 : (left - block) / round + 1;
  const MPI_Count rest = std::clamp<MPI_Count>(left - checked_product(whole, round), 0, block);

  DatatypeBuilder one_block, all;
  one_block.add(*part.type, 0, block, part.stride);
  all.add(*finish_part(one_block), 0, whole, checked_product(round, part.stride));
  if (rest > 0)
    all.add(*part.type, checked_product(checked_product(whole, round), part.stride), rest,
            part.stride);
  part.type = finish_part(all);
  // A process without any elements starts nowhere.
  if (left > 0) part.start += checked_product(first, part.stride);
}

// The elements of one dimension that `process`, its coordinate in that dimension, gets.
void take_share(Part& part, const Distribution& d, std::size_t dim, int process) {
  const MPI_Count size = d.sizes[dim], processes = d.processes[dim];
  const bool by_default = d.arguments[dim] == MPI_DISTRIBUTE_DFLT_DARG;
  if (d.kinds[dim] == MPI_DISTRIBUTE_NONE) return take_range(part, 0, size);
  if (d.kinds[dim] == MPI_DISTRIBUTE_CYCLIC)
    return take_cyclic(part, size, by_default ? 1 : d.arguments[dim], d.processes[dim], process);
  // MPI_DISTRIBUTE_BLOCK: each process gets one block, and the last ones may get less, or nothing.
  const MPI_Count block =
      by_default ? size / processes + (size % processes != 0) : d.arguments[dim];
  const MPI_Count first = std::min(size, checked_product(block, process));
  take_range(part, first, std::min(block, size - first));
}

// The part in its place, with the extent of the whole array: `bytes`.
Ref<Datatype> place_in_array(const Part& part, MPI_Count bytes, Datatype::Shape shape) {
  DatatypeBuilder builder;
  builder.add(*part.type, part.start);
  builder.set_bounds(0, bytes);
  return builder.finish(std::move(shape));
}

Shaper shaper(int combiner, CountList counts, std::initializer_list<int> integers) {
  return {combiner, counts.large() ? CountKind::large : CountKind::ints, integers};
}

}  // namespace

Ref<Datatype> make_subarray(CountList sizes, CountList subsizes, CountList starts, int order,
                            Datatype& old) {
  Part part{Ref(&old), old.extent(), 0};
  for (std::size_t step = 0; step < sizes.size(); ++step) {
    const std::size_t dim = dimension(step, sizes.size(), order);
    take_range(part, starts[dim], subsizes[dim]);
    part.stride = checked_product(part.stride, sizes[dim]);
  }
  return place_in_array(part, part.stride,
                        shaper(MPI_COMBINER_SUBARRAY, sizes, {static_cast<int>(sizes.size())})
                            .counts(sizes)
                            .counts(subsizes)
                            .counts(starts)
                            .integer(order)
                            .of(old));
}

Ref<Datatype> make_darray(int size, int rank, const Distribution& d, int order, Datatype& old) {
  // Ranks in the grid of processes are in C's order, whatever the array's (section 5.1.4).
  std::vector<int> process(d.sizes.size());
  int rest = rank;
  for (std::size_t dim = d.sizes.size(); dim-- > 0; rest /= d.processes[dim])
    process[dim] = rest % d.processes[dim];

  Part part{Ref(&old), old.extent(), 0};
  for (std::size_t step = 0; step < d.sizes.size(); ++step) {
    const std::size_t dim = dimension(step, d.sizes.size(), order);
    take_share(part, d, dim, process[dim]);
    part.stride = checked_product(part.stride, d.sizes[dim]);
  }
  return place_in_array(
      part, part.stride,
      shaper(MPI_COMBINER_DARRAY, d.sizes, {size, rank, static_cast<int>(d.sizes.size())})
          .counts(d.sizes)
          .integers(d.kinds)
          .integers(d.arguments)
          .integers(d.processes)
          .integer(order)
          .of(old));
}

}  // namespace viaduct::mpi
