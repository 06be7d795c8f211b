// Thousands of random nested datatypes against their type maps.
#include <numeric>

#include "tests/mpi/core/predefined.hpp"
#include "tests/mpi/core/reference_type.hpp"
#include "tests/support/effort.hpp"

namespace viaduct::mpi {
namespace {

using reference::Both;
using reference::RandomTypes;
using Places = std::vector<MPI_Count>;

constexpr unsigned kSeeds = test::effort(6000);

// Memory around a buffer, so that items may reach to both sides of it.
class Arena {
 public:
  explicit Arena(const Places& places) {
    if (!places.empty()) {
      low_ = *std::min_element(places.begin(), places.end()) - kMargin;
      const MPI_Count high = *std::max_element(places.begin(), places.end()) + kMargin;
      memory.resize(static_cast<std::size_t>(high - low_));
    }
    for (std::size_t i = 0; i < memory.size(); ++i) memory[i] = static_cast<std::byte>(i * 37 + 11);
  }
  void* buffer() { return memory.data() - low_; }
  std::byte& operator[](MPI_Count place) { return memory[static_cast<std::size_t>(place - low_)]; }

  std::vector<std::byte> memory;

 private:
  static constexpr MPI_Count kMargin = 24;
  MPI_Count low_ = 0;
};

// Cuts [0, bytes) into random pieces.
std::vector<std::pair<MPI_Count, MPI_Count>> cut(RandomTypes& random, MPI_Count bytes) {
  std::vector<std::pair<MPI_Count, MPI_Count>> pieces;
  const int most = random.between(1, 3) == 1 ? 3 : static_cast<int>(bytes) + 1;
  for (MPI_Count at = 0; at < bytes;) {
    const MPI_Count length = std::min<MPI_Count>(random.between(0, most), bytes - at);
    pieces.emplace_back(at, length);
    at += length;
  }
  return pieces;
}

void check_bounds(const Both& type) {
  EXPECT_EQ(type.real->size(), type.model.size());
  EXPECT_EQ(type.real->lb(), type.model.lb());
  EXPECT_EQ(type.real->ub(), type.model.ub());
  EXPECT_EQ(type.real->true_lb(), type.model.true_lb());
  EXPECT_EQ(type.real->true_ub(), type.model.true_ub());
}

void check_contiguous(const Both& type) {
  const Places places = type.model.places(3);
  Places expected(places.size());
  std::iota(expected.begin(), expected.end(), type.model.true_lb());
  EXPECT_EQ(type.real->contiguous(), places == expected);
}

void check_pack(const Both& type, MPI_Count count, RandomTypes& random) {
  const Places places = type.model.places(count);
  Arena arena(places);
  std::vector<std::byte> expected, packed(places.size());
  for (const MPI_Count p : places) expected.push_back(arena[p]);
  type.real->pack(arena.buffer(), 0, packed);
  ASSERT_EQ(packed, expected);

  std::fill(packed.begin(), packed.end(), std::byte{0});
  for (const auto& [at, length] : cut(random, static_cast<MPI_Count>(places.size())))
    type.real->pack(
        arena.buffer(), at,
        std::span(packed).subspan(static_cast<std::size_t>(at), static_cast<std::size_t>(length)));
  ASSERT_EQ(packed, expected) << "in pieces";
}

// Pieces of a message may arrive in any order; where bytes overlap, only the right order is
// defined.
void check_unpack(const Both& type, MPI_Count count, RandomTypes& random) {
  const Places places = type.model.places(count);
  Arena arena(places), expected(places);
  std::vector<std::byte> packed(places.size());
  for (std::size_t i = 0; i < packed.size(); ++i) {
    packed[i] = static_cast<std::byte>(random.between(0, 255));
    expected[places[i]] = packed[i];
  }
  auto pieces = cut(random, static_cast<MPI_Count>(places.size()));
  if (std::set(places.begin(), places.end()).size() == places.size())
    std::shuffle(pieces.begin(), pieces.end(), std::mt19937(1));
  for (const auto& [at, length] : pieces)
    type.real->unpack(arena.buffer(), at,
                      std::span<const std::byte>(packed).subspan(static_cast<std::size_t>(at),
                                                                 static_cast<std::size_t>(length)));
  ASSERT_EQ(arena.memory, expected.memory);
}

// Strips name the same bytes in the same order, and blocks that continue each other are one.
void check_strips(const Both& type, MPI_Count count, RandomTypes& random) {
  const Places places = type.model.places(count);
  for (const auto& [at, length] : cut(random, static_cast<MPI_Count>(places.size()))) {
    std::vector<Strip> strips;
    type.real->add_strips(at, at + length, strips);
    Places named;
    for (const Strip& strip : strips)
      for (MPI_Count block = 0; block < strip.count; ++block)
        for (MPI_Count byte = 0; byte < strip.length; ++byte)
          named.push_back(strip.displacement + block * strip.stride + byte);
    const auto first = places.begin() + at;
    ASSERT_EQ(named, Places(first, first + length));
    if (type.real->contiguous()) {
      ASSERT_LE(strips.size(), 1u);
    }
  }
}

void check_elements(const Both& type) {
  std::vector<MPI_Count> ends{0};  // of the elements of two items in the packed form
  for (int item = 0; item < 2; ++item)
    for (const reference::Entry& e : type.model.map)
      if (e.size > 0) ends.push_back(ends.back() + e.size);
  MPI_Count element = 0;
  for (MPI_Count bytes = 0; bytes <= ends.back(); ++bytes) {
    const bool whole = ends[static_cast<std::size_t>(element)] == bytes;
    ASSERT_EQ(type.real->elements(bytes), whole ? element : MPI_UNDEFINED) << bytes;
    if (!whole) continue;
    ASSERT_EQ(type.real->bytes_of(element), bytes);
    ++element;
  }
  if (type.model.size() == 0) {
    EXPECT_EQ(type.real->elements(1), MPI_UNDEFINED);
  }
}

TEST(RandomDatatypes, AreWhatTheirTypeMapsSay) {
  std::size_t irregular = 0, sized = 0;
  for (unsigned seed = 1; seed <= kSeeds; ++seed) {
    SCOPED_TRACE(seed);
    RandomTypes random(seed);
    const Both type = random.make(random.between(1, 5));
    const MPI_Count count = random.between(0, 4);
    sized += type.model.size() > 0;
    irregular += !type.real->contiguous();
    check_bounds(type);
    check_contiguous(type);
    check_pack(type, count, random);
    check_unpack(type, count, random);
    check_strips(type, count, random);
    check_elements(type);
    if (HasFailure()) return;
  }
  EXPECT_GT(irregular, kSeeds / 4);  // the generator makes what it should
  EXPECT_GT(sized, kSeeds / 3);
}

}  // namespace
}  // namespace viaduct::mpi
