// Datatypes where it hurts: parts of arrays, bounds, sizes beyond an int, types that must stay
// small.
#include <chrono>
#include <numeric>
#include <random>

#include "libmpi_lite/core/error.hpp"
#include "tests/mpi/core/predefined.hpp"

namespace viaduct::mpi {
namespace {

Datatype& of(MPI_Datatype type) {
  return datatype(type);
}

template <class T>
std::vector<T> packed(const Datatype& type, const void* buffer, MPI_Count count = 1) {
  std::vector<T> out(static_cast<std::size_t>(count * type.size()) / sizeof(T));
  type.pack(buffer, 0, std::as_writable_bytes(std::span(out)));
  return out;
}

std::vector<int> numbered(std::size_t size) {
  std::vector<int> array(size);
  std::iota(array.begin(), array.end(), 0);
  return array;
}

TEST(Datatypes, PredefinedTypesAreAsBigAsInTheLanguages) {
  const std::tuple<MPI_Datatype, MPI_Count, MPI_Count> kSizes[] = {{MPI_CHAR, 1, 1},
                                                                   {MPI_LONG, 8, 8},
                                                                   {MPI_LONG_DOUBLE, 16, 16},
                                                                   {MPI_FLOAT_INT, 8, 8},
                                                                   {MPI_DOUBLE_INT, 12, 16},
                                                                   {MPI_LONG_INT, 12, 16},
                                                                   {MPI_2INT, 8, 8},
                                                                   {MPI_SHORT_INT, 6, 8},
                                                                   {MPI_LONG_DOUBLE_INT, 20, 32},
                                                                   {MPI_2REAL, 8, 8},
                                                                   {MPI_2DOUBLE_PRECISION, 16, 16},
                                                                   {MPI_COMPLEX32, 32, 32},
                                                                   {MPI_LOGICAL, 4, 4},
                                                                   {MPI_WCHAR, 4, 4},
                                                                   {MPI_LB, 0, 0},
                                                                   {MPI_UB, 0, 0},
                                                                   {MPI_PACKED, 1, 1}};
  for (const auto& [type, size, extent] : kSizes) {
    EXPECT_EQ(of(type).size(), size) << of(type).name;
    EXPECT_EQ(of(type).extent(), extent) << of(type).name;
    EXPECT_TRUE(of(type).committed() && of(type).predefined());
    EXPECT_EQ(of(type).constant(), type);
  }
  EXPECT_EQ(datatype_handles.find(reinterpret_cast<std::uintptr_t>(MPI_DATATYPE_NULL)), nullptr);
  EXPECT_EQ(datatype_handles.find(reinterpret_cast<std::uintptr_t>(MPI_REAL2)), nullptr);
}

TEST(Datatypes, MarkersOfMpi1StickAndMoveBoundsOutwardsOnly) {
  // The example of MPI-1.1, section 3.12.3: an explicit bound survives in types made of the type.
  Datatype* const parts[] = {&of(MPI_LB), &of(MPI_INT), &of(MPI_UB)};
  const int ones[] = {1, 1, 1};
  const MPI_Aint places[] = {-3, 0, 6};
  const auto type1 = make_struct(ones, places, parts);
  EXPECT_EQ(type1->lb(), -3);
  EXPECT_EQ(type1->ub(), 6);
  EXPECT_EQ(type1->extent(), 9);
  const auto type2 = make_contiguous(2, *type1);
  EXPECT_EQ(type2->lb(), -3);
  EXPECT_EQ(type2->ub(), 15);
  EXPECT_EQ(type2->true_lb(), 0);
  EXPECT_EQ(type2->true_ub(), 13);
  // Resizing puts old bounds out of force (section 5.1.7).
  const auto type3 = make_contiguous(2, *make_resized(*type2, 0, 4));
  EXPECT_EQ(type3->lb(), 0);
  EXPECT_EQ(type3->ub(), 8);
}

TEST(Datatypes, ExtentsAreMultiplesOfTheStrictestAlignment) {
  Datatype* const parts[] = {&of(MPI_DOUBLE), &of(MPI_CHAR)};
  const int ones[] = {1, 1};
  const MPI_Aint places[] = {0, 8};
  const auto type = make_struct(ones, places, parts);
  EXPECT_EQ(type->extent(), 16);
  EXPECT_EQ(type->true_ub(), 9);
  EXPECT_FALSE(type->contiguous());
}

TEST(Datatypes, ComponentsLiveAsLongAsWhatIsMadeOfThem) {
  auto inner = make_vector(3, 1, 2, of(MPI_INT));
  const auto outer = make_contiguous(2, *inner);
  inner = nullptr;
  EXPECT_EQ(packed<int>(*outer, numbered(12).data()), (std::vector{0, 2, 4, 5, 7, 9}));
  EXPECT_EQ(outer->shape().types[0]->shape().combiner, MPI_COMBINER_VECTOR);
}

TEST(Datatypes, DuplicatesAreNotPredefined) {
  const auto dup = make_dup(of(MPI_INT));
  EXPECT_TRUE(dup->committed());
  EXPECT_FALSE(dup->predefined());
  EXPECT_EQ(dup->name, "");
  EXPECT_FALSE(make_dup(*make_contiguous(2, *dup))->committed());
}

TEST(Datatypes, BufferAtBottomWithAbsoluteAddresses) {
  const std::vector<int> a = numbered(4), b = numbered(9);
  const MPI_Aint places[] = {reinterpret_cast<MPI_Aint>(b.data() + 7),
                             reinterpret_cast<MPI_Aint>(a.data() + 1)};
  const int lengths[] = {2, 3};
  const auto type = make_hindexed(lengths, places, of(MPI_INT));
  EXPECT_EQ(packed<int>(*type, MPI_BOTTOM), (std::vector{7, 8, 1, 2, 3}));
}

// ---- arrays ------------------------------------------------------------------------------------

TEST(Subarrays, HaveTheElementsOfTheirRangeInOrder) {
  const int sizes[] = {4, 5, 6}, subsizes[] = {2, 3, 4}, starts[] = {1, 2, 1};
  const auto array = numbered(4 * 5 * 6);
  for (const int order : {MPI_ORDER_C, MPI_ORDER_FORTRAN}) {
    const auto type = make_subarray(sizes, subsizes, starts, order, of(MPI_INT));
    std::vector<int> expected;
    const bool c = order == MPI_ORDER_C;
    for (int slow = 0; slow < subsizes[c ? 0 : 2]; ++slow)
      for (int middle = 0; middle < subsizes[1]; ++middle)
        for (int fast = 0; fast < subsizes[c ? 2 : 0]; ++fast) {
          const int s = slow + starts[c ? 0 : 2], m = middle + starts[1],
                    f = fast + starts[c ? 2 : 0];
          expected.push_back((s * sizes[1] + m) * sizes[c ? 2 : 0] + f);
        }
    EXPECT_EQ(packed<int>(*type, array.data()), expected);
    EXPECT_EQ(type->lb(), 0);
    EXPECT_EQ(type->extent(), 4 * 5 * 6 * 4);
  }
}

int owner(int index, int size, int kind, int argument, int processes) {
  if (kind == MPI_DISTRIBUTE_NONE) return 0;
  const bool standard = argument == MPI_DISTRIBUTE_DFLT_DARG;
  if (kind == MPI_DISTRIBUTE_BLOCK)
    return index / (standard ? (size + processes - 1) / processes : argument);
  return index / (standard ? 1 : argument) % processes;
}

// Each process gets what the definition of the distribution says, in the order of the array.
void check_distribution(const Distribution& d, int order) {
  const std::size_t dims = d.sizes.size();
  int elements = 1, processes = 1;
  for (std::size_t i = 0; i < dims; ++i) {
    elements *= d.sizes[i];
    processes *= d.processes[i];
  }
  std::vector<std::vector<int>> expected(static_cast<std::size_t>(processes));
  for (int e = 0; e < elements; ++e) {
    std::vector<int> index(dims);
    for (std::size_t step = 0, rest = static_cast<std::size_t>(e); step < dims; ++step) {
      const std::size_t dim = order == MPI_ORDER_C ? dims - 1 - step : step;
      const auto size = static_cast<std::size_t>(d.sizes[dim]);
      index[dim] = static_cast<int>(rest % size);
      rest /= size;
    }
    int rank = 0;
    for (std::size_t i = 0; i < dims; ++i)
      rank = rank * d.processes[i] +
             owner(index[i], d.sizes[i], d.kinds[i], d.arguments[i], d.processes[i]);
    expected[static_cast<std::size_t>(rank)].push_back(e);
  }
  const auto array = numbered(static_cast<std::size_t>(elements));
  for (int rank = 0; rank < processes; ++rank) {
    const auto type = make_darray(processes, rank, d, order, of(MPI_INT));
    EXPECT_EQ(packed<int>(*type, array.data()), expected[static_cast<std::size_t>(rank)]) << rank;
    EXPECT_EQ(type->lb(), 0);
    EXPECT_EQ(type->extent(), elements * 4);
  }
}

TEST(DistributedArrays, AreWhatTheDistributionSays) {
  constexpr int kDefault = MPI_DISTRIBUTE_DFLT_DARG;
  std::mt19937 random(7);
  const auto between = [&](int low, int high) {
    return std::uniform_int_distribution<int>(low, high)(random);
  };
  for (int round = 0; round < 500; ++round) {
    SCOPED_TRACE(round);
    const int dims = between(1, 3);
    std::vector<int> sizes, kinds, arguments, processes;
    for (int i = 0; i < dims; ++i) {
      sizes.push_back(between(1, 9));
      kinds.push_back(between(MPI_DISTRIBUTE_NONE, MPI_DISTRIBUTE_CYCLIC));
      processes.push_back(kinds.back() == MPI_DISTRIBUTE_NONE ? 1 : between(1, 4));
      const int least =
          kinds.back() == MPI_DISTRIBUTE_BLOCK ? (sizes.back() - 1) / processes.back() + 1 : 1;
      arguments.push_back(between(0, 2) == 0 ? kDefault : between(least, least + 3));
    }
    check_distribution({sizes, kinds, arguments, processes},
                       between(0, 1) ? MPI_ORDER_C : MPI_ORDER_FORTRAN);
    if (HasFailure()) return;
  }
}

// ---- large types -------------------------------------------------------------------------------

TEST(LargeTypes, SizesAreWiderThanAnInt) {
  const auto big = make_contiguous(INT32_MAX, *make_contiguous(1000, of(MPI_DOUBLE)));
  EXPECT_EQ(big->size(), MPI_Count{INT32_MAX} * 8000);
  EXPECT_TRUE(big->contiguous());
  EXPECT_EQ(big->elements(big->size() + 8), MPI_Count{INT32_MAX} * 1000 + 1);
}

TEST(LargeTypes, WhatNoNumberCanHoldIsRefused) {
  const auto big = make_contiguous(INT32_MAX, *make_contiguous(INT32_MAX, of(MPI_BYTE)));
  EXPECT_THROW((void)make_contiguous(8, *big), Error);
  EXPECT_THROW((void)make_hvector(3, 1, INT64_MAX / 2, of(MPI_BYTE)), Error);
  EXPECT_THROW((void)make_resized(of(MPI_INT), INT64_MAX, 2), Error);
  EXPECT_THROW((void)make_vector(2, 1, INT32_MAX, *make_resized(of(MPI_INT), 0, INT64_MAX / 2)),
               Error);
  const int sizes[] = {INT32_MAX, INT32_MAX, INT32_MAX}, ones[] = {1, 1, 1}, zeros[] = {0, 0, 0};
  EXPECT_THROW((void)make_subarray(sizes, ones, zeros, MPI_ORDER_C, of(MPI_INT)), Error);
}

TEST(LargeTypes, RegularTypesStaySmall) {
  constexpr int kMillions = 50'000'000;
  const auto vector = make_vector(kMillions, 1, 2, of(MPI_INT));
  EXPECT_EQ(vector->type_map().pieces().size(), 1u);
  std::vector<int> places(1'000'000);
  for (std::size_t i = 0; i < places.size(); ++i) places[i] = static_cast<int>(3 * i);
  const auto indexed = make_indexed_block(1, places, of(MPI_INT));
  EXPECT_EQ(indexed->type_map().pieces().size(), 1u);
  const auto columns = make_hvector(1000, 1, 4, *make_vector(1000, 1, 1000, of(MPI_INT)));
  EXPECT_LE(columns->type_map().pieces().size(), 1u);
}

// One piece for each item in its place, not one for each of its fields.
TEST(LargeTypes, PlacesOfStructsDoNotRepeatTheirFields) {
  constexpr std::array<int, 4> kOnes{1, 1, 1, 1};
  constexpr std::array<MPI_Aint, 4> kFields{0, 8, 12, 16};
  Datatype* const parts[] = {&of(MPI_DOUBLE), &of(MPI_FLOAT), &of(MPI_INT), &of(MPI_LONG)};
  const auto item = make_struct(kOnes, kFields, parts);
  std::vector<int> places(1000);
  for (std::size_t i = 0; i < places.size(); ++i) places[i] = static_cast<int>(i * i);
  const auto indexed = make_indexed_block(1, places, *item);
  EXPECT_LE(indexed->type_map().pieces().size(), places.size());
  EXPECT_EQ(indexed->elements(indexed->size()), 4000);
  EXPECT_EQ(indexed->elements(24 + 12), 6);
}

// Cutting a message into pieces must not cost a search from its beginning for each.
TEST(LargeTypes, SmallPiecesOfIrregularTypesAreFoundQuickly) {
  constexpr std::size_t kBlocks = 1'000'000;
  std::mt19937 random(5);
  std::vector<int> places(kBlocks), lengths(kBlocks);
  for (std::size_t b = 0; b < kBlocks; ++b) {
    lengths[b] = 1 + static_cast<int>(random() % 3);
    places[b] = static_cast<int>(5 * b + random() % 2);
  }
  const auto type = make_indexed(lengths, places, of(MPI_INT));
  const auto array = numbered(5 * kBlocks + 8);
  const auto whole = packed<std::byte>(*type, array.data());
  std::vector<std::byte> pieces(whole.size());
  const auto start = std::chrono::steady_clock::now();
  for (std::size_t at = 0; at < pieces.size();) {
    const std::size_t length = std::min<std::size_t>(61, pieces.size() - at);
    type->pack(array.data(), static_cast<MPI_Count>(at), std::span(pieces).subspan(at, length));
    at += length;
  }
  EXPECT_EQ(pieces, whole);
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(20));
}

}  // namespace
}  // namespace viaduct::mpi
