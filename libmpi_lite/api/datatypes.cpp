// What a datatype is (MPI 5.0, section 5.1): sizes and bounds (5.1.5 to 5.1.8), commit and free
// (5.1.9), how it was made (5.1.13), names (7.8), and the functions on them that MPI-3 removed.
// Constructors are in type_constructors.cpp.
//
// Choices: sizes and bounds that an int cannot hold are MPI_UNDEFINED in the functions with int
// results. A freed datatype lives on in types made of it and in operations under way, which hold
// references.

#include <algorithm>

#include "libmpi_lite/api/arguments/arguments.hpp"
#include "libmpi_lite/api/counted.hpp"
#include "libmpi_lite/api/give_count.hpp"
#include "libmpi_lite/core/data/datatype_builder.hpp"
#include "libmpi_lite/core/keyval.hpp"

using namespace viaduct::mpi;

namespace {

// MPI_Aint and MPI_Count are the same type (core/data/counts.hpp).
int get_extent(const char* function, MPI_Datatype datatype, MPI_Aint* lb, MPI_Aint* extent) {
  return call(function, [&] {
    const Datatype& t = check_type(datatype);
    give_count(lb, "lb", t.lb());
    give_count(extent, "extent", t.extent());
  });
}
int get_true_extent(const char* function, MPI_Datatype datatype, MPI_Aint* lb, MPI_Aint* extent) {
  return call(function, [&] {
    const Datatype& t = check_type(datatype);
    give_count(lb, "true_lb", t.true_lb());
    give_count(extent, "true_extent", t.true_ub() - t.true_lb());
  });
}

// A component for MPI_Type_get_contents. The program has to free derived types that it gets there,
// so each is a new handle of an equal type; predefined types are given as they are (section
// 5.1.13).
MPI_Datatype component_handle(const Datatype& component) {
  if (component.predefined()) return component.constant();
  return new_handle<MPI_Datatype>(datatype_handles, make_equal(component));
}

// An array of the program's, with the number of elements that it has room for.
template <class T>
struct Room {
  MPI_Count size;
  T* array;
};
template <class T>
void check_room(std::size_t needed, const Room<T>& room, const char* what) {
  if (room.size < 0 || static_cast<std::size_t>(room.size) < needed)
    fail(MPI_ERR_ARG, "argument max_%s is %lld; the datatype was made with %zu", what,
         static_cast<long long>(room.size), needed);
  if (needed > 0 && !room.array) fail(MPI_ERR_ARG, "argument array_of_%s is a null pointer", what);
}

// How a type was made that ints can describe (section 5.1.13).
const Datatype::Shape& check_shape_of_ints(MPI_Datatype datatype) {
  const Datatype::Shape& shape = check_type(datatype).shape();
  if (!shape.large_counts.empty())
    fail(MPI_ERR_TYPE,
         "argument datatype was made with large counts; use MPI_Type_get_envelope_c and "
         "MPI_Type_get_contents_c");
  return shape;
}

template <class T, class Integer>
void give_size(const std::vector<T>& list, Integer* size, const char* argument) {
  give_count(size, argument, static_cast<MPI_Count>(list.size()));
}

// All is checked before anything is written: handles that are made would be lost if a later list
// failed.
void get_contents(MPI_Datatype datatype, Room<int> integers, Room<MPI_Aint> addresses,
                  Room<MPI_Count> large_counts, Room<MPI_Datatype> types) {
  const Datatype& t = check_type(datatype);
  const Datatype::Shape& shape = t.shape();
  if (shape.combiner == MPI_COMBINER_NAMED)
    fail(MPI_ERR_TYPE, "argument datatype is %s; predefined datatypes have no contents",
         t.name.c_str());
  check_room(shape.types.size(), types, "datatypes");
  check_room(shape.integers.size(), integers, "integers");
  check_room(shape.addresses.size(), addresses, "addresses");
  check_room(shape.large_counts.size(), large_counts, "large_counts");
  std::ranges::copy(shape.integers, integers.array);
  std::ranges::copy(shape.addresses, addresses.array);
  std::ranges::copy(shape.large_counts, large_counts.array);
  for (const Ref<Datatype>& type : shape.types) *types.array++ = component_handle(*type);
}

void remove_type(MPI_Datatype type) {
  datatype_handles.remove(reinterpret_cast<std::uintptr_t>(type));
}

}  // namespace

// ---- sizes and bounds --------------------------------------------------------------------------

VIADUCT_MPI_COUNTED(Type_size, (MPI_Datatype datatype, Count* size),
                    call(function, [&] { give_count(size, "size", check_type(datatype).size()); }));
VIADUCT_MPI_COUNTED(Type_get_extent, (MPI_Datatype datatype, MPI_Aint* lb, MPI_Aint* extent),
                    get_extent(function, datatype, lb, extent));
VIADUCT_MPI_COUNTED(Type_get_true_extent,
                    (MPI_Datatype datatype, MPI_Aint* true_lb, MPI_Aint* true_extent),
                    get_true_extent(function, datatype, true_lb, true_extent));

// The names that MPI-3 had for them.
int PMPI_Type_size_x(MPI_Datatype datatype, MPI_Count* size) {
  return call("MPI_Type_size_x", [&] { give_count(size, "size", check_type(datatype).size()); });
}
VIADUCT_MPI(Type_size_x);

int PMPI_Type_get_extent_x(MPI_Datatype datatype, MPI_Count* lb, MPI_Count* extent) {
  return get_extent("MPI_Type_get_extent_x", datatype, lb, extent);
}
VIADUCT_MPI(Type_get_extent_x);

int PMPI_Type_get_true_extent_x(MPI_Datatype datatype, MPI_Count* true_lb, MPI_Count* true_extent) {
  return get_true_extent("MPI_Type_get_true_extent_x", datatype, true_lb, true_extent);
}
VIADUCT_MPI(Type_get_true_extent_x);

int PMPI_Type_extent(MPI_Datatype datatype, MPI_Aint* extent) {
  return call("MPI_Type_extent",
              [&] { *check_pointer(extent, "extent") = check_type(datatype).extent(); });
}
VIADUCT_MPI(Type_extent);

int PMPI_Type_lb(MPI_Datatype datatype, MPI_Aint* displacement) {
  return call("MPI_Type_lb",
              [&] { *check_pointer(displacement, "displacement") = check_type(datatype).lb(); });
}
VIADUCT_MPI(Type_lb);

int PMPI_Type_ub(MPI_Datatype datatype, MPI_Aint* displacement) {
  return call("MPI_Type_ub",
              [&] { *check_pointer(displacement, "displacement") = check_type(datatype).ub(); });
}
VIADUCT_MPI(Type_ub);

// ---- life --------------------------------------------------------------------------------------

// Committing twice is allowed and does nothing.
int PMPI_Type_commit(MPI_Datatype* datatype) {
  return call("MPI_Type_commit",
              [&] { check_type(*check_pointer(datatype, "datatype")).commit(); });
}
VIADUCT_MPI(Type_commit);

// The delete callbacks of attributes run first, while the handle is still valid; if one fails, so
// does the call.
int PMPI_Type_free(MPI_Datatype* datatype) {
  return call("MPI_Type_free", [&] {
    const Datatype& t = check_type(*check_pointer(datatype, "datatype"));
    if (t.predefined())
      fail(MPI_ERR_TYPE, "argument datatype is %s; predefined datatypes cannot be freed",
           t.name.empty() ? "of MPI_Type_create_f90_*" : t.name.c_str());
    delete_type_attributes(*datatype);
    remove_type(*datatype);
    *datatype = MPI_DATATYPE_NULL;
  });
}
VIADUCT_MPI(Type_free);

// The handle exists before attributes are copied, because the copy callbacks take it. If one fails,
// the new type is gone again.
int PMPI_Type_dup(MPI_Datatype oldtype, MPI_Datatype* newtype) {
  return call("MPI_Type_dup", [&] {
    check_pointer(newtype, "newtype");
    const auto made =
        new_handle<MPI_Datatype>(datatype_handles, make_dup(check_type(oldtype, "oldtype")));
    try {
      copy_type_attributes(oldtype, made);
    } catch (...) {
      remove_type(made);
      *newtype = MPI_DATATYPE_NULL;
      throw;
    }
    *newtype = made;
  });
}
VIADUCT_MPI(Type_dup);

// ---- names -------------------------------------------------------------------------------------

int PMPI_Type_set_name(MPI_Datatype datatype, const char* type_name) {
  return call("MPI_Type_set_name", [&] {
    Datatype& t = check_type(datatype);
    t.name = checked_name(type_name, "type_name");
  });
}
VIADUCT_MPI(Type_set_name);

int PMPI_Type_get_name(MPI_Datatype datatype, char* type_name, int* resultlen) {
  return call("MPI_Type_get_name", [&] {
    // The null handle has a name as well.
    copy_string(datatype == MPI_DATATYPE_NULL ? "MPI_DATATYPE_NULL" : check_type(datatype).name,
                type_name, resultlen);
  });
}
VIADUCT_MPI(Type_get_name);

// ---- how it was made (section 5.1.13) ----------------------------------------------------------

// How many arguments of each sort the constructor had; MPI_Type_get_contents gives the arguments. A
// type that was made with large counts has some that only the functions with large counts tell.
int PMPI_Type_get_envelope(MPI_Datatype datatype, int* num_integers, int* num_addresses,
                           int* num_datatypes, int* combiner) {
  return call("MPI_Type_get_envelope", [&] {
    const Datatype::Shape& shape = check_shape_of_ints(datatype);
    give_size(shape.integers, num_integers, "num_integers");
    give_size(shape.addresses, num_addresses, "num_addresses");
    give_size(shape.types, num_datatypes, "num_datatypes");
    *check_pointer(combiner, "combiner") = shape.combiner;
  });
}
VIADUCT_MPI(Type_get_envelope);

int PMPI_Type_get_envelope_c(MPI_Datatype datatype, MPI_Count* num_integers,
                             MPI_Count* num_addresses, MPI_Count* num_large_counts,
                             MPI_Count* num_datatypes, int* combiner) {
  return call("MPI_Type_get_envelope_c", [&] {
    const Datatype::Shape& shape = check_type(datatype).shape();
    give_size(shape.integers, num_integers, "num_integers");
    give_size(shape.addresses, num_addresses, "num_addresses");
    give_size(shape.large_counts, num_large_counts, "num_large_counts");
    give_size(shape.types, num_datatypes, "num_datatypes");
    *check_pointer(combiner, "combiner") = shape.combiner;
  });
}
VIADUCT_MPI(Type_get_envelope_c);

int PMPI_Type_get_contents(MPI_Datatype datatype, int max_integers, int max_addresses,
                           int max_datatypes, int array_of_integers[],
                           MPI_Aint array_of_addresses[], MPI_Datatype array_of_datatypes[]) {
  return call("MPI_Type_get_contents", [&] {
    check_shape_of_ints(datatype);
    get_contents(datatype, {max_integers, array_of_integers}, {max_addresses, array_of_addresses},
                 {0, nullptr}, {max_datatypes, array_of_datatypes});
  });
}
VIADUCT_MPI(Type_get_contents);

int PMPI_Type_get_contents_c(MPI_Datatype datatype, MPI_Count max_integers, MPI_Count max_addresses,
                             MPI_Count max_large_counts, MPI_Count max_datatypes,
                             int array_of_integers[], MPI_Aint array_of_addresses[],
                             MPI_Count array_of_large_counts[], MPI_Datatype array_of_datatypes[]) {
  return call("MPI_Type_get_contents_c", [&] {
    get_contents(datatype, {max_integers, array_of_integers}, {max_addresses, array_of_addresses},
                 {max_large_counts, array_of_large_counts}, {max_datatypes, array_of_datatypes});
  });
}
VIADUCT_MPI(Type_get_contents_c);

// ---- types by size (section 19.1.5) ------------------------------------------------------------

// The types are Fortran's; C programs may ask for them, too.
int PMPI_Type_match_size(int typeclass, int size, MPI_Datatype* datatype) {
  struct Match {
    int typeclass, size;
    MPI_Datatype type;
  };
  static const Match kMatches[] = {
      {MPI_TYPECLASS_INTEGER, 1, MPI_INTEGER1},   {MPI_TYPECLASS_INTEGER, 2, MPI_INTEGER2},
      {MPI_TYPECLASS_INTEGER, 4, MPI_INTEGER4},   {MPI_TYPECLASS_INTEGER, 8, MPI_INTEGER8},
      {MPI_TYPECLASS_INTEGER, 16, MPI_INTEGER16}, {MPI_TYPECLASS_REAL, 4, MPI_REAL4},
      {MPI_TYPECLASS_REAL, 8, MPI_REAL8},         {MPI_TYPECLASS_REAL, 16, MPI_REAL16},
      {MPI_TYPECLASS_COMPLEX, 8, MPI_COMPLEX8},   {MPI_TYPECLASS_COMPLEX, 16, MPI_COMPLEX16},
      {MPI_TYPECLASS_COMPLEX, 32, MPI_COMPLEX32}};
  return call("MPI_Type_match_size", [&] {
    check_pointer(datatype, "datatype");
    for (const Match& m : kMatches)
      if (m.typeclass == typeclass && m.size == size) return void(*datatype = m.type);
    fail(MPI_ERR_ARG, "there is no type of class %d (argument typeclass) with %d bytes (size)",
         typeclass, size);
  });
}
VIADUCT_MPI(Type_match_size);

// MPI_DATATYPE_NULL where there is no such pair (section 6.9.4).
int PMPI_Type_get_value_index(MPI_Datatype value_type, MPI_Datatype index_type,
                              MPI_Datatype* pair_type) {
  return call("MPI_Type_get_value_index", [&] {
    check_type(value_type, "value_type");
    check_type(index_type, "index_type");
    *check_pointer(pair_type, "pair_type") = viaduct::mpi::pair_type(value_type, index_type);
  });
}
VIADUCT_MPI(Type_get_value_index);
