// Every predefined operation on every predefined type, and user functions.
#include <cmath>
#include <complex>
#include <cstring>
#include <limits>
#include <set>

#include "tests/mpi/core/predefined.hpp"

namespace viaduct::mpi {
namespace {

const Op& op(MPI_Op handle) {
  return *op_handles.find(reinterpret_cast<std::uintptr_t>(handle));
}

const MPI_Op kOps[] = {MPI_SUM,  MPI_MIN,  MPI_MAX, MPI_PROD, MPI_BAND,   MPI_BOR,
                       MPI_BXOR, MPI_LAND, MPI_LOR, MPI_LXOR, MPI_MINLOC, MPI_MAXLOC};

// ---- which goes with which (MPI 5.0, section 6.9.2) --------------------------------------------

using Types = std::set<MPI_Datatype>;
const Types kIntegers{MPI_SHORT, MPI_INT, MPI_LONG, MPI_LONG_LONG, MPI_UNSIGNED_SHORT, MPI_UNSIGNED,
                      MPI_UNSIGNED_LONG, MPI_UNSIGNED_LONG_LONG, MPI_SIGNED_CHAR, MPI_UNSIGNED_CHAR,
                      MPI_INT8_T, MPI_INT16_T, MPI_INT32_T, MPI_INT64_T, MPI_UINT8_T, MPI_UINT16_T,
                      MPI_UINT32_T, MPI_UINT64_T, MPI_INTEGER, MPI_INTEGER1, MPI_INTEGER2,
                      MPI_INTEGER4, MPI_INTEGER8, MPI_INTEGER16, MPI_AINT, MPI_COUNT, MPI_OFFSET,
                      // Not in the standard, but in use.
                      MPI_CHAR, MPI_CHARACTER};
const Types kFloating{MPI_FLOAT, MPI_DOUBLE, MPI_LONG_DOUBLE, MPI_REAL, MPI_DOUBLE_PRECISION,
                      MPI_REAL4, MPI_REAL8,  MPI_REAL16};
const Types kLogical{MPI_LOGICAL,  MPI_C_BOOL,   MPI_CXX_BOOL, MPI_LOGICAL1,
                     MPI_LOGICAL2, MPI_LOGICAL4, MPI_LOGICAL8, MPI_LOGICAL16};
const Types kComplex{MPI_COMPLEX,
                     MPI_DOUBLE_COMPLEX,
                     MPI_C_FLOAT_COMPLEX,
                     MPI_C_DOUBLE_COMPLEX,
                     MPI_C_LONG_DOUBLE_COMPLEX,
                     MPI_CXX_FLOAT_COMPLEX,
                     MPI_CXX_DOUBLE_COMPLEX,
                     MPI_CXX_LONG_DOUBLE_COMPLEX,
                     MPI_COMPLEX8,
                     MPI_COMPLEX16,
                     MPI_COMPLEX32};
const Types kPairs{MPI_FLOAT_INT, MPI_DOUBLE_INT,        MPI_LONG_INT,
                   MPI_2INT,      MPI_SHORT_INT,         MPI_LONG_DOUBLE_INT,
                   MPI_2REAL,     MPI_2DOUBLE_PRECISION, MPI_2INTEGER};

bool allowed(MPI_Op o, MPI_Datatype t) {
  if (o == MPI_MIN || o == MPI_MAX) return kIntegers.contains(t) || kFloating.contains(t);
  if (o == MPI_SUM || o == MPI_PROD)
    return kIntegers.contains(t) || kFloating.contains(t) || kComplex.contains(t);
  if (o == MPI_BAND || o == MPI_BOR || o == MPI_BXOR) return kIntegers.contains(t) || t == MPI_BYTE;
  if (o == MPI_LAND || o == MPI_LOR || o == MPI_LXOR)
    return kIntegers.contains(t) || kLogical.contains(t);
  return kPairs.contains(t);
}

TEST(Operations, GoWithTheTypesOfTheStandardOnly) {
  std::size_t types = 0;
  for (std::uintptr_t constant = 0; constant < kPredefinedHandles; ++constant) {
    const Datatype* type = datatype_handles.find(constant);
    if (!type) continue;
    ++types;
    for (const MPI_Op o : kOps)
      EXPECT_EQ(op(o).allows(*type), allowed(o, reinterpret_cast<MPI_Datatype>(constant)))
          << type->name << " " << o;
  }
  EXPECT_EQ(types, 70u);
  for (const MPI_Op o : kOps) {
    EXPECT_FALSE(op(o).allows(*make_contiguous(1, datatype(MPI_INT))));
    EXPECT_TRUE(op(o).commutative());
  }
}

// ---- what they compute -------------------------------------------------------------------------

template <class T>
std::vector<T> apply(MPI_Op o, MPI_Datatype type, const std::vector<T>& in, std::vector<T> inout) {
  op(o).apply(in.data(), inout.data(), static_cast<MPI_Count>(in.size()), type);
  return inout;
}

template <class T, class Function>
void check(MPI_Op o, MPI_Datatype type, const std::vector<T>& values, Function expected) {
  std::vector<T> in, inout, result;
  for (const T a : values)
    for (const T b : values) {
      in.push_back(a);
      inout.push_back(b);
      result.push_back(static_cast<T>(expected(a, b)));
    }
  EXPECT_EQ(apply(o, type, in, inout), result) << datatype(type).name << " " << o;
}

template <class T>
void check_integers(MPI_Datatype type) {
  using Limits = std::numeric_limits<T>;
  const std::vector<T> values{0, 1, 2, 3, 77, static_cast<T>(-5), Limits::min(), Limits::max()};
  using U = std::make_unsigned_t<T>;
  const auto wide = [](T v) { return static_cast<std::uint64_t>(static_cast<U>(v)); };
  check(MPI_SUM, type, values, [&](T a, T b) { return static_cast<U>(wide(a) + wide(b)); });
  check(MPI_PROD, type, values, [&](T a, T b) { return static_cast<U>(wide(a) * wide(b)); });
  check(MPI_MIN, type, values, [](T a, T b) { return std::min(a, b); });
  check(MPI_MAX, type, values, [](T a, T b) { return std::max(a, b); });
  check(MPI_BAND, type, values, [](T a, T b) { return a & b; });
  check(MPI_BOR, type, values, [](T a, T b) { return a | b; });
  check(MPI_BXOR, type, values, [](T a, T b) { return a ^ b; });
  check(MPI_LAND, type, values, [](T a, T b) { return a && b; });
  check(MPI_LOR, type, values, [](T a, T b) { return a || b; });
  check(MPI_LXOR, type, values, [](T a, T b) { return !a != !b; });
}

TEST(Operations, OnIntegersOfEverySizeWrapAround) {
  check_integers<std::int8_t>(MPI_SIGNED_CHAR);
  check_integers<std::int8_t>(MPI_INTEGER1);
  check_integers<std::int8_t>(MPI_CHAR);
  check_integers<std::int8_t>(MPI_CHARACTER);
  check_integers<std::uint8_t>(MPI_UNSIGNED_CHAR);
  check_integers<short>(MPI_SHORT);
  check_integers<unsigned short>(MPI_UNSIGNED_SHORT);
  check_integers<int>(MPI_INT);
  check_integers<int>(MPI_INTEGER);
  check_integers<unsigned>(MPI_UNSIGNED);
  check_integers<long>(MPI_LONG);
  check_integers<unsigned long>(MPI_UNSIGNED_LONG);
  check_integers<long long>(MPI_LONG_LONG);
  check_integers<MPI_Aint>(MPI_AINT);
  check_integers<std::uint64_t>(MPI_UINT64_T);
}

template <class T>
void check_floating(MPI_Datatype type) {
  const std::vector<T> values{0, 1, -1.5, 0.1f, 1e20f, -1e-20f};
  check(MPI_SUM, type, values, [](T a, T b) -> T { return a + b; });
  check(MPI_PROD, type, values, [](T a, T b) -> T { return a * b; });
  check(MPI_MIN, type, values, [](T a, T b) { return std::min(a, b); });
  check(MPI_MAX, type, values, [](T a, T b) { return std::max(a, b); });
}

TEST(Operations, OnFloatingPointNumbers) {
  check_floating<float>(MPI_FLOAT);
  check_floating<float>(MPI_REAL4);
  check_floating<double>(MPI_DOUBLE);
  check_floating<double>(MPI_DOUBLE_PRECISION);
  check_floating<long double>(MPI_LONG_DOUBLE);
}

template <class T>
void check_complex(MPI_Datatype type) {
  using C = std::complex<T>;
  const std::vector<C> values{{0, 0}, {1, 0}, {0, 1}, {-2, 3}, {5, -7}};
  check(MPI_SUM, type, values, [](C a, C b) { return a + b; });
  check(MPI_PROD, type, values, [](C a, C b) { return a * b; });
}

TEST(Operations, OnComplexNumbers) {
  check_complex<float>(MPI_COMPLEX);
  check_complex<double>(MPI_C_DOUBLE_COMPLEX);
  check_complex<long double>(MPI_CXX_LONG_DOUBLE_COMPLEX);
}

TEST(Operations, OnLogicalsGiveOneOrZero) {
  const std::vector<int> values{0, 1, -1, 256};  // whatever is not zero is true
  check(MPI_LAND, MPI_LOGICAL, values, [](int a, int b) { return a && b; });
  check(MPI_LOR, MPI_LOGICAL4, values, [](int a, int b) { return a || b; });
  check(MPI_LXOR, MPI_LOGICAL, values, [](int a, int b) { return !a != !b; });
  const std::vector<std::uint8_t> bools{0, 1};
  check(MPI_LAND, MPI_C_BOOL, bools, [](int a, int b) { return a && b; });
  check(MPI_LXOR, MPI_CXX_BOOL, bools, [](int a, int b) { return a != b; });
}

TEST(Operations, LongLoopsAndUnalignedBuffers) {
  for (const std::size_t count : {1u, 7u, 64u, 1003u}) {
    std::vector<std::byte> in(count * 8 + 3), inout(count * 8 + 5);
    for (std::size_t i = 0; i < count; ++i) {
      const double a = static_cast<double>(i), b = 0.5;
      std::memcpy(in.data() + 3 + 8 * i, &a, 8);
      std::memcpy(inout.data() + 5 + 8 * i, &b, 8);
    }
    op(MPI_SUM).apply(in.data() + 3, inout.data() + 5, static_cast<MPI_Count>(count), MPI_DOUBLE);
    for (std::size_t i = 0; i < count; ++i) {
      double sum;
      std::memcpy(&sum, inout.data() + 5 + 8 * i, 8);
      ASSERT_EQ(sum, static_cast<double>(i) + 0.5);
    }
  }
}

// ---- pairs -------------------------------------------------------------------------------------

template <class V, class I>
void check_pairs(MPI_Datatype type) {
  struct P {
    V value;
    I index;
  };
  struct Case {
    P in, inout, least, greatest;
  };
  const Case kCases[] = {{{1, 5}, {2, 3}, {1, 5}, {2, 3}},
                         {{2, 5}, {1, 3}, {1, 3}, {2, 5}},
                         {{4, 5}, {4, 3}, {4, 3}, {4, 3}},
                         {{4, 3}, {4, 5}, {4, 3}, {4, 3}},
                         {{-4, 0}, {4, 0}, {-4, 0}, {4, 0}}};
  for (const MPI_Op o : {MPI_MINLOC, MPI_MAXLOC}) {
    for (const Case& c : kCases) {
      P a[2], b[2];
      std::memset(a, 0x11, sizeof a);
      std::memset(b, 0x77, sizeof b);
      for (int i = 0; i < 2; ++i) {
        std::memcpy(&a[i].value, &c.in.value, sizeof(V));
        a[i].index = c.in.index;
        std::memcpy(&b[i].value, &c.inout.value, sizeof(V));
        b[i].index = c.inout.index;
      }
      std::byte before[sizeof b];
      std::memcpy(before, b, sizeof b);
      op(o).apply(a, b, 2, type);
      const P& expected = o == MPI_MINLOC ? c.least : c.greatest;
      for (const P& p : b) {
        EXPECT_EQ(p.value, expected.value) << datatype(type).name;
        EXPECT_EQ(p.index, expected.index) << datatype(type).name;
      }
      // Padding is the program's.
      const std::size_t end = offsetof(P, index) + sizeof(I);
      EXPECT_EQ(std::memcmp(reinterpret_cast<std::byte*>(b) + end, before + end, sizeof(P) - end),
                0);
    }
  }
}

TEST(Operations, LocationsTakeTheLowerIndexOfEqualValues) {
  check_pairs<float, int>(MPI_FLOAT_INT);
  check_pairs<double, int>(MPI_DOUBLE_INT);
  check_pairs<long, int>(MPI_LONG_INT);
  check_pairs<int, int>(MPI_2INT);
  check_pairs<short, int>(MPI_SHORT_INT);
  check_pairs<long double, int>(MPI_LONG_DOUBLE_INT);
  check_pairs<float, float>(MPI_2REAL);
  check_pairs<double, double>(MPI_2DOUBLE_PRECISION);
  check_pairs<int, int>(MPI_2INTEGER);
}

// ---- user functions ----------------------------------------------------------------------------

struct UserCalls {
  std::vector<int> lengths;
  std::vector<MPI_Datatype> types;
  std::vector<std::uintptr_t> addresses;
};
UserCalls user_calls;

void record(void* in, void*, int* length, MPI_Datatype* type) {
  user_calls.lengths.push_back(*length);
  user_calls.types.push_back(*type);
  user_calls.addresses.push_back(reinterpret_cast<std::uintptr_t>(in));
  *length = -1;  // theirs to spoil
  *type = MPI_DATATYPE_NULL;
}

TEST(UserOperations, GetCountsThatFitAnIntAndTheHandleOfTheType) {
  user_calls = {};
  const auto type = make_resized(datatype(MPI_BYTE), 0, 2);
  const auto handle = reinterpret_cast<MPI_Datatype>(datatype_handles.add(type));
  const auto user = make<Op>(record, false);
  EXPECT_FALSE(user->commutative());
  EXPECT_FALSE(user->predefined());
  EXPECT_TRUE(user->allows(*type));
  user->apply(reinterpret_cast<void*>(1 << 20), nullptr, MPI_Count{INT32_MAX} + 5, handle);
  EXPECT_EQ(user_calls.lengths, (std::vector{INT32_MAX, 5}));
  EXPECT_EQ(user_calls.types, (std::vector{handle, handle}));
  EXPECT_EQ(user_calls.addresses[1] - user_calls.addresses[0], 2ull * INT32_MAX);
  user->apply(nullptr, nullptr, 0, handle);
  EXPECT_EQ(user_calls.lengths.size(), 2u) << "nothing to reduce, nothing to call";
  datatype_handles.remove(reinterpret_cast<std::uintptr_t>(handle));
}

}  // namespace
}  // namespace viaduct::mpi
