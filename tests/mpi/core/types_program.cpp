// Datatypes, packing and operations as programs use them, and every way to use them wrongly. One
// process is enough.
#include <climits>
#include <cstring>
#include <string>
#include <vector>

#include "tests/mpi/job.hpp"

using job::report;
using job::section;

namespace {

using Datatypes = std::vector<MPI_Datatype>;

MPI_Datatype committed(MPI_Datatype type) {
  MPI_Type_commit(&type);
  return type;
}
MPI_Datatype every_second_int(int count) {
  MPI_Datatype type;
  MPI_Type_vector(count, 1, 2, MPI_INT, &type);
  return committed(type);
}
MPI_Datatype freed_type() {
  MPI_Datatype type;
  MPI_Type_contiguous(2, MPI_INT, &type);
  const MPI_Datatype stale = type;
  MPI_Type_free(&type);
  CHECK(type == MPI_DATATYPE_NULL);
  return stale;
}

// ---- how types were made -----------------------------------------------------------------------

struct Contents {
  int combiner = 0;
  std::vector<int> integers;
  std::vector<MPI_Aint> addresses;
  Datatypes types;
};

Contents contents(MPI_Datatype type) {
  int integers, addresses, types;
  Contents c;
  MPI_Type_get_envelope(type, &integers, &addresses, &types, &c.combiner);
  c.integers.resize(static_cast<std::size_t>(integers));
  c.addresses.resize(static_cast<std::size_t>(addresses));
  c.types.resize(static_cast<std::size_t>(types));
  MPI_Type_get_contents(type, integers, addresses, types, c.integers.data(), c.addresses.data(),
                        c.types.data());
  return c;
}

void check_contents(MPI_Datatype type, int combiner, const std::vector<int>& integers,
                    const std::vector<MPI_Aint>& addresses, const Datatypes& types) {
  const Contents c = contents(type);
  CHECK_EQ(c.combiner, combiner);
  CHECK(c.integers == integers);
  CHECK(c.addresses == addresses);
  CHECK(c.types == types);
  MPI_Type_free(&type);
}

void envelopes() {
  section("contents are the arguments of the constructor");
  const int lengths[] = {2, 1}, places[] = {4, 0};
  const MPI_Aint bytes[] = {32, 0};
  const MPI_Datatype types[] = {MPI_DOUBLE, MPI_CHAR};
  MPI_Datatype t;
  MPI_Type_contiguous(3, MPI_INT, &t);
  check_contents(t, MPI_COMBINER_CONTIGUOUS, {3}, {}, {MPI_INT});
  MPI_Type_vector(3, 2, -4, MPI_INT, &t);
  check_contents(t, MPI_COMBINER_VECTOR, {3, 2, -4}, {}, {MPI_INT});
  MPI_Type_create_hvector(3, 2, 44, MPI_INT, &t);
  check_contents(t, MPI_COMBINER_HVECTOR, {3, 2}, {44}, {MPI_INT});
  MPI_Type_indexed(2, lengths, places, MPI_INT, &t);
  check_contents(t, MPI_COMBINER_INDEXED, {2, 2, 1, 4, 0}, {}, {MPI_INT});
  MPI_Type_create_hindexed(2, lengths, bytes, MPI_INT, &t);
  check_contents(t, MPI_COMBINER_HINDEXED, {2, 2, 1}, {32, 0}, {MPI_INT});
  MPI_Type_create_indexed_block(2, 3, places, MPI_INT, &t);
  check_contents(t, MPI_COMBINER_INDEXED_BLOCK, {2, 3, 4, 0}, {}, {MPI_INT});
  MPI_Type_create_hindexed_block(2, 3, bytes, MPI_INT, &t);
  check_contents(t, MPI_COMBINER_HINDEXED_BLOCK, {2, 3}, {32, 0}, {MPI_INT});
  MPI_Type_create_struct(2, lengths, bytes, types, &t);
  check_contents(t, MPI_COMBINER_STRUCT, {2, 2, 1}, {32, 0}, {MPI_DOUBLE, MPI_CHAR});
  MPI_Type_create_resized(MPI_INT, -4, 16, &t);
  check_contents(t, MPI_COMBINER_RESIZED, {}, {-4, 16}, {MPI_INT});
  MPI_Type_dup(MPI_INT, &t);
  check_contents(t, MPI_COMBINER_DUP, {}, {}, {MPI_INT});
  const int sizes[] = {5, 6}, subsizes[] = {2, 3}, starts[] = {1, 2};
  MPI_Type_create_subarray(2, sizes, subsizes, starts, MPI_ORDER_C, MPI_INT, &t);
  check_contents(t, MPI_COMBINER_SUBARRAY, {2, 5, 6, 2, 3, 1, 2, MPI_ORDER_C}, {}, {MPI_INT});
  const int kinds[] = {MPI_DISTRIBUTE_BLOCK, MPI_DISTRIBUTE_CYCLIC}, processes[] = {2, 2};
  const int arguments[] = {MPI_DISTRIBUTE_DFLT_DARG, 2};
  MPI_Type_create_darray(4, 3, 2, sizes, kinds, arguments, processes, MPI_ORDER_FORTRAN, MPI_INT,
                         &t);
  check_contents(t, MPI_COMBINER_DARRAY,
                 {4, 3, 2, 5, 6, kinds[0], kinds[1], arguments[0], 2, 2, 2, MPI_ORDER_FORTRAN}, {},
                 {MPI_INT});

  section("predefined types are named; derived components come as handles to free");
  int integers = -1, places_given = -1, components = -1, combiner = -1;
  MPI_Type_get_envelope(MPI_DOUBLE_INT, &integers, &places_given, &components, &combiner);
  CHECK(integers == 0 && places_given == 0 && components == 0);
  CHECK_EQ(combiner, MPI_COMBINER_NAMED);
  MPI_Datatype inner = every_second_int(3), outer;
  MPI_Type_contiguous(2, inner, &outer);
  MPI_Type_free(&inner);
  Contents c = contents(outer);
  int size = 0;
  MPI_Type_size(c.types[0], &size);
  CHECK_EQ(size, 12);
  CHECK_EQ(contents(c.types[0]).combiner, MPI_COMBINER_VECTOR);
  CHECK_EQ(MPI_Type_free(&c.types[0]), MPI_SUCCESS);
  MPI_Type_size(outer, &size);
  CHECK_EQ(size, 24);
  MPI_Type_free(&outer);
}

// ---- sizes, bounds, names ----------------------------------------------------------------------

void sizes_and_names() {
  section("what an int cannot hold is undefined in the functions of MPI-1");
  MPI_Datatype big;
  MPI_Type_contiguous(INT_MAX, MPI_DOUBLE, &big);
  int size = 0;
  MPI_Count wide = 0, lb = -1, extent = 0;
  CHECK_EQ(MPI_Type_size(big, &size), MPI_SUCCESS);
  CHECK_EQ(size, MPI_UNDEFINED);
  MPI_Type_size_x(big, &wide);
  CHECK_EQ(wide, MPI_Count{INT_MAX} * 8);
  MPI_Type_get_extent_x(big, &lb, &extent);
  CHECK_EQ(lb, 0);
  CHECK_EQ(extent, wide);
  MPI_Pack_size(2, big, MPI_COMM_SELF, &size);
  CHECK_EQ(size, MPI_UNDEFINED);
  MPI_Type_free(&big);

  section("names: predefined, set, cut, none");
  char name[MPI_MAX_OBJECT_NAME];
  int length = 0;
  MPI_Type_get_name(MPI_INT, name, &length);
  CHECK_EQ(std::string(name), "MPI_INT");
  CHECK_EQ(length, 7);
  MPI_Type_get_name(MPI_2DOUBLE_PRECISION, name, &length);
  CHECK_EQ(std::string(name), "MPI_2DOUBLE_PRECISION");
  // The newer name of each is the synonym (section 3.2.2).
  MPI_Type_get_name(MPI_LONG_LONG, name, &length);
  CHECK_EQ(std::string(name), "MPI_LONG_LONG_INT");
  MPI_Type_get_name(MPI_C_FLOAT_COMPLEX, name, &length);
  CHECK_EQ(std::string(name), "MPI_C_COMPLEX");
  MPI_Datatype t, dup;
  MPI_Type_contiguous(1, MPI_INT, &t);
  MPI_Type_get_name(t, name, &length);
  CHECK_EQ(std::string(name), "");
  MPI_Type_set_name(t, "row");
  MPI_Type_dup(t, &dup);
  MPI_Type_get_name(dup, name, &length);
  CHECK_EQ(std::string(name), "");
  MPI_Type_set_name(t, std::string(500, 'x').c_str());
  MPI_Type_get_name(t, name, &length);
  CHECK_EQ(length, MPI_MAX_OBJECT_NAME - 1);
  MPI_Type_free(&t);
  MPI_Type_free(&dup);

  section("types by class and size");
  MPI_Type_match_size(MPI_TYPECLASS_REAL, 8, &t);
  CHECK(t == MPI_REAL8);
  MPI_Type_match_size(MPI_TYPECLASS_COMPLEX, 8, &t);
  CHECK(t == MPI_COMPLEX8);
  CHECK_CLASS(MPI_Type_match_size(MPI_TYPECLASS_INTEGER, 3, &t), MPI_ERR_ARG);
}

// ---- Fortran -----------------------------------------------------------------------------------

std::string value_of(MPI_Info info, const char* key) {
  char value[MPI_MAX_INFO_VAL];
  int length = sizeof value, flag = 0;
  MPI_Info_get_string(info, key, &length, value, &flag);
  return flag ? value : "";
}

void fortran() {
  section("types by precision and range");
  struct Chosen {
    int p, r, size;
  };
  for (const Chosen& c : std::vector<Chosen>{{6, 37, 4},
                                             {7, MPI_UNDEFINED, 8},
                                             {MPI_UNDEFINED, 38, 8},
                                             {16, 1, 16},
                                             {33, 4931, 16}}) {
    MPI_Datatype real, complex, again;
    int size = 0, counts[3], combiner = 0, contents[2] = {0, 0};
    MPI_Type_create_f90_real(c.p, c.r, &real);
    MPI_Type_size(real, &size);
    CHECK_EQ(size, c.size);
    MPI_Type_create_f90_complex(c.p, c.r, &complex);
    MPI_Type_size(complex, &size);
    CHECK_EQ(size, 2 * c.size);
    MPI_Type_create_f90_real(c.p, c.r, &again);
    CHECK(again == real);
    CHECK(complex != real);
    MPI_Type_get_envelope(real, &counts[0], &counts[1], &counts[2], &combiner);
    CHECK_EQ(combiner, MPI_COMBINER_F90_REAL);
    CHECK_EQ(counts[0], 2);
    MPI_Type_get_contents(real, 2, 0, 0, contents, nullptr, nullptr);
    CHECK_EQ(contents[0], c.p);
    CHECK_EQ(contents[1], c.r);
    CHECK_CLASS(MPI_Type_free(&real), MPI_ERR_TYPE);
    // A component, which is given as it is.
    MPI_Datatype pair, component = MPI_DATATYPE_NULL;
    MPI_Type_contiguous(2, real, &pair);
    MPI_Type_get_contents(pair, 1, 0, 1, contents, nullptr, &component);
    CHECK(component == real);
    MPI_Type_free(&pair);
  }
  MPI_Datatype t;
  long a = 40, b = 2;
  MPI_Type_create_f90_integer(18, &t);
  CHECK_CLASS(MPI_Reduce_local(&a, &b, 1, t, MPI_SUM), MPI_SUCCESS);
  CHECK_EQ(b, 42);
  CHECK_CLASS(MPI_Type_create_f90_real(34, 1, &t), MPI_ERR_ARG);
  CHECK_CLASS(MPI_Type_create_f90_real(MPI_UNDEFINED, MPI_UNDEFINED, &t), MPI_ERR_ARG);
  CHECK_CLASS(MPI_Type_create_f90_integer(39, &t), MPI_ERR_ARG);

  section("what is known of Fortran");
  MPI_Info info;
  int yes = 0, no = 1, is_set = 0;
  MPI_Abi_get_info(&info);
  CHECK_EQ(value_of(info, "mpi_count_size"), "8");
  MPI_Info_free(&info);
  MPI_Abi_get_fortran_info(&info);
  CHECK_EQ(value_of(info, "mpi_logical_size"), "4");
  CHECK_EQ(value_of(info, "mpi_real2_supported"), "false");
  CHECK_EQ(value_of(info, "mpi_complex32_supported"), "true");
  MPI_Info_set(info, "mpi_integer_size", "8");
  CHECK_CLASS(MPI_Abi_set_fortran_info(info), MPI_ERR_ABI);
  MPI_Info_set(info, "mpi_integer_size", "4");
  CHECK_CLASS(MPI_Abi_set_fortran_info(info), MPI_SUCCESS);
  CHECK_CLASS(MPI_Abi_set_fortran_info(info), MPI_ERR_ABI);  // once only
  MPI_Info_free(&info);
  CHECK_CLASS(MPI_Abi_get_fortran_booleans(8, &yes, &no, &is_set), MPI_ERR_ARG);
  MPI_Abi_get_fortran_booleans(4, &yes, &no, &is_set);
  CHECK_EQ(yes, 1);
  CHECK_EQ(no, 0);
  CHECK_EQ(is_set, 1);
  yes = -1;
  CHECK_CLASS(MPI_Abi_set_fortran_booleans(4, &yes, &no), MPI_ERR_ABI);
  yes = 1;
  CHECK_CLASS(MPI_Abi_set_fortran_booleans(4, &yes, &no), MPI_SUCCESS);
}

// ---- counts ------------------------------------------------------------------------------------

void counts() {
  section("counts of items and of elements");
  const int lengths[] = {1, 1, 2};
  const MPI_Aint places[] = {0, 8, 16};
  const MPI_Datatype parts[] = {MPI_DOUBLE, MPI_SHORT, MPI_INT};
  MPI_Datatype t;
  MPI_Type_create_struct(3, lengths, places, parts, &t);  // 8 + 2 + 8 bytes, 4 elements
  t = committed(t);
  MPI_Status status;
  std::memset(&status, 0, sizeof status);
  int count = 0;
  MPI_Count wide = 0;
  const int kElements[] = {0, 1, 2, 3, 4, 5, 9};
  for (const int n : kElements) {
    MPI_Status_set_elements(&status, t, n);
    MPI_Get_elements(&status, t, &count);
    CHECK_EQ(count, n);
    MPI_Get_count(&status, t, &count);
    CHECK_EQ(count, n % 4 == 0 ? n / 4 : MPI_UNDEFINED);
  }
  MPI_Status_set_elements(&status, MPI_BYTE, 9);
  MPI_Get_elements(&status, t, &count);
  CHECK_EQ(count, MPI_UNDEFINED);
  MPI_Get_elements_x(&status, t, &wide);
  CHECK_EQ(wide, MPI_UNDEFINED);
  MPI_Status_set_elements_x(&status, MPI_INT, MPI_Count{INT_MAX} + 1);
  MPI_Get_elements_x(&status, MPI_INT, &wide);
  CHECK_EQ(wide, MPI_Count{INT_MAX} + 1);
  MPI_Get_count(&status, MPI_INT, &count);
  CHECK_EQ(count, MPI_UNDEFINED);
  // Any count of any type, though no message is so long.
  for (const MPI_Datatype each : {MPI_BYTE, MPI_INT, MPI_DOUBLE, MPI_C_LONG_DOUBLE_COMPLEX})
    for (const MPI_Count most :
         {MPI_Count{1} << 58, (MPI_Count{1} << 62) + 3, MPI_Count{INT64_MAX}}) {
      CHECK_CLASS(MPI_Status_set_elements_x(&status, each, most), MPI_SUCCESS);
      MPI_Get_elements_x(&status, each, &wide);
      CHECK_EQ(wide, most);
    }
  MPI_Get_elements_x(&status, MPI_BYTE, &wide);  // more bytes than can be said
  CHECK_EQ(wide, MPI_UNDEFINED);
  MPI_Status_set_elements_x(&status, MPI_INT, MPI_Count{INT_MAX} + 1);
  MPI_Datatype empty;
  MPI_Type_contiguous(0, MPI_INT, &empty);
  MPI_Get_count(&status, empty, &count);
  CHECK_EQ(count, MPI_UNDEFINED);
  MPI_Status_set_elements(&status, MPI_INT, 0);
  MPI_Get_count(&status, empty, &count);
  CHECK_EQ(count, 0);
  CHECK_CLASS(MPI_Get_count(&status, MPI_DATATYPE_NULL, &count), MPI_ERR_TYPE);
  CHECK_CLASS(MPI_Get_elements(&status, freed_type(), &count), MPI_ERR_TYPE);
  CHECK_CLASS(MPI_Status_set_elements(&status, MPI_INT, -1), MPI_ERR_COUNT);
  MPI_Type_free(&empty);
  MPI_Type_free(&t);
}

// ---- packing -----------------------------------------------------------------------------------

void packing() {
  section("what is packed bit by bit is unpacked again");
  MPI_Datatype t = every_second_int(3);
  const int from[] = {1, 2, 3, 4, 5, 6};
  const double number = 2.5;
  char packed[64];
  int position = 0, size = 0;
  MPI_Pack_size(1, t, MPI_COMM_SELF, &size);
  CHECK(size >= 12);
  CHECK_EQ(MPI_Pack(from, 1, t, packed, 64, &position, MPI_COMM_SELF), MPI_SUCCESS);
  CHECK_EQ(MPI_Pack(&number, 1, MPI_DOUBLE, packed, 64, &position, MPI_COMM_SELF), MPI_SUCCESS);
  CHECK_EQ(position, 20);
  int into[6] = {}, at = 0;
  double back = 0;
  MPI_Unpack(packed, position, &at, into, 1, t, MPI_COMM_SELF);
  MPI_Unpack(packed, position, &at, &back, 1, MPI_DOUBLE, MPI_COMM_SELF);
  CHECK(into[0] == 1 && into[1] == 0 && into[2] == 3 && into[4] == 5 && into[5] == 0);
  CHECK_EQ(back, 2.5);
  CHECK_EQ(at, 20);

  section("packing with wrong arguments");
  at = 16;
  CHECK_CLASS(MPI_Unpack(packed, 20, &at, &back, 1, MPI_DOUBLE, MPI_COMM_SELF), MPI_ERR_TRUNCATE);
  position = 0;
  CHECK_CLASS(MPI_Pack(from, 1, t, packed, 11, &position, MPI_COMM_SELF), MPI_ERR_TRUNCATE);
  CHECK_CLASS(MPI_Pack(from, INT_MAX, MPI_INT, packed, 64, &position, MPI_COMM_SELF),
              MPI_ERR_TRUNCATE);
  CHECK_EQ(position, 0);
  CHECK_CLASS(MPI_Pack(from, -1, MPI_INT, packed, 64, &position, MPI_COMM_SELF), MPI_ERR_COUNT);
  CHECK_CLASS(MPI_Pack(from, 1, MPI_INT, packed, -1, &position, MPI_COMM_SELF), MPI_ERR_ARG);
  position = -4;
  CHECK_CLASS(MPI_Pack(from, 1, MPI_INT, packed, 64, &position, MPI_COMM_SELF), MPI_ERR_ARG);
  position = 0;
  CHECK_CLASS(MPI_Pack(from, 1, MPI_INT, packed, 64, nullptr, MPI_COMM_SELF), MPI_ERR_ARG);
  CHECK_CLASS(MPI_Pack(nullptr, 1, MPI_INT, packed, 64, &position, MPI_COMM_SELF), MPI_ERR_BUFFER);
  CHECK_CLASS(MPI_Pack(from, 1, MPI_INT, nullptr, 64, &position, MPI_COMM_SELF), MPI_ERR_BUFFER);
  CHECK_CLASS(MPI_Pack(from, 1, MPI_INT, packed, 64, &position, MPI_COMM_NULL), MPI_ERR_COMM);
  CHECK_CLASS(MPI_Pack(from, 1, MPI_DATATYPE_NULL, packed, 64, &position, MPI_COMM_SELF),
              MPI_ERR_TYPE);
  CHECK_CLASS(MPI_Pack(from, 1, freed_type(), packed, 64, &position, MPI_COMM_SELF), MPI_ERR_TYPE);
  CHECK_CLASS(MPI_Pack_size(-1, MPI_INT, MPI_COMM_SELF, &size), MPI_ERR_COUNT);
  MPI_Datatype uncommitted;
  MPI_Type_contiguous(1, MPI_INT, &uncommitted);
  CHECK_CLASS(MPI_Pack(from, 1, uncommitted, packed, 64, &position, MPI_COMM_SELF), MPI_ERR_TYPE);
  CHECK_CLASS(MPI_Unpack(packed, 64, &position, into, 1, uncommitted, MPI_COMM_SELF), MPI_ERR_TYPE);
  CHECK_EQ(MPI_Pack(nullptr, 0, MPI_INT, nullptr, 0, &position, MPI_COMM_SELF), MPI_SUCCESS);
  MPI_Type_free(&uncommitted);

  section("external32");
  MPI_Aint place = 0, bytes = 0;
  MPI_Pack_external_size("external32", 2, t, &bytes);
  CHECK_EQ(bytes, 24);
  CHECK_EQ(MPI_Pack_external("external32", from, 1, t, packed, 64, &place), MPI_SUCCESS);
  CHECK_EQ(place, 12);
  CHECK_EQ(static_cast<int>(packed[7]), 3);
  std::memset(into, 0, sizeof into);
  place = 0;
  MPI_Unpack_external("external32", packed, 12, &place, into, 1, t);
  CHECK(into[0] == 1 && into[1] == 0 && into[2] == 3 && into[4] == 5);
  CHECK_CLASS(MPI_Unpack_external("external32", packed, 12, &place, into, 1, t), MPI_ERR_TRUNCATE);
  CHECK_CLASS(MPI_Pack_external("native", from, 1, t, packed, 64, &place),
              MPI_ERR_UNSUPPORTED_DATAREP);
  MPI_Type_free(&t);
}

// ---- wrong constructors ------------------------------------------------------------------------

void wrong_constructors() {
  section("constructors refuse wrong counts, lengths and types");
  const int ones[] = {1, 1}, negative[] = {1, -1}, zeros[] = {0, 0};
  const MPI_Aint places[] = {0, 8};
  const MPI_Datatype ints[] = {MPI_INT, MPI_INT}, null[] = {MPI_INT, MPI_DATATYPE_NULL};
  const MPI_Datatype stale = freed_type();
  MPI_Datatype t = MPI_DATATYPE_NULL;
  CHECK_CLASS(MPI_Type_contiguous(-1, MPI_INT, &t), MPI_ERR_COUNT);
  CHECK_CLASS(MPI_Type_contiguous(1, MPI_DATATYPE_NULL, &t), MPI_ERR_TYPE);
  CHECK_CLASS(MPI_Type_contiguous(1, stale, &t), MPI_ERR_TYPE);
  CHECK_CLASS(MPI_Type_contiguous(1, MPI_INT, nullptr), MPI_ERR_ARG);
  CHECK_CLASS(MPI_Type_vector(-1, 1, 1, MPI_INT, &t), MPI_ERR_COUNT);
  CHECK_CLASS(MPI_Type_vector(1, -1, 1, MPI_INT, &t), MPI_ERR_ARG);
  CHECK_CLASS(MPI_Type_vector(1, 1, 1, stale, &t), MPI_ERR_TYPE);
  CHECK_CLASS(MPI_Type_create_hvector(1, -1, 1, MPI_INT, &t), MPI_ERR_ARG);
  CHECK_CLASS(MPI_Type_indexed(-1, ones, zeros, MPI_INT, &t), MPI_ERR_COUNT);
  CHECK_CLASS(MPI_Type_indexed(2, negative, zeros, MPI_INT, &t), MPI_ERR_ARG);
  CHECK_CLASS(MPI_Type_indexed(2, nullptr, zeros, MPI_INT, &t), MPI_ERR_ARG);
  CHECK_CLASS(MPI_Type_indexed(2, ones, nullptr, MPI_INT, &t), MPI_ERR_ARG);
  CHECK_CLASS(MPI_Type_create_hindexed(2, negative, places, MPI_INT, &t), MPI_ERR_ARG);
  CHECK_CLASS(MPI_Type_create_indexed_block(2, -1, zeros, MPI_INT, &t), MPI_ERR_ARG);
  CHECK_CLASS(MPI_Type_create_hindexed_block(-2, 1, places, MPI_INT, &t), MPI_ERR_COUNT);
  CHECK_CLASS(MPI_Type_create_struct(2, ones, places, null, &t), MPI_ERR_TYPE);
  CHECK_CLASS(MPI_Type_create_struct(2, negative, places, ints, &t), MPI_ERR_ARG);
  CHECK_CLASS(MPI_Type_create_struct(-2, ones, places, ints, &t), MPI_ERR_COUNT);
  CHECK_CLASS(MPI_Type_create_resized(MPI_DATATYPE_NULL, 0, 4, &t), MPI_ERR_TYPE);
  CHECK_CLASS(MPI_Type_dup(MPI_DATATYPE_NULL, &t), MPI_ERR_TYPE);
  CHECK(t == MPI_DATATYPE_NULL);

  section("arrays must fit");
  const int sizes[] = {4, 4}, parts[] = {2, 2}, starts[] = {2, 2}, beyond[] = {2, 3};
  const auto subarray = [&](int dims, const int* subsizes, const int* from, int order) {
    return MPI_Type_create_subarray(dims, sizes, subsizes, from, order, MPI_INT, &t);
  };
  CHECK_CLASS(subarray(0, parts, starts, MPI_ORDER_C), MPI_ERR_ARG);
  CHECK_CLASS(subarray(2, parts, beyond, MPI_ORDER_C), MPI_ERR_ARG);
  CHECK_CLASS(subarray(2, zeros, starts, MPI_ORDER_C), MPI_ERR_ARG);
  CHECK_CLASS(subarray(2, parts, starts, 7), MPI_ERR_ARG);
  const int blocks[] = {MPI_DISTRIBUTE_BLOCK, MPI_DISTRIBUTE_BLOCK};
  const auto darray = [&](int size, int rank, const int* arguments) {
    return MPI_Type_create_darray(size, rank, 2, sizes, blocks, arguments, parts, MPI_ORDER_C,
                                  MPI_INT, &t);
  };
  CHECK_CLASS(darray(5, 0, parts), MPI_ERR_ARG);
  CHECK_CLASS(darray(4, 4, parts), MPI_ERR_ARG);
  CHECK_CLASS(darray(4, 0, ones), MPI_ERR_ARG);  // two blocks of one do not hold four

  section("predefined types and stale handles cannot be freed");
  MPI_Datatype predefined = MPI_INT, again = stale, nothing = MPI_DATATYPE_NULL;
  CHECK_CLASS(MPI_Type_free(&predefined), MPI_ERR_TYPE);
  CHECK(predefined == MPI_INT);
  CHECK_CLASS(MPI_Type_free(&again), MPI_ERR_TYPE);
  CHECK_CLASS(MPI_Type_free(&nothing), MPI_ERR_TYPE);
  CHECK_CLASS(MPI_Type_commit(&nothing), MPI_ERR_TYPE);
  CHECK_EQ(MPI_Type_commit(&predefined), MPI_SUCCESS);
  int n = 0, size = 0, combiner = 0;
  MPI_Aint lb = 0, extent = 0;
  char name[MPI_MAX_OBJECT_NAME];
  CHECK_CLASS(MPI_Type_size(stale, &size), MPI_ERR_TYPE);
  CHECK_CLASS(MPI_Type_get_extent(stale, &lb, &extent), MPI_ERR_TYPE);
  CHECK_CLASS(MPI_Type_get_true_extent(stale, &lb, &extent), MPI_ERR_TYPE);
  CHECK_CLASS(MPI_Type_get_envelope(stale, &n, &n, &n, &combiner), MPI_ERR_TYPE);
  CHECK_CLASS(MPI_Type_get_name(stale, name, &n), MPI_ERR_TYPE);
  CHECK_CLASS(MPI_Type_set_name(stale, "x"), MPI_ERR_TYPE);
  CHECK_CLASS(MPI_Type_set_name(MPI_INT, nullptr), MPI_ERR_ARG);
  CHECK_CLASS(MPI_Type_get_contents(MPI_INT, 0, 0, 0, &n, &lb, &t), MPI_ERR_TYPE);
  MPI_Datatype vector = every_second_int(2);
  int integers[3];
  CHECK_CLASS(MPI_Type_get_contents(vector, 2, 0, 1, integers, &lb, &t), MPI_ERR_ARG);
  CHECK_CLASS(MPI_Type_get_contents(vector, 3, 0, 0, integers, &lb, &t), MPI_ERR_ARG);
  MPI_Type_free(&vector);
}

// ---- operations --------------------------------------------------------------------------------

void keep_first(void*, void*, int*, MPI_Datatype*) {}
void add_rows(void* in, void* inout, int* count, MPI_Datatype* type) {
  MPI_Aint lb, extent;
  MPI_Type_get_extent(*type, &lb, &extent);
  const auto step = static_cast<std::size_t>(extent) / sizeof(int);
  for (std::size_t i = 0; i < static_cast<std::size_t>(*count); ++i)
    static_cast<int*>(inout)[i * step] += static_cast<int*>(in)[i * step];
}

void operations() {
  section("local reductions");
  int a[] = {1, 2, 3}, b[] = {10, 20, 30};
  CHECK_EQ(MPI_Reduce_local(a, b, 3, MPI_INT, MPI_SUM), MPI_SUCCESS);
  CHECK(b[0] == 11 && b[2] == 33);
  MPI_Op op, stale;
  int commute = -1;
  MPI_Op_create(add_rows, 0, &op);
  MPI_Op_commutative(op, &commute);
  CHECK_EQ(commute, 0);
  MPI_Op_commutative(MPI_MAXLOC, &commute);
  CHECK_EQ(commute, 1);
  MPI_Datatype pair;
  MPI_Type_create_resized(MPI_INT, 0, 8, &pair);
  pair = committed(pair);
  int x[] = {1, 2, 3, 4}, y[] = {10, 20, 30, 40};
  MPI_Reduce_local(x, y, 2, pair, op);
  CHECK(y[0] == 11 && y[1] == 20 && y[2] == 33 && y[3] == 40);
  MPI_Type_free(&pair);

  section("operations refuse what they cannot do");
  stale = op;
  CHECK_EQ(MPI_Op_free(&op), MPI_SUCCESS);
  CHECK(op == MPI_OP_NULL);
  CHECK_CLASS(MPI_Op_free(&op), MPI_ERR_OP);
  CHECK_CLASS(MPI_Op_free(&stale), MPI_ERR_OP);
  op = MPI_SUM;
  CHECK_CLASS(MPI_Op_free(&op), MPI_ERR_OP);
  CHECK_CLASS(MPI_Op_create(nullptr, 1, &op), MPI_ERR_ARG);
  CHECK_CLASS(MPI_Op_create(keep_first, 1, nullptr), MPI_ERR_ARG);
  CHECK_CLASS(MPI_Op_commutative(MPI_OP_NULL, &commute), MPI_ERR_OP);
  CHECK_CLASS(MPI_Reduce_local(a, b, 3, MPI_INT, MPI_OP_NULL), MPI_ERR_OP);
  CHECK_CLASS(MPI_Reduce_local(a, b, 3, MPI_INT, stale), MPI_ERR_OP);
  CHECK_CLASS(MPI_Reduce_local(a, b, 3, MPI_INT, MPI_MINLOC), MPI_ERR_OP);
  CHECK_CLASS(MPI_Reduce_local(a, b, 3, MPI_FLOAT, MPI_BAND), MPI_ERR_OP);
  CHECK_CLASS(MPI_Reduce_local(a, b, 3, MPI_WCHAR, MPI_SUM), MPI_ERR_OP);
  CHECK_CLASS(MPI_Reduce_local(a, b, 3, MPI_BYTE, MPI_SUM), MPI_ERR_OP);
  CHECK_CLASS(MPI_Reduce_local(a, b, -3, MPI_INT, MPI_SUM), MPI_ERR_COUNT);
  CHECK_CLASS(MPI_Reduce_local(a, a, 3, MPI_INT, MPI_SUM), MPI_ERR_BUFFER);
  CHECK_CLASS(MPI_Reduce_local(nullptr, b, 3, MPI_INT, MPI_SUM), MPI_ERR_BUFFER);
  CHECK_CLASS(MPI_Reduce_local(MPI_IN_PLACE, b, 3, MPI_INT, MPI_SUM), MPI_ERR_BUFFER);
  CHECK_CLASS(MPI_Reduce_local(a, b, 3, MPI_DATATYPE_NULL, MPI_SUM), MPI_ERR_TYPE);
  CHECK_EQ(MPI_Reduce_local(a, b, 0, MPI_INT, MPI_SUM), MPI_SUCCESS);
}

// ---- addresses ---------------------------------------------------------------------------------

void addresses() {
  section("addresses");
  const int array[4] = {};
  MPI_Aint first = 0, third = 0, bottom = -1;
  MPI_Get_address(&array[0], &first);
  MPI_Get_address(&array[2], &third);
  MPI_Get_address(MPI_BOTTOM, &bottom);
  CHECK_EQ(MPI_Aint_diff(third, first), 8);
  CHECK_EQ(MPI_Aint_add(first, 8), third);
  CHECK_EQ(bottom, 0);
  CHECK_CLASS(MPI_Get_address(array, nullptr), MPI_ERR_ARG);
}

// ---- attributes (a duplicate copies them, freeing deletes them) --------------------------------

int deleted = 0;
int copy_callback(MPI_Datatype, int, void* extra, void* in, void* out, int* flag) {
  if (*static_cast<int*>(extra)) return MPI_ERR_OTHER;
  *static_cast<void**>(out) = static_cast<char*>(in) + 1;
  *flag = 1;
  return MPI_SUCCESS;
}
int delete_callback(MPI_Datatype, int, void*, void*) {
  ++deleted;
  return MPI_SUCCESS;
}

void attributes() {
  section("duplicates copy attributes, freeing deletes them");
  static char base[4];
  int refuse = 0, key = 0, flag = 0;
  MPI_Type_create_keyval(copy_callback, delete_callback, &key, &refuse);
  MPI_Datatype t = every_second_int(2), dup = MPI_DATATYPE_NULL;
  MPI_Type_set_attr(t, key, base);
  MPI_Type_dup(t, &dup);
  void* value = nullptr;
  MPI_Type_get_attr(dup, key, &value, &flag);
  CHECK(flag && value == base + 1);
  MPI_Type_free(&dup);
  CHECK_EQ(deleted, 1);
  refuse = 1;
  CHECK_CLASS(MPI_Type_dup(t, &dup), MPI_ERR_OTHER);
  CHECK(dup == MPI_DATATYPE_NULL);
  const Contents c = contents(t);
  MPI_Datatype outer;
  MPI_Type_contiguous(1, t, &outer);
  MPI_Datatype component = contents(outer).types[0];
  MPI_Type_free(&component);
  CHECK_EQ(deleted, 1);  // the component was another object
  MPI_Type_free(&outer);
  MPI_Type_free(&t);
  CHECK_EQ(deleted, 2);
  MPI_Type_free_keyval(&key);
}

}  // namespace

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
  envelopes();
  sizes_and_names();
  fortran();
  counts();
  packing();
  wrong_constructors();
  operations();
  addresses();
  attributes();
  return report();
}
