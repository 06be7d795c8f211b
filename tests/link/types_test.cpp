#include "drivers/link/types.hpp"

#include <gtest/gtest.h>

namespace viaduct::link {
namespace {

TEST(Address, TextIsParsedBack) {
  const Address address{{0x02, 0x00, 0xab, 0xcd, 0xef, 0x7f}};
  EXPECT_EQ(address.text(), "02:00:ab:cd:ef:7f");
  EXPECT_EQ(Address::parse(address.text()), address);
  EXPECT_EQ(Address::parse("02:00:AB:CD:EF:7F"), address);
  EXPECT_EQ(Address{}.text(), "00:00:00:00:00:00");
}

TEST(Address, OnlyTheExactFormIsAccepted) {
  for (const auto* text :
       {"", ":", "02", "02:00:00:00:00", "02:00:00:00:00:", "02:00:00:00:00:1", "2:0:0:0:0:1",
        "02:00:00:00:00:001", "02:00:00:00:00:0g", "02-00-00-00-00-01", " 02:00:00:00:00:01",
        "02:00:00:00:00:01 ", "+2:00:00:00:00:01", "02:00:00:00:00:0x", "02:00:00:00:00:01:02",
        "0200:00:00:00:01:", ":02:00:00:00:00:0"})
    EXPECT_EQ(Address::parse(text), std::nullopt) << '"' << text << '"';
  EXPECT_EQ(Address::parse(std::string_view("02:00:00:00:00:0\0", 17)), std::nullopt);
}

TEST(Sequence, ComparesAcrossTheWrap) {
  EXPECT_TRUE(sequence_before(1, 2));
  EXPECT_FALSE(sequence_before(2, 1));
  EXPECT_FALSE(sequence_before(7, 7));
  EXPECT_TRUE(sequence_before(0xffffffffu, 0));
  EXPECT_TRUE(sequence_before(0xfffffff0u, 0x10));
  EXPECT_FALSE(sequence_before(0x10, 0xfffffff0u));
}

}  // namespace
}  // namespace viaduct::link
