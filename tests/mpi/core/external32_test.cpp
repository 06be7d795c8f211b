// "external32": the bytes that the standard's table demands (MPI 5.0, section 14.5.2).
#include "libmpi_lite/core/data/external32.hpp"

#include <cmath>
#include <limits>

#include "tests/mpi/core/predefined.hpp"

namespace viaduct::mpi {
namespace {

using Octets = std::vector<unsigned>;

Octets external(const void* buffer, MPI_Count count, const Datatype& type) {
  std::vector<std::byte> out(static_cast<std::size_t>(count * type.type_map().external_size()));
  pack_external32(buffer, count, type, out.data());
  Octets octets;
  for (const std::byte b : out) octets.push_back(static_cast<unsigned>(b));
  return octets;
}

template <class T>
T there_and_back(T value, MPI_Datatype type) {
  const Datatype& t = datatype(type);
  std::vector<std::byte> bytes(static_cast<std::size_t>(t.type_map().external_size()));
  pack_external32(&value, 1, t, bytes.data());
  T back{};
  unpack_external32(bytes.data(), &back, 1, t);
  return back;
}

TEST(External32, NumbersAreBigEndianInTheSizesOfTheTable) {
  const int i = 0x01020304;
  EXPECT_EQ(external(&i, 1, datatype(MPI_INT)), (Octets{1, 2, 3, 4}));
  const long l = -2;
  EXPECT_EQ(external(&l, 1, datatype(MPI_LONG)), (Octets{255, 255, 255, 254}));
  const std::int64_t wide = -2;
  EXPECT_EQ(external(&wide, 1, datatype(MPI_INT64_T)),
            (Octets{255, 255, 255, 255, 255, 255, 255, 254}));
  const wchar_t w = L'\x20ac';
  EXPECT_EQ(external(&w, 1, datatype(MPI_WCHAR)), (Octets{0x20, 0xac}));
  const double d = 1.5;
  EXPECT_EQ(external(&d, 1, datatype(MPI_DOUBLE)), (Octets{0x3f, 0xf8, 0, 0, 0, 0, 0, 0}));
  const float c[] = {1.0f, -2.0f};
  EXPECT_EQ(external(c, 1, datatype(MPI_C_FLOAT_COMPLEX)),
            (Octets{0x3f, 0x80, 0, 0, 0xc0, 0, 0, 0}));
  const long double q = -1.5L;
  EXPECT_EQ(external(&q, 1, datatype(MPI_LONG_DOUBLE)),
            (Octets{0xbf, 0xff, 0x80, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0}));
  const struct {
    double value;
    int index;
  } pair{1.5, 7};
  EXPECT_EQ(external(&pair, 1, datatype(MPI_DOUBLE_INT)),
            (Octets{0x3f, 0xf8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 7}));
}

TEST(External32, ValuesComeBack) {
  EXPECT_EQ(there_and_back(-123456789L, MPI_LONG), -123456789L);
  EXPECT_EQ(there_and_back(4000000000UL, MPI_UNSIGNED_LONG), 4000000000UL);
  EXPECT_EQ(there_and_back(std::int64_t{1} << 40, MPI_INT64_T), std::int64_t{1} << 40);
  EXPECT_EQ(there_and_back<short>(-5, MPI_SHORT), -5);
  EXPECT_EQ(there_and_back(0.1f, MPI_FLOAT), 0.1f);
  using Limits = std::numeric_limits<long double>;
  for (const long double v :
       {0.1L, Limits::max(), Limits::min(), Limits::denorm_min(), -0.0L, Limits::infinity()}) {
    EXPECT_EQ(there_and_back(v, MPI_LONG_DOUBLE), v);
    EXPECT_EQ(std::signbit(there_and_back(v, MPI_LONG_DOUBLE)), std::signbit(v));
  }
  EXPECT_TRUE(std::isnan(there_and_back(Limits::quiet_NaN(), MPI_LONG_DOUBLE)));
}

TEST(External32, DerivedTypesAreWalkedInOrder) {
  struct Mixed {
    char tag;
    int values[4];
    double weight;
  };
  const auto odd_values = make_vector(2, 1, 2, datatype(MPI_INT));
  Datatype* const parts[] = {&datatype(MPI_DOUBLE), &datatype(MPI_CHAR), odd_values.get()};
  const int ones[] = {1, 1, 1};
  const MPI_Aint places[] = {offsetof(Mixed, weight), offsetof(Mixed, tag),
                             offsetof(Mixed, values)};
  const auto record = make_struct(ones, places, parts);
  const auto type = make_resized(*record, 0, sizeof(Mixed));
  const Mixed items[2] = {{'a', {1, 2, 3, 4}, 1.5}, {'b', {5, 6, 7, 8}, -1.5}};
  EXPECT_EQ(external(items, 2, *type),
            (Octets{0x3f, 0xf8, 0, 0, 0, 0, 0, 0, 'a', 0, 0, 0, 1, 0, 0, 0, 3,
                    0xbf, 0xf8, 0, 0, 0, 0, 0, 0, 'b', 0, 0, 0, 5, 0, 0, 0, 7}));
  std::vector<std::byte> bytes(34);
  pack_external32(items, 2, *type, bytes.data());
  Mixed back[2] = {};
  unpack_external32(bytes.data(), back, 2, *type);
  EXPECT_EQ(back[1].tag, 'b');
  EXPECT_EQ(back[1].values[2], 7);
  EXPECT_EQ(back[1].values[1], 0) << "what is not in the type is not touched";
  EXPECT_EQ(back[0].weight, 1.5);
}

}  // namespace
}  // namespace viaduct::mpi
