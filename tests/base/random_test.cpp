#include "drivers/base/random.hpp"

#include <gtest/gtest.h>

#include <set>

namespace viaduct::base {
namespace {

// From the paper's reference implementation: the bytes 0 to 7 under the key of the bytes 0 to 15.
TEST(SipHash, IsThatOfItsAuthors) {
  EXPECT_EQ(siphash({0x0706050403020100, 0x0f0e0d0c0b0a0908}, 0x0706050403020100),
            0x93f5f5799a932462u);
}

// The first numbers of its authors' implementation for the seed 1234567.
TEST(SeededRandom, IsThatOfItsAuthors) {
  SeededRandom random(1234567);
  EXPECT_EQ(random.next(), 6457827717110365317u);
  EXPECT_EQ(random.next(), 3203168211198807973u);
  EXPECT_EQ(random.next(), 9817491932198370423u);
}

TEST(RandomWord, IsAnotherEachTime) {
  EXPECT_NE(random_word(), random_word());
}

TEST(RandomBits, DifferFromEachOtherAndFromAnothers) {
  RandomBits one, other;
  std::set<std::uint64_t> seen;
  for (int i = 0; i < 1000; ++i) {
    seen.insert(one.next());
    seen.insert(other.next());
  }
  EXPECT_EQ(seen.size(), 2000u);
}

}  // namespace
}  // namespace viaduct::base
