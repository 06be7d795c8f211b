// The datatype constructors (MPI 5.0, sections 5.1.2 to 5.1.4 and 5.1.7). Arguments are checked
// here; the types are made in core/data/datatype_builder.cpp and core/data/array_types.cpp. The
// functions that MPI-3 removed (MPI_Type_hvector, MPI_Type_hindexed, MPI_Type_struct) are there and
// the same.
//
// Choice: a count of 0 is valid everywhere but in the dimensions of arrays, and makes an empty
// type.
#include <climits>
#include <vector>

#include "libmpi_lite/api/counted.hpp"
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

// An array argument: as a span over the program's memory, or as a list of either kind of counts.
template <class T>
std::span<const T> list(const T* array, MPI_Count count, const char* argument) {
  check_count(count);
  if (count > 0) check_pointer(array, argument);
  return {array, static_cast<std::size_t>(count)};
}
template <class Count>
CountList count_list(const Count* array, MPI_Count count, const char* argument) {
  return {array, list(array, count, argument).size()};
}

void check_block_length(MPI_Count length) {
  if (length < 0)
    fail(MPI_ERR_ARG, "argument blocklength is %lld; it must not be negative",
         static_cast<long long>(length));
}
template <class Count>
CountList block_lengths(const Count* array, MPI_Count count) {
  const CountList lengths = count_list(array, count, "array_of_blocklengths");
  for (std::size_t i = 0; i < lengths.size(); ++i)
    if (lengths[i] < 0)
      fail(MPI_ERR_ARG, "argument array_of_blocklengths[%zu] is %lld; it must not be negative", i,
           static_cast<long long>(lengths[i]));
  return lengths;
}
Addresses addresses(const MPI_Aint* array, MPI_Count count) {
  return list(array, count, "array_of_displacements");
}

// These three serve the functions of MPI-1, too, which have the same meaning.
int create_hvector(const char* function, MPI_Count count, MPI_Count block_length, MPI_Aint stride,
                   MPI_Datatype oldtype, MPI_Datatype* newtype, CountKind kind) {
  return construct(function, newtype, [&] {
    check_count(count);
    check_block_length(block_length);
    return make_hvector(count, block_length, stride, old_type(oldtype), kind);
  });
}
template <class Count>
int create_hindexed(const char* function, Count count, const Count* lengths, const MPI_Aint* places,
                    MPI_Datatype oldtype, MPI_Datatype* newtype) {
  return construct(function, newtype, [&] {
    return make_hindexed(block_lengths(lengths, count), addresses(places, count),
                         old_type(oldtype));
  });
}
template <class Count>
int create_struct(const char* function, Count count, const Count* lengths, const MPI_Aint* places,
                  const MPI_Datatype* types, MPI_Datatype* newtype) {
  return construct(function, newtype, [&] {
    const CountList blocks = block_lengths(lengths, count);
    std::vector<Datatype*> components;
    for (const MPI_Datatype type : list(types, count, "array_of_types"))
      components.push_back(&check_type(type, "array_of_types[]"));
    return make_struct(blocks, addresses(places, count), components);
  });
}

// ---- arrays ------------------------------------------------------------------------------------

// Checks one element of an array argument; `low` and `high` are both allowed.
void check_in(MPI_Count value, MPI_Count low, MPI_Count high, const char* argument,
              std::size_t dimension) {
  if (value < low || value > high)
    fail(MPI_ERR_ARG, "argument %s[%zu] is %lld; it must be in %lld to %lld", argument, dimension,
         static_cast<long long>(value), static_cast<long long>(low), static_cast<long long>(high));
}
// The largest element that a list can have.
MPI_Count largest(CountList list) {
  return list.large() ? INT64_MAX : INT_MAX;
}
void check_dimensions(int dimensions, int order) {
  if (dimensions < 1) fail(MPI_ERR_ARG, "argument ndims is %d; it must be positive", dimensions);
  if (order != MPI_ORDER_C && order != MPI_ORDER_FORTRAN)
    fail(MPI_ERR_ARG, "argument order is %d; it must be MPI_ORDER_C or MPI_ORDER_FORTRAN", order);
}

// One dimension of MPI_Type_create_darray: blocks of the given size must hold the whole dimension
// (section 5.1.4).
void check_share(const Distribution& d, std::size_t dim) {
  check_in(d.sizes[dim], 1, largest(d.sizes), "array_of_gsizes", dim);
  check_in(d.processes[dim], 1, INT_MAX, "array_of_psizes", dim);
  check_in(d.kinds[dim], MPI_DISTRIBUTE_NONE, MPI_DISTRIBUTE_CYCLIC, "array_of_distribs", dim);
  const int argument = d.arguments[dim];
  if (d.kinds[dim] == MPI_DISTRIBUTE_NONE) {
    check_in(d.processes[dim], 1, 1, "array_of_psizes", dim);
  } else if (argument != MPI_DISTRIBUTE_DFLT_DARG) {
    check_in(argument, 1, INT_MAX, "array_of_dargs", dim);
    if (d.kinds[dim] == MPI_DISTRIBUTE_BLOCK &&
        MPI_Count{argument} * d.processes[dim] < d.sizes[dim])
      fail(MPI_ERR_ARG, "argument array_of_dargs[%zu] is %d: %d such blocks do not hold %lld", dim,
           argument, d.processes[dim], static_cast<long long>(d.sizes[dim]));
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

VIADUCT_MPI_COUNTED(Type_contiguous, (Count count, MPI_Datatype oldtype, MPI_Datatype* newtype),
                    construct(function, newtype, [&] {
                      check_count(count);
                      return make_contiguous(count, old_type(oldtype), kCounts);
                    }));

VIADUCT_MPI_COUNTED(Type_vector,
                    (Count count, Count blocklength, Count stride, MPI_Datatype oldtype,
                     MPI_Datatype* newtype),
                    construct(function, newtype, [&] {
                      check_count(count);
                      check_block_length(blocklength);
                      return make_vector(count, blocklength, stride, old_type(oldtype), kCounts);
                    }));

VIADUCT_MPI_COUNTED(Type_create_hvector,
                    (Count count, Count blocklength, MPI_Aint stride, MPI_Datatype oldtype,
                     MPI_Datatype* newtype),
                    create_hvector(function, count, blocklength, stride, oldtype, newtype,
                                   kCounts));

int PMPI_Type_hvector(int count, int blocklength, MPI_Aint stride, MPI_Datatype oldtype,
                      MPI_Datatype* newtype) {
  return create_hvector("MPI_Type_hvector", count, blocklength, stride, oldtype, newtype,
                        CountKind::ints);
}
VIADUCT_MPI(Type_hvector);

VIADUCT_MPI_COUNTED(Type_indexed,
                    (Count count, const Count array_of_blocklengths[],
                     const Count array_of_displacements[], MPI_Datatype oldtype,
                     MPI_Datatype* newtype),
                    construct(function, newtype, [&] {
                      return make_indexed(
                          block_lengths(array_of_blocklengths, count),
                          count_list(array_of_displacements, count, "array_of_displacements"),
                          old_type(oldtype));
                    }));

VIADUCT_MPI_COUNTED(Type_create_hindexed,
                    (Count count, const Count array_of_blocklengths[],
                     const MPI_Aint array_of_displacements[], MPI_Datatype oldtype,
                     MPI_Datatype* newtype),
                    create_hindexed(function, count, array_of_blocklengths, array_of_displacements,
                                    oldtype, newtype));

int PMPI_Type_hindexed(int count, int blocklengths[], MPI_Aint displacements[],
                       MPI_Datatype oldtype, MPI_Datatype* newtype) {
  return create_hindexed("MPI_Type_hindexed", count, blocklengths, displacements, oldtype, newtype);
}
VIADUCT_MPI(Type_hindexed);

VIADUCT_MPI_COUNTED(Type_create_indexed_block,
                    (Count count, Count blocklength, const Count array_of_displacements[],
                     MPI_Datatype oldtype, MPI_Datatype* newtype),
                    construct(function, newtype, [&] {
                      check_block_length(blocklength);
                      return make_indexed_block(
                          blocklength,
                          count_list(array_of_displacements, count, "array_of_displacements"),
                          old_type(oldtype));
                    }));

VIADUCT_MPI_COUNTED(Type_create_hindexed_block,
                    (Count count, Count blocklength, const MPI_Aint array_of_displacements[],
                     MPI_Datatype oldtype, MPI_Datatype* newtype),
                    construct(function, newtype, [&] {
                      check_block_length(blocklength);
                      return make_hindexed_block(blocklength,
                                                 addresses(array_of_displacements, count),
                                                 old_type(oldtype), kCounts);
                    }));

VIADUCT_MPI_COUNTED(Type_create_struct,
                    (Count count, const Count array_of_blocklengths[],
                     const MPI_Aint array_of_displacements[], const MPI_Datatype array_of_types[],
                     MPI_Datatype* newtype),
                    create_struct(function, count, array_of_blocklengths, array_of_displacements,
                                  array_of_types, newtype));

int PMPI_Type_struct(int count, int blocklengths[], MPI_Aint displacements[], MPI_Datatype types[],
                     MPI_Datatype* newtype) {
  return create_struct("MPI_Type_struct", count, blocklengths, displacements, types, newtype);
}
VIADUCT_MPI(Type_struct);

VIADUCT_MPI_COUNTED(Type_create_resized,
                    (MPI_Datatype oldtype, MPI_Aint lb, MPI_Aint extent, MPI_Datatype* newtype),
                    construct(function, newtype, [&] {
                      return make_resized(old_type(oldtype), lb, extent, kCounts);
                    }));

VIADUCT_MPI_COUNTED(
    Type_create_subarray,
    (int ndims, const Count array_of_sizes[], const Count array_of_subsizes[],
     const Count array_of_starts[], int order, MPI_Datatype oldtype, MPI_Datatype* newtype),
    construct(function, newtype, [&] {
      check_dimensions(ndims, order);
      const CountList sizes = count_list(array_of_sizes, ndims, "array_of_sizes");
      const CountList subsizes = count_list(array_of_subsizes, ndims, "array_of_subsizes");
      const CountList starts = count_list(array_of_starts, ndims, "array_of_starts");
      for (std::size_t dim = 0; dim < sizes.size(); ++dim) {
        check_in(sizes[dim], 1, largest(sizes), "array_of_sizes", dim);
        check_in(subsizes[dim], 1, sizes[dim], "array_of_subsizes", dim);
        check_in(starts[dim], 0, sizes[dim] - subsizes[dim], "array_of_starts", dim);
      }
      return make_subarray(sizes, subsizes, starts, order, old_type(oldtype));
    }));

VIADUCT_MPI_COUNTED(Type_create_darray,
                    (int size, int rank, int ndims, const Count array_of_gsizes[],
                     const int array_of_distribs[], const int array_of_dargs[],
                     const int array_of_psizes[], int order, MPI_Datatype oldtype,
                     MPI_Datatype* newtype),
                    construct(function, newtype, [&] {
                      check_dimensions(ndims, order);
                      const Distribution distribution{
                          count_list(array_of_gsizes, ndims, "array_of_gsizes"),
                          list(array_of_distribs, ndims, "array_of_distribs"),
                          list(array_of_dargs, ndims, "array_of_dargs"),
                          list(array_of_psizes, ndims, "array_of_psizes")};
                      check_grid(distribution, size, rank);
                      return make_darray(size, rank, distribution, order, old_type(oldtype));
                    }));
