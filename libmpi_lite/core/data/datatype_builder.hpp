// The datatype constructors (MPI 5.0, sections 5.1.2 to 5.1.4 and 5.1.6), and DatatypeBuilder,
// which they are made with.
//
// api/ has checked the arguments. But these may describe positions or sizes beyond what 64-bit
// arithmetic can handle: then the functions throw Error with MPI_ERR_VALUE_TOO_LARGE. The types
// they return are not committed. The caller owns what is returned; component types are held by the
// new type.
#pragma once

#include <initializer_list>
#include <span>

#include "libmpi_lite/core/data/counts.hpp"
#include "libmpi_lite/core/data/datatype.hpp"

namespace viaduct::mpi {

using Ints = std::span<const int>;
using Addresses = std::span<const MPI_Aint>;  // displacements in bytes

// The last argument says with which counts the program has made the type, where no list says it.
Ref<Datatype> make_contiguous(MPI_Count count, Datatype& old, CountKind = CountKind::ints);
Ref<Datatype> make_vector(MPI_Count count, MPI_Count block_length, MPI_Count stride, Datatype& old,
                          CountKind = CountKind::ints);
// Stride and displacements are in bytes in hvector, hindexed, hindexed_block and struct, and in
// extents of `old` in vector, indexed and indexed_block.
Ref<Datatype> make_hvector(MPI_Count count, MPI_Count block_length, MPI_Aint stride, Datatype& old,
                           CountKind = CountKind::ints);
Ref<Datatype> make_indexed(CountList block_lengths, CountList displacements, Datatype& old);
Ref<Datatype> make_hindexed(CountList block_lengths, Addresses displacements, Datatype& old);
Ref<Datatype> make_indexed_block(MPI_Count block_length, CountList displacements, Datatype& old);
Ref<Datatype> make_hindexed_block(MPI_Count block_length, Addresses displacements, Datatype& old,
                                  CountKind = CountKind::ints);
Ref<Datatype> make_struct(CountList block_lengths, Addresses displacements,
                          std::span<Datatype* const> types);
Ref<Datatype> make_resized(Datatype& old, MPI_Aint lb, MPI_Aint extent,
                           CountKind = CountKind::ints);
// MPI_Type_dup, but for the attributes: as committed as the old type.
Ref<Datatype> make_dup(Datatype& old);
// The same type once more, made in the same way: for the handles that MPI_Type_get_contents gives.
// Without name and attributes.
Ref<Datatype> make_equal(const Datatype& old);

// In array_types.cpp. `order`: MPI_ORDER_C or MPI_ORDER_FORTRAN.
Ref<Datatype> make_subarray(CountList sizes, CountList subsizes, CountList starts, int order,
                            Datatype& old);
struct Distribution {  // of an array over a grid of processes, for each dimension
  CountList sizes;
  Ints kinds, arguments, processes;
};
Ref<Datatype> make_darray(int size, int rank, const Distribution& distribution, int order,
                          Datatype& old);

// What a program has passed to a constructor, as MPI_Type_get_contents returns it (MPI 5.0, section
// 5.1.13): `integers` are ints with either kind of counts; then come counts and lists of counts,
// and addresses, which are among the large counts if there are any; and at the end another integer.
class Shaper {
 public:
  Shaper(int combiner, CountKind kind, std::initializer_list<int> integers = {});
  Shaper& count(MPI_Count value);
  Shaper& integer(int value);
  Shaper& counts(CountList list);
  Shaper& integers(Ints list);
  Shaper& address(MPI_Aint value);
  Shaper& addresses(Addresses list);
  Datatype::Shape of(std::vector<Ref<Datatype>> types);
  Datatype::Shape of(Datatype& type) { return of({Ref(&type)}); }

 private:
  Datatype::Shape shape_;
  bool large_;
};

// Puts one datatype together from copies of others. add() in the order of the type map, then
// finish(), which may be called once. All functions may throw Error (MPI_ERR_VALUE_TOO_LARGE).
class DatatypeBuilder {
 public:
  DatatypeBuilder();

  // Adds `count` copies of `type`, the first at `displacement`, each `stride` bytes behind the one
  // before.
  void add(const Datatype& type, MPI_Count displacement, MPI_Count count, MPI_Count stride);
  void add(const Datatype& type, MPI_Count displacement, MPI_Count count = 1) {
    add(type, displacement, count, type.extent());
  }
  // Sets lower and upper bound, whatever the components say.
  void set_bounds(MPI_Count lb, MPI_Count ub);
  // The finished type. `shape`: how it was made.
  Ref<Datatype> finish(Datatype::Shape shape);

  // Predefined types: one basic element; MPI_LB or MPI_UB; and, from a builder with value and index
  // added, a pair for MPI_MINLOC and MPI_MAXLOC. `constant` is the handle in the ABI.
  static Ref<Datatype> basic(const Basic& basic, MPI_Datatype constant, const char* name);
  static Ref<Datatype> marker(MPI_Datatype constant, const char* name);
  Ref<Datatype> finish_pair(MPI_Datatype constant, const char* name);

  // A copy of a type with another shape; nullptr: with the same one. The copy is not predefined,
  // even if `old` is.
  static Ref<Datatype> equal(const Datatype& old,
                             const std::shared_ptr<const Datatype::Shape>& shape = nullptr);
  // Makes an equal() of the predefined type `like` predefined, too, without a name, under a handle
  // of its own.
  static void predefine(Datatype& type, const Datatype& like, MPI_Datatype handle);

 private:
  // The part of add() that is about data, and the part of finish() that is about bounds.
  void add_bytes(const Datatype& type, MPI_Count displacement, MPI_Count count, MPI_Count stride);
  void compute_bounds();
  static void name(Datatype& type, Elementary kind, MPI_Datatype constant, const char* name);

  Ref<Datatype> type_;  // being built; nothing after finish()
};

}  // namespace viaduct::mpi
