// The datatype constructors (MPI 5.0, sections 5.1.2 to 5.1.4 and 5.1.6). Arguments have been
// checked, except that they may describe positions or sizes beyond what can be handled
// (MPI_ERR_VALUE_TOO_LARGE). The types they give are not committed.
#pragma once

#include <span>

#include "libmpi_lite/core/datatype.hpp"

namespace viaduct::mpi {

using Ints = std::span<const int>;
using Addresses = std::span<const MPI_Aint>;

Ref<Datatype> make_contiguous(int count, Datatype& old);
Ref<Datatype> make_vector(int count, int block_length, int stride, Datatype& old);
Ref<Datatype> make_hvector(int count, int block_length, MPI_Aint stride, Datatype& old);
Ref<Datatype> make_indexed(Ints block_lengths, Ints displacements, Datatype& old);
Ref<Datatype> make_hindexed(Ints block_lengths, Addresses displacements, Datatype& old);
Ref<Datatype> make_indexed_block(int block_length, Ints displacements, Datatype& old);
Ref<Datatype> make_hindexed_block(int block_length, Addresses displacements, Datatype& old);
Ref<Datatype> make_struct(Ints block_lengths, Addresses displacements,
                          std::span<Datatype* const> types);
Ref<Datatype> make_resized(Datatype& old, MPI_Aint lb, MPI_Aint extent);
// As committed as the old one; without its attributes.
Ref<Datatype> make_dup(Datatype& old);
// The same type once more: what MPI_Type_get_contents gives. Without name and attributes.
Ref<Datatype> make_equal(const Datatype& old);

// In core/array_types.cpp.
Ref<Datatype> make_subarray(Ints sizes, Ints subsizes, Ints starts, int order, Datatype& old);
struct Distribution {  // of an array over a grid of processes, for each dimension
  Ints sizes, kinds, arguments, processes;
};
Ref<Datatype> make_darray(int size, int rank, const Distribution& distribution, int order,
                          Datatype& old);

// Puts a datatype together from copies of others.
class DatatypeBuilder {
 public:
  DatatypeBuilder();

  // `count` copies, the first at `displacement`, each `stride` bytes further.
  void add(const Datatype& type, MPI_Count displacement, MPI_Count count, MPI_Count stride);
  void add(const Datatype& type, MPI_Count displacement, MPI_Count count = 1) {
    add(type, displacement, count, type.extent());
  }
  // Sets both bounds, whatever the components say.
  void set_bounds(MPI_Count lb, MPI_Count ub);
  Ref<Datatype> finish(Datatype::Shape shape);

  // Predefined types.
  static Ref<Datatype> basic(const Basic& basic, MPI_Datatype constant, const char* name);
  static Ref<Datatype> marker(MPI_Datatype constant, const char* name);
  Ref<Datatype> finish_pair(MPI_Datatype constant, const char* name);

  // The same type once more, made in another way.
  static Ref<Datatype> equal(const Datatype& old,
                             std::shared_ptr<const Datatype::Shape> shape = nullptr);

 private:
  void add_bytes(const Datatype& type, MPI_Count displacement, MPI_Count count, MPI_Count stride);
  void settle_bounds();
  static void name(Datatype& type, Elementary kind, MPI_Datatype constant, const char* name);

  Ref<Datatype> type_;
};

}  // namespace viaduct::mpi
