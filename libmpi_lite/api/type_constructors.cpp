// The datatype constructors (MPI 5.0, sections 5.1.2 to 5.1.4 and 5.1.7). Arguments are checked
// here; the types are made in core/data/datatype_builder.cpp and core/data/array_types.cpp. The
// functions that MPI-3 removed (MPI_Type_hvector, MPI_Type_hindexed, MPI_Type_struct) are there and
// the same.
//
// Choice: a count of 0 is valid everywhere but in the dimensions of arrays, and makes an empty
// type.
#include <climits>
#include <vector>

#include "libmpi_lite/api/call.hpp"
#include "libmpi_lite/core/data/datatype_builder.hpp"

using namespace viaduct::mpi;

namespace {

// A call that gives a new type: `make()` returns it, and the program owns the handle.
template <class Make>
int construct(const char* function, MPI_Datatype* newtype, Make make) {
  return call(function, [&] {
    check_pointer(newtype, "newtype");
    *newtype = new_handle<MPI_Datatype>(datatype_handles, make());
  });
}

// The type need not be committed.
Datatype& old_type(MPI_Datatype type) {
  return check_type(type, "oldtype");
}

// An array argument as a span over the program's memory.
template <class T>
std::span<const T> list(const T* array, int count, const char* argument) {
  check_count(count);
  if (count > 0) check_pointer(array, argument);
  return {array, static_cast<std::size_t>(count)};
}

void check_block_length(int length) {
  if (length < 0) fail(MPI_ERR_ARG, "argument blocklength is %d; it must not be negative", length);
}
Ints block_lengths(const int* array, int count) {
  const Ints lengths = list(array, count, "array_of_blocklengths");
  for (std::size_t i = 0; i < lengths.size(); ++i)
    if (lengths[i] < 0)
      fail(MPI_ERR_ARG, "argument array_of_blocklengths[%zu] is %d; it must not be negative", i,
           lengths[i]);
  return lengths;
}
template <class T>
std::span<const T> displacements(const T* array, int count) {
  return list(array, count, "array_of_displacements");
}

// These three serve the functions of MPI-1 and those of MPI-2 with the same meaning.
int create_hvector(const char* function, int count, int block_length, MPI_Aint stride,
                   MPI_Datatype oldtype, MPI_Datatype* newtype) {
  return construct(function, newtype, [&] {
    check_count(count);
    check_block_length(block_length);
    return make_hvector(count, block_length, stride, old_type(oldtype));
  });
}
int create_hindexed(const char* function, int count, const int* lengths, const MPI_Aint* places,
                    MPI_Datatype oldtype, MPI_Datatype* newtype) {
  return construct(function, newtype, [&] {
    return make_hindexed(block_lengths(lengths, count), displacements(places, count),
                         old_type(oldtype));
  });
}
int create_struct(const char* function, int count, const int* lengths, const MPI_Aint* places,
                  const MPI_Datatype* types, MPI_Datatype* newtype) {
  return construct(function, newtype, [&] {
    const Ints blocks = block_lengths(lengths, count);
    std::vector<Datatype*> components;
    for (const MPI_Datatype type : list(types, count, "array_of_types"))
      components.push_back(&check_type(type, "array_of_types[]"));
    return make_struct(blocks, displacements(places, count), components);
  });
}

// ---- arrays ------------------------------------------------------------------------------------

// Checks one element of an array argument; `low` and `high` are both allowed.
void check_in(int value, int low, int high, const char* argument, std::size_t dimension) {
  if (value < low || value > high)
    fail(MPI_ERR_ARG, "argument %s[%zu] is %d; it must be in %d to %d", argument, dimension, value,
         low, high);
}
void check_array(int dimensions, int order) {
  if (dimensions < 1) fail(MPI_ERR_ARG, "argument ndims is %d; it must be positive", dimensions);
  if (order != MPI_ORDER_C && order != MPI_ORDER_FORTRAN)
    fail(MPI_ERR_ARG, "argument order is %d; it must be MPI_ORDER_C or MPI_ORDER_FORTRAN", order);
}

// One dimension of MPI_Type_create_darray: blocks of the given size must hold the whole dimension
// (section 5.1.4).
void check_share(const Distribution& d, std::size_t dim) {
  check_in(d.sizes[dim], 1, INT_MAX, "array_of_gsizes", dim);
  check_in(d.processes[dim], 1, INT_MAX, "array_of_psizes", dim);
  check_in(d.kinds[dim], MPI_DISTRIBUTE_NONE, MPI_DISTRIBUTE_CYCLIC, "array_of_distribs", dim);
  const int argument = d.arguments[dim];
  if (d.kinds[dim] == MPI_DISTRIBUTE_NONE) {
    check_in(d.processes[dim], 1, 1, "array_of_psizes", dim);
  } else if (argument != MPI_DISTRIBUTE_DFLT_DARG) {
    check_in(argument, 1, INT_MAX, "array_of_dargs", dim);
    if (d.kinds[dim] == MPI_DISTRIBUTE_BLOCK &&
        MPI_Count{argument} * d.processes[dim] < d.sizes[dim])
      fail(MPI_ERR_ARG, "argument array_of_dargs[%zu] is %d: %d such blocks do not hold %d", dim,
           argument, d.processes[dim], d.sizes[dim]);
  }
}
// The process grid of MPI_Type_create_darray.
void check_grid(const Distribution& d, int size, int rank) {
  MPI_Count processes = 1;
  for (std::size_t dim = 0; dim < d.sizes.size(); ++dim) {
    check_share(d, dim);
    // Stops multiplying above `size`, so the product cannot overflow.
    if (processes <= size) processes *= d.processes[dim];
  }
  if (processes != size)
    fail(MPI_ERR_ARG, "argument size is %d; the grid of array_of_psizes has another size", size);
  if (rank < 0 || rank >= size)
    fail(MPI_ERR_ARG, "argument rank is %d; it must be in 0 to %d", rank, size - 1);
}

}  // namespace

int PMPI_Type_contiguous(int count, MPI_Datatype oldtype, MPI_Datatype* newtype) {
  return construct("MPI_Type_contiguous", newtype, [&] {
    check_count(count);
    return make_contiguous(count, old_type(oldtype));
  });
}
VIADUCT_MPI(Type_contiguous);

int PMPI_Type_vector(int count, int blocklength, int stride, MPI_Datatype oldtype,
                     MPI_Datatype* newtype) {
  return construct("MPI_Type_vector", newtype, [&] {
    check_count(count);
    check_block_length(blocklength);
    return make_vector(count, blocklength, stride, old_type(oldtype));
  });
}
VIADUCT_MPI(Type_vector);

int PMPI_Type_create_hvector(int count, int blocklength, MPI_Aint stride, MPI_Datatype oldtype,
                             MPI_Datatype* newtype) {
  return create_hvector("MPI_Type_create_hvector", count, blocklength, stride, oldtype, newtype);
}
VIADUCT_MPI(Type_create_hvector);

int PMPI_Type_hvector(int count, int blocklength, MPI_Aint stride, MPI_Datatype oldtype,
                      MPI_Datatype* newtype) {
  return create_hvector("MPI_Type_hvector", count, blocklength, stride, oldtype, newtype);
}
VIADUCT_MPI(Type_hvector);

int PMPI_Type_indexed(int count, const int array_of_blocklengths[],
                      const int array_of_displacements[], MPI_Datatype oldtype,
                      MPI_Datatype* newtype) {
  return construct("MPI_Type_indexed", newtype, [&] {
    return make_indexed(block_lengths(array_of_blocklengths, count),
                        displacements(array_of_displacements, count), old_type(oldtype));
  });
}
VIADUCT_MPI(Type_indexed);

int PMPI_Type_create_hindexed(int count, const int array_of_blocklengths[],
                              const MPI_Aint array_of_displacements[], MPI_Datatype oldtype,
                              MPI_Datatype* newtype) {
  return create_hindexed("MPI_Type_create_hindexed", count, array_of_blocklengths,
                         array_of_displacements, oldtype, newtype);
}
VIADUCT_MPI(Type_create_hindexed);

int PMPI_Type_hindexed(int count, int blocklengths[], MPI_Aint displacements[],
                       MPI_Datatype oldtype, MPI_Datatype* newtype) {
  return create_hindexed("MPI_Type_hindexed", count, blocklengths, displacements, oldtype, newtype);
}
VIADUCT_MPI(Type_hindexed);

int PMPI_Type_create_indexed_block(int count, int blocklength, const int array_of_displacements[],
                                   MPI_Datatype oldtype, MPI_Datatype* newtype) {
  return construct("MPI_Type_create_indexed_block", newtype, [&] {
    check_block_length(blocklength);
    return make_indexed_block(blocklength, displacements(array_of_displacements, count),
                              old_type(oldtype));
  });
}
VIADUCT_MPI(Type_create_indexed_block);

int PMPI_Type_create_hindexed_block(int count, int blocklength,
                                    const MPI_Aint array_of_displacements[], MPI_Datatype oldtype,
                                    MPI_Datatype* newtype) {
  return construct("MPI_Type_create_hindexed_block", newtype, [&] {
    check_block_length(blocklength);
    return make_hindexed_block(blocklength, displacements(array_of_displacements, count),
                               old_type(oldtype));
  });
}
VIADUCT_MPI(Type_create_hindexed_block);

int PMPI_Type_create_struct(int count, const int array_of_blocklengths[],
                            const MPI_Aint array_of_displacements[],
                            const MPI_Datatype array_of_types[], MPI_Datatype* newtype) {
  return create_struct("MPI_Type_create_struct", count, array_of_blocklengths,
                       array_of_displacements, array_of_types, newtype);
}
VIADUCT_MPI(Type_create_struct);

int PMPI_Type_struct(int count, int blocklengths[], MPI_Aint displacements[], MPI_Datatype types[],
                     MPI_Datatype* newtype) {
  return create_struct("MPI_Type_struct", count, blocklengths, displacements, types, newtype);
}
VIADUCT_MPI(Type_struct);

int PMPI_Type_create_resized(MPI_Datatype oldtype, MPI_Aint lb, MPI_Aint extent,
                             MPI_Datatype* newtype) {
  return construct("MPI_Type_create_resized", newtype,
                   [&] { return make_resized(old_type(oldtype), lb, extent); });
}
VIADUCT_MPI(Type_create_resized);

int PMPI_Type_create_subarray(int ndims, const int array_of_sizes[], const int array_of_subsizes[],
                              const int array_of_starts[], int order, MPI_Datatype oldtype,
                              MPI_Datatype* newtype) {
  return construct("MPI_Type_create_subarray", newtype, [&] {
    check_array(ndims, order);
    const Ints sizes = list(array_of_sizes, ndims, "array_of_sizes");
    const Ints subsizes = list(array_of_subsizes, ndims, "array_of_subsizes");
    const Ints starts = list(array_of_starts, ndims, "array_of_starts");
    for (std::size_t dim = 0; dim < sizes.size(); ++dim) {
      check_in(sizes[dim], 1, INT_MAX, "array_of_sizes", dim);
      check_in(subsizes[dim], 1, sizes[dim], "array_of_subsizes", dim);
      check_in(starts[dim], 0, sizes[dim] - subsizes[dim], "array_of_starts", dim);
    }
    return make_subarray(sizes, subsizes, starts, order, old_type(oldtype));
  });
}
VIADUCT_MPI(Type_create_subarray);

int PMPI_Type_create_darray(int size, int rank, int ndims, const int array_of_gsizes[],
                            const int array_of_distribs[], const int array_of_dargs[],
                            const int array_of_psizes[], int order, MPI_Datatype oldtype,
                            MPI_Datatype* newtype) {
  return construct("MPI_Type_create_darray", newtype, [&] {
    check_array(ndims, order);
    const Distribution distribution{list(array_of_gsizes, ndims, "array_of_gsizes"),
                                    list(array_of_distribs, ndims, "array_of_distribs"),
                                    list(array_of_dargs, ndims, "array_of_dargs"),
                                    list(array_of_psizes, ndims, "array_of_psizes")};
    check_grid(distribution, size, rank);
    return make_darray(size, rank, distribution, order, old_type(oldtype));
  });
}
VIADUCT_MPI(Type_create_darray);
