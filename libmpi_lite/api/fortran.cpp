// What the C library knows of Fortran, and what it tells of its own binary interface (MPI 5.0,
// sections 19.1.5, 19.1.9 and 20.4). The Fortran bindings themselves are a library of their own
// (libmpi_lite/fortran) and use nothing but the standard's functions.
//
// Choice: the predefined datatypes are those of gfortran, whether the bindings are loaded or not.
// So the sizes and the values of LOGICAL are always known. A Fortran library may set them once, to
// what they are.
#include <cstring>
#include <span>
#include <string>
#include <vector>

#include "libmpi_lite/api/arguments/arguments.hpp"
#include "libmpi_lite/core/data/datatype_builder.hpp"

using namespace viaduct::mpi;

namespace {

using Pairs = std::vector<std::pair<std::string, std::string>>;

// The sizes of default kinds in bytes, and which optional datatypes there are. The types themselves
// are in core/data/named_types.cpp.
const Pairs& fortran_pairs() {
  static const Pairs pairs = [] {
    Pairs made = {{"mpi_logical_size", "4"},
                  {"mpi_integer_size", "4"},
                  {"mpi_real_size", "4"},
                  {"mpi_double_precision_size", "8"}};
    for (const char* type :
         {"logical1", "logical2", "logical4", "logical8", "logical16", "integer1", "integer2",
          "integer4", "integer8", "integer16", "real4", "real8", "real16", "complex8", "complex16",
          "complex32", "double_complex"})
      made.emplace_back(std::string("mpi_") + type + "_supported", "true");
    for (const char* type : {"real2", "complex4"})
      made.emplace_back(std::string("mpi_") + type + "_supported", "false");
    return made;
  }();
  return pairs;
}

// The values of default LOGICAL.
constexpr int kTrue = 1, kFalse = 0;

bool info_set = false, booleans_set = false;  // by a Fortran library

void check_logical_size(int size) {
  if (size != sizeof(kTrue))
    fail(MPI_ERR_ARG, "argument logical_size is %d; Fortran's LOGICAL has 4 bytes", size);
}

int give_pairs(const char* function, MPI_Info* info, const Pairs& pairs) {
  return call_any_time(function, [&] {
    check_pointer(info, "info");
    Ref<Info> made = make<Info>();
    made->entries = pairs;
    *info = new_handle<MPI_Info>(info_handles, std::move(made));
  });
}

// ---- types by precision and range --------------------------------------------------------------

// What SELECTED_REAL_KIND and SELECTED_INT_KIND choose among: decimal digits and exponents.
struct Kind {
  int precision, range;
  MPI_Datatype type;
};
const Kind kReals[] = {
    {6, 37, MPI_REAL4}, {15, 307, MPI_REAL8}, {18, 4931, MPI_LONG_DOUBLE}, {33, 4931, MPI_REAL16}};
const Kind kComplexes[] = {{6, 37, MPI_COMPLEX8},
                           {15, 307, MPI_COMPLEX16},
                           {18, 4931, MPI_C_LONG_DOUBLE_COMPLEX},
                           {33, 4931, MPI_COMPLEX32}};
const Kind kIntegers[] = {{0, 2, MPI_INTEGER1},
                          {0, 4, MPI_INTEGER2},
                          {0, 9, MPI_INTEGER4},
                          {0, 18, MPI_INTEGER8},
                          {0, 38, MPI_INTEGER16}};

// The types made so far. They are never freed, so that equal arguments give the same handle.
struct Parameterized {
  int combiner, p, r;
  MPI_Datatype handle;
};
std::vector<Parameterized> parameterized;

// The handle for these arguments; MPI_UNDEFINED asks for nothing. `integers`: what
// MPI_Type_get_contents returns.
MPI_Datatype choose(std::span<const Kind> kinds, int combiner, int p, int r,
                    std::vector<int> integers) {
  if (p == MPI_UNDEFINED && r == MPI_UNDEFINED)
    fail(MPI_ERR_ARG, "arguments p and r are both MPI_UNDEFINED");
  for (const Parameterized& known : parameterized)
    if (known.combiner == combiner && known.p == p && known.r == r) return known.handle;
  for (const Kind& kind : kinds) {
    if (p > kind.precision || r > kind.range) continue;  // MPI_UNDEFINED is negative
    const Datatype& named = datatype(kind.type);
    Ref<Datatype> made =
        DatatypeBuilder::equal(named, std::make_shared<const Datatype::Shape>(
                                          Datatype::Shape{combiner, std::move(integers), {}, {}}));
    Datatype& type = *made;
    const auto handle = new_handle<MPI_Datatype>(datatype_handles, std::move(made));
    DatatypeBuilder::predefine(type, named, handle);
    parameterized.push_back({combiner, p, r, handle});
    return handle;
  }
  fail(MPI_ERR_ARG, "no type of the compiler has %d decimal digits and exponents up to %d", p, r);
}

}  // namespace

int PMPI_Abi_get_info(MPI_Info* info) {
  return give_pairs("MPI_Abi_get_info", info,
                    {{"mpi_aint_size", std::to_string(sizeof(MPI_Aint))},
                     {"mpi_count_size", std::to_string(sizeof(MPI_Count))},
                     {"mpi_offset_size", std::to_string(sizeof(MPI_Offset))}});
}
VIADUCT_MPI(Abi_get_info);

int PMPI_Abi_get_fortran_info(MPI_Info* info) {
  return give_pairs("MPI_Abi_get_fortran_info", info, fortran_pairs());
}
VIADUCT_MPI(Abi_get_fortran_info);

// Keys that the standard does not name are ignored, as in all info objects.
int PMPI_Abi_set_fortran_info(MPI_Info info) {
  return call_any_time("MPI_Abi_set_fortran_info", [&] {
    const Info& asked = check_info(info);
    if (info_set) fail(MPI_ERR_ABI, "Fortran's sizes have been set already");
    for (const auto& [key, value] : asked.entries)
      for (const auto& [known, fixed] : fortran_pairs())
        if (key == known && value != fixed)
          fail(MPI_ERR_ABI, "%s is %s in this library, not %s", key.c_str(), fixed.c_str(),
               value.c_str());
    info_set = true;
  });
}
VIADUCT_MPI(Abi_set_fortran_info);

int PMPI_Abi_get_fortran_booleans(int logical_size, void* logical_true, void* logical_false,
                                  int* is_set) {
  return call_any_time("MPI_Abi_get_fortran_booleans", [&] {
    check_logical_size(logical_size);
    std::memcpy(check_pointer(logical_true, "logical_true"), &kTrue, sizeof kTrue);
    std::memcpy(check_pointer(logical_false, "logical_false"), &kFalse, sizeof kFalse);
    *check_pointer(is_set, "is_set") = 1;
  });
}
VIADUCT_MPI(Abi_get_fortran_booleans);

int PMPI_Abi_set_fortran_booleans(int logical_size, void* logical_true, void* logical_false) {
  return call_any_time("MPI_Abi_set_fortran_booleans", [&] {
    check_logical_size(logical_size);
    if (booleans_set) fail(MPI_ERR_ABI, "the values of LOGICAL have been set already");
    if (std::memcmp(check_pointer(logical_true, "logical_true"), &kTrue, sizeof kTrue) != 0 ||
        std::memcmp(check_pointer(logical_false, "logical_false"), &kFalse, sizeof kFalse) != 0)
      fail(MPI_ERR_ABI, "the values of LOGICAL are %d and %d in this library", kTrue, kFalse);
    booleans_set = true;
  });
}
VIADUCT_MPI(Abi_set_fortran_booleans);

int PMPI_Type_create_f90_real(int p, int r, MPI_Datatype* newtype) {
  return call("MPI_Type_create_f90_real", [&] {
    *check_pointer(newtype, "newtype") = choose(kReals, MPI_COMBINER_F90_REAL, p, r, {p, r});
  });
}
VIADUCT_MPI(Type_create_f90_real);

int PMPI_Type_create_f90_complex(int p, int r, MPI_Datatype* newtype) {
  return call("MPI_Type_create_f90_complex", [&] {
    *check_pointer(newtype, "newtype") = choose(kComplexes, MPI_COMBINER_F90_COMPLEX, p, r, {p, r});
  });
}
VIADUCT_MPI(Type_create_f90_complex);

int PMPI_Type_create_f90_integer(int r, MPI_Datatype* newtype) {
  return call("MPI_Type_create_f90_integer", [&] {
    *check_pointer(newtype, "newtype") =
        choose(kIntegers, MPI_COMBINER_F90_INTEGER, MPI_UNDEFINED, r, {r});
  });
}
VIADUCT_MPI(Type_create_f90_integer);
