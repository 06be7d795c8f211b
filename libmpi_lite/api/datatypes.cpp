// What a datatype is (MPI 5.0, section 5.1): sizes and bounds (5.1.5 to 5.1.8), commit and free
// (5.1.9), how it was made (5.1.13), names (7.8), and the functions on them that MPI-3 removed.
// Constructors are in type_constructors.cpp.
//
// Choices: sizes and bounds that an int cannot hold are MPI_UNDEFINED in the functions with int
// results. A freed datatype lives on in types made of it and in operations under way, which hold
// references.

#include "libmpi_lite/api/arguments/arguments.hpp"
#include "libmpi_lite/api/int_result.hpp"
#include "libmpi_lite/core/data/datatype_builder.hpp"
#include "libmpi_lite/core/keyval.hpp"

using namespace viaduct::mpi;

namespace {

// Lower bound and extent from lower and upper bound.
template <class Integer>
void give_extent(Integer* lb, Integer* extent, MPI_Count low, MPI_Count high) {
  *check_pointer(lb, "lb") = low;
  *check_pointer(extent, "extent") = high - low;
}

// A component for MPI_Type_get_contents. The program has to free derived types that it gets there,
// so each is a new handle of an equal type; predefined types are given as they are (section
// 5.1.13).
MPI_Datatype component_handle(const Datatype& component) {
  if (component.predefined()) return component.constant();
  return new_handle<MPI_Datatype>(datatype_handles, make_equal(component));
}

// Copies one of the lists of a type's construction; an error if the program's array has too little
// room.
template <class T>
void give_list(const std::vector<T>& list, int room, T* out, const char* room_argument,
               const char* argument) {
  if (list.empty()) return;
  if (room < 0 || static_cast<std::size_t>(room) < list.size())
    fail(MPI_ERR_ARG, "argument %s is %d; the datatype was made with %zu", room_argument, room,
         list.size());
  std::copy(list.begin(), list.end(), check_pointer(out, argument));
}

void remove_type(MPI_Datatype type) {
  datatype_handles.remove(reinterpret_cast<std::uintptr_t>(type));
}

}  // namespace

// ---- sizes and bounds --------------------------------------------------------------------------

int PMPI_Type_size(MPI_Datatype datatype, int* size) {
  return call("MPI_Type_size",
              [&] { *check_pointer(size, "size") = int_result(check_type(datatype).size()); });
}
VIADUCT_MPI(Type_size);

int PMPI_Type_size_x(MPI_Datatype datatype, MPI_Count* size) {
  return call("MPI_Type_size_x",
              [&] { *check_pointer(size, "size") = check_type(datatype).size(); });
}
VIADUCT_MPI(Type_size_x);

int PMPI_Type_get_extent(MPI_Datatype datatype, MPI_Aint* lb, MPI_Aint* extent) {
  return call("MPI_Type_get_extent", [&] {
    const Datatype& t = check_type(datatype);
    give_extent(lb, extent, t.lb(), t.ub());
  });
}
VIADUCT_MPI(Type_get_extent);

int PMPI_Type_get_extent_x(MPI_Datatype datatype, MPI_Count* lb, MPI_Count* extent) {
  return call("MPI_Type_get_extent_x", [&] {
    const Datatype& t = check_type(datatype);
    give_extent(lb, extent, t.lb(), t.ub());
  });
}
VIADUCT_MPI(Type_get_extent_x);

int PMPI_Type_get_true_extent(MPI_Datatype datatype, MPI_Aint* true_lb, MPI_Aint* true_extent) {
  return call("MPI_Type_get_true_extent", [&] {
    const Datatype& t = check_type(datatype);
    give_extent(true_lb, true_extent, t.true_lb(), t.true_ub());
  });
}
VIADUCT_MPI(Type_get_true_extent);

int PMPI_Type_get_true_extent_x(MPI_Datatype datatype, MPI_Count* true_lb, MPI_Count* true_extent) {
  return call("MPI_Type_get_true_extent_x", [&] {
    const Datatype& t = check_type(datatype);
    give_extent(true_lb, true_extent, t.true_lb(), t.true_ub());
  });
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

// How many arguments of each sort the constructor had; MPI_Type_get_contents gives the arguments.
int PMPI_Type_get_envelope(MPI_Datatype datatype, int* num_integers, int* num_addresses,
                           int* num_datatypes, int* combiner) {
  return call("MPI_Type_get_envelope", [&] {
    const Datatype::Shape& shape = check_type(datatype).shape();
    *check_pointer(num_integers, "num_integers") = static_cast<int>(shape.integers.size());
    *check_pointer(num_addresses, "num_addresses") = static_cast<int>(shape.addresses.size());
    *check_pointer(num_datatypes, "num_datatypes") = static_cast<int>(shape.types.size());
    *check_pointer(combiner, "combiner") = shape.combiner;
  });
}
VIADUCT_MPI(Type_get_envelope);

int PMPI_Type_get_contents(MPI_Datatype datatype, int max_integers, int max_addresses,
                           int max_datatypes, int array_of_integers[],
                           MPI_Aint array_of_addresses[], MPI_Datatype array_of_datatypes[]) {
  return call("MPI_Type_get_contents", [&] {
    const Datatype& t = check_type(datatype);
    const Datatype::Shape& shape = t.shape();
    if (shape.combiner == MPI_COMBINER_NAMED)
      fail(MPI_ERR_TYPE, "argument datatype is %s; predefined datatypes have no contents",
           t.name.c_str());
    // Checked before anything is written: handles that are made below would be lost if a later list
    // failed.
    if (max_datatypes < 0 || static_cast<std::size_t>(max_datatypes) < shape.types.size())
      fail(MPI_ERR_ARG, "argument max_datatypes is %d; the datatype was made with %zu",
           max_datatypes, shape.types.size());
    give_list(shape.integers, max_integers, array_of_integers, "max_integers", "array_of_integers");
    give_list(shape.addresses, max_addresses, array_of_addresses, "max_addresses",
              "array_of_addresses");
    if (shape.types.empty()) return;
    check_pointer(array_of_datatypes, "array_of_datatypes");
    for (std::size_t i = 0; i < shape.types.size(); ++i)
      array_of_datatypes[i] = component_handle(*shape.types[i]);
  });
}
VIADUCT_MPI(Type_get_contents);

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
