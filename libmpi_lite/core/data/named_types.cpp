// The predefined datatypes (MPI 5.0, sections 3.2.2, 5.1.2, 6.9.4 and annex A.1): tables of their
// handles, names and elements. datatype_builder.cpp makes the objects.
#include <cstddef>
#include <iterator>

#include "libmpi_lite/core/data/datatype_builder.hpp"
#include "libmpi_lite/core/data/machine_types.hpp"

namespace viaduct::mpi {

namespace {

using enum Elementary;

struct Named {
  MPI_Datatype handle;
  const char* name;
  Basic basic;
};

// The element that corresponds to a C type. `external_size`: in "external32", if it differs.
template <class T>
constexpr Basic of(Elementary kind, std::size_t external_size = sizeof(T)) {
  return {kind, sizeof(T), static_cast<std::uint8_t>(external_size), alignof(T)};
}

// "external32" has longs of 4 bytes and long doubles of 16.
constexpr Basic kLong = of<long>(int64, 4), kUnsignedLong = of<unsigned long>(uint64, 4);
constexpr Basic kComplex32 = of<Complex<float>>(complex32),
                kComplex64 = of<Complex<double>>(complex64);
constexpr Basic kComplex80 = of<Complex<long double>>(complex80, 32);

// Fortran's default LOGICAL and INTEGER have four bytes. No compiler of this ABI has REAL(2), so
// that MPI_REAL2 and MPI_COMPLEX4 do not exist.
const Named kNamed[] = {
    {MPI_AINT, "MPI_AINT", of<MPI_Aint>(int64)},
    {MPI_COUNT, "MPI_COUNT", of<MPI_Count>(int64)},
    {MPI_OFFSET, "MPI_OFFSET", of<MPI_Offset>(int64)},
    {MPI_PACKED, "MPI_PACKED", of<char>(packed)},
    {MPI_SHORT, "MPI_SHORT", of<short>(int16)},
    {MPI_INT, "MPI_INT", of<int>(int32)},
    {MPI_LONG, "MPI_LONG", kLong},
    {MPI_LONG_LONG_INT, "MPI_LONG_LONG_INT", of<long long>(int64)},
    {MPI_UNSIGNED_SHORT, "MPI_UNSIGNED_SHORT", of<unsigned short>(uint16)},
    {MPI_UNSIGNED, "MPI_UNSIGNED", of<unsigned>(uint32)},
    {MPI_UNSIGNED_LONG, "MPI_UNSIGNED_LONG", kUnsignedLong},
    {MPI_UNSIGNED_LONG_LONG, "MPI_UNSIGNED_LONG_LONG", of<unsigned long long>(uint64)},
    {MPI_FLOAT, "MPI_FLOAT", of<float>(float32)},
    {MPI_C_COMPLEX, "MPI_C_COMPLEX", kComplex32},
    {MPI_CXX_FLOAT_COMPLEX, "MPI_CXX_FLOAT_COMPLEX", kComplex32},
    {MPI_DOUBLE, "MPI_DOUBLE", of<double>(float64)},
    {MPI_C_DOUBLE_COMPLEX, "MPI_C_DOUBLE_COMPLEX", kComplex64},
    {MPI_CXX_DOUBLE_COMPLEX, "MPI_CXX_DOUBLE_COMPLEX", kComplex64},
    {MPI_LOGICAL, "MPI_LOGICAL", of<MPI_Fint>(logical)},
    {MPI_INTEGER, "MPI_INTEGER", of<MPI_Fint>(int32)},
    {MPI_REAL, "MPI_REAL", of<float>(float32)},
    {MPI_COMPLEX, "MPI_COMPLEX", kComplex32},
    {MPI_DOUBLE_PRECISION, "MPI_DOUBLE_PRECISION", of<double>(float64)},
    {MPI_DOUBLE_COMPLEX, "MPI_DOUBLE_COMPLEX", kComplex64},
    {MPI_CHARACTER, "MPI_CHARACTER", of<char>(character)},
    {MPI_LONG_DOUBLE, "MPI_LONG_DOUBLE", of<long double>(float80, 16)},
    {MPI_C_LONG_DOUBLE_COMPLEX, "MPI_C_LONG_DOUBLE_COMPLEX", kComplex80},
    {MPI_CXX_LONG_DOUBLE_COMPLEX, "MPI_CXX_LONG_DOUBLE_COMPLEX", kComplex80},
    {MPI_C_BOOL, "MPI_C_BOOL", of<bool>(logical)},
    {MPI_CXX_BOOL, "MPI_CXX_BOOL", of<bool>(logical)},
    {MPI_WCHAR, "MPI_WCHAR", of<wchar_t>(character, 2)},
    {MPI_INT8_T, "MPI_INT8_T", of<std::int8_t>(int8)},
    {MPI_UINT8_T, "MPI_UINT8_T", of<std::uint8_t>(uint8)},
    {MPI_CHAR, "MPI_CHAR", of<char>(character)},
    {MPI_SIGNED_CHAR, "MPI_SIGNED_CHAR", of<signed char>(int8)},
    {MPI_UNSIGNED_CHAR, "MPI_UNSIGNED_CHAR", of<unsigned char>(uint8)},
    {MPI_BYTE, "MPI_BYTE", kByte},
    {MPI_INT16_T, "MPI_INT16_T", of<std::int16_t>(int16)},
    {MPI_UINT16_T, "MPI_UINT16_T", of<std::uint16_t>(uint16)},
    {MPI_INT32_T, "MPI_INT32_T", of<std::int32_t>(int32)},
    {MPI_UINT32_T, "MPI_UINT32_T", of<std::uint32_t>(uint32)},
    {MPI_INT64_T, "MPI_INT64_T", of<std::int64_t>(int64)},
    {MPI_UINT64_T, "MPI_UINT64_T", of<std::uint64_t>(uint64)},
    {MPI_LOGICAL1, "MPI_LOGICAL1", of<std::int8_t>(logical)},
    {MPI_INTEGER1, "MPI_INTEGER1", of<std::int8_t>(int8)},
    {MPI_LOGICAL2, "MPI_LOGICAL2", of<std::int16_t>(logical)},
    {MPI_INTEGER2, "MPI_INTEGER2", of<std::int16_t>(int16)},
    {MPI_LOGICAL4, "MPI_LOGICAL4", of<std::int32_t>(logical)},
    {MPI_INTEGER4, "MPI_INTEGER4", of<std::int32_t>(int32)},
    {MPI_REAL4, "MPI_REAL4", of<float>(float32)},
    {MPI_LOGICAL8, "MPI_LOGICAL8", of<std::int64_t>(logical)},
    {MPI_INTEGER8, "MPI_INTEGER8", of<std::int64_t>(int64)},
    {MPI_REAL8, "MPI_REAL8", of<double>(float64)},
    {MPI_COMPLEX8, "MPI_COMPLEX8", kComplex32},
    {MPI_LOGICAL16, "MPI_LOGICAL16", of<Int128>(logical)},
    {MPI_INTEGER16, "MPI_INTEGER16", of<Int128>(int128)},
    {MPI_REAL16, "MPI_REAL16", of<Float128>(float128)},
    {MPI_COMPLEX16, "MPI_COMPLEX16", kComplex64},
    {MPI_COMPLEX32, "MPI_COMPLEX32", of<Complex<Float128>>(complex128)},
};

// A pair of a value and an index, for MPI_MINLOC and MPI_MAXLOC.
struct NamedPair {
  MPI_Datatype handle;
  const char* name;
  MPI_Datatype value, index;
  std::size_t index_at;  // displacement of the index, in bytes
};

template <class V, class I>
NamedPair pair_of(MPI_Datatype handle, const char* name, MPI_Datatype value, MPI_Datatype index) {
  using P = Pair<V, I>;
  return {handle, name, value, index, offsetof(P, index)};
}

const NamedPair kPairs[] = {
    pair_of<float, int>(MPI_FLOAT_INT, "MPI_FLOAT_INT", MPI_FLOAT, MPI_INT),
    pair_of<double, int>(MPI_DOUBLE_INT, "MPI_DOUBLE_INT", MPI_DOUBLE, MPI_INT),
    pair_of<long, int>(MPI_LONG_INT, "MPI_LONG_INT", MPI_LONG, MPI_INT),
    pair_of<int, int>(MPI_2INT, "MPI_2INT", MPI_INT, MPI_INT),
    pair_of<short, int>(MPI_SHORT_INT, "MPI_SHORT_INT", MPI_SHORT, MPI_INT),
    pair_of<long double, int>(MPI_LONG_DOUBLE_INT, "MPI_LONG_DOUBLE_INT", MPI_LONG_DOUBLE, MPI_INT),
    pair_of<float, float>(MPI_2REAL, "MPI_2REAL", MPI_REAL, MPI_REAL),
    pair_of<double, double>(MPI_2DOUBLE_PRECISION, "MPI_2DOUBLE_PRECISION", MPI_DOUBLE_PRECISION,
                            MPI_DOUBLE_PRECISION),
    pair_of<MPI_Fint, MPI_Fint>(MPI_2INTEGER, "MPI_2INTEGER", MPI_INTEGER, MPI_INTEGER),
};

void define(MPI_Datatype handle, Ref<Datatype> type) {
  datatype_handles.define(reinterpret_cast<std::uintptr_t>(handle), std::move(type));
}

}  // namespace

MPI_Datatype pair_type(MPI_Datatype value, MPI_Datatype index) {
  for (const NamedPair& pair : kPairs)
    if (pair.value == value && pair.index == index) return pair.handle;
  return MPI_DATATYPE_NULL;
}

void define_datatypes() {
  for (const Named& n : kNamed) define(n.handle, DatatypeBuilder::basic(n.basic, n.handle, n.name));
  for (const NamedPair& p : kPairs) {
    DatatypeBuilder builder;
    builder.add(datatype(p.value), 0);
    builder.add(datatype(p.index), static_cast<MPI_Count>(p.index_at));
    define(p.handle, builder.finish_pair(p.handle, p.name));
  }
  define(MPI_LB, DatatypeBuilder::marker(MPI_LB, "MPI_LB"));
  define(MPI_UB, DatatypeBuilder::marker(MPI_UB, "MPI_UB"));
}

}  // namespace viaduct::mpi
