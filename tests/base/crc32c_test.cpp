#include "drivers/base/crc32c.hpp"

#include <gtest/gtest.h>

#include <memory>
#include <random>
#include <vector>

namespace viaduct::base {
namespace {

using Bytes = std::vector<std::byte>;

// The definition, a bit at a time.
std::uint32_t reference(std::span<const std::byte> data, std::uint32_t crc = 0) {
  crc = ~crc;
  for (const std::byte byte : data) {
    crc ^= static_cast<std::uint32_t>(byte);
    for (int bit = 0; bit < 8; ++bit) crc = (crc >> 1) ^ ((crc & 1) != 0 ? 0x82f63b78u : 0);
  }
  return ~crc;
}

Bytes random_bytes(std::size_t size, unsigned seed) {
  std::mt19937 random(seed);
  Bytes bytes(size);
  for (auto& byte : bytes) byte = static_cast<std::byte>(random());
  return bytes;
}

// The way every caller goes is one more implementation.
std::vector<Crc32cImplementation> all() {
  std::vector<Crc32cImplementation> list{
      {"crc32c()", [] { return true; },
       [](const std::byte* d, std::size_t n, std::uint32_t c) { return crc32c(d, n, c); },
       [](std::byte* t, const std::byte* f, std::size_t n, std::uint32_t c) {
         return crc32c_copy(t, f, n, c);
       }}};
  for (const auto& implementation : crc32c_implementations()) list.push_back(implementation);
  return list;
}

class Crc32c : public testing::TestWithParam<Crc32cImplementation> {
 protected:
  void SetUp() override {
    if (!GetParam().usable()) GTEST_SKIP() << "this CPU has no " << GetParam().name;
  }
};

TEST_P(Crc32c, GivesTheVectorsOfRfc3720) {
  const auto crc = [](const Bytes& bytes) { return GetParam().crc(bytes.data(), bytes.size(), 0); };
  Bytes bytes(32, std::byte{0});
  EXPECT_EQ(crc(bytes), 0x8a9136aau);
  bytes.assign(32, std::byte{0xff});
  EXPECT_EQ(crc(bytes), 0x62a8ab43u);
  for (int i = 0; i < 32; ++i) bytes[i] = static_cast<std::byte>(i);
  EXPECT_EQ(crc(bytes), 0x46dd794eu);
  for (int i = 0; i < 32; ++i) bytes[i] = static_cast<std::byte>(31 - i);
  EXPECT_EQ(crc(bytes), 0x113fdb5cu);
  // An iSCSI SCSI Read (10) command PDU.
  bytes.assign(48, std::byte{0});
  for (const auto& [at, value] : {std::pair{0, 0x01},
                                  {1, 0xc0},
                                  {16, 0x14},
                                  {22, 0x04},
                                  {27, 0x14},
                                  {31, 0x18},
                                  {32, 0x28},
                                  {40, 0x02}})
    bytes[at] = static_cast<std::byte>(value);
  EXPECT_EQ(crc(bytes), 0xd9963a56u);
  const char* digits = "123456789";
  EXPECT_EQ(GetParam().crc(reinterpret_cast<const std::byte*>(digits), 9, 0), 0xe3069283u);
  EXPECT_EQ(GetParam().crc(nullptr, 0, 0), 0u);
}

// Exactly as much memory as is to be read or written, so that a sanitizer sees every byte too many.
TEST_P(Crc32c, AgreesWithTheDefinitionForEverySizeAndAlignment) {
  const Bytes source = random_bytes(400, 1);
  for (std::size_t size = 0; size <= 300; ++size)
    for (std::size_t shift = 0; shift < 9; ++shift) {
      const auto from = std::make_unique<std::byte[]>(shift + size);
      const auto to = std::make_unique<std::byte[]>(size + (8 - shift));
      std::copy_n(source.begin(), size, from.get() + shift);
      const std::uint32_t start = static_cast<std::uint32_t>(size * 2654435761u);
      const std::uint32_t expected = reference({source.data(), size}, start);
      ASSERT_EQ(GetParam().crc(from.get() + shift, size, start), expected) << size << '+' << shift;
      ASSERT_EQ(GetParam().copy(to.get() + (8 - shift), from.get() + shift, size, start), expected)
          << size << '+' << shift;
      ASSERT_EQ(std::memcmp(to.get() + (8 - shift), source.data(), size), 0);
    }
}

TEST_P(Crc32c, AgreesForLargeSizes) {
  const Bytes source = random_bytes(70000, 2);
  Bytes copy(source.size() + 8);
  for (std::size_t size : {511, 512, 513, 767, 768, 1023, 1472, 1486, 1500, 2303, 2304, 2305, 4607,
                           9000, 65535, 69999}) {
    const std::uint32_t expected = reference({source.data() + 1, size});
    EXPECT_EQ(GetParam().crc(source.data() + 1, size, 0), expected) << size;
    std::fill(copy.begin(), copy.end(), std::byte{0xee});
    EXPECT_EQ(GetParam().copy(copy.data() + 3, source.data() + 1, size, 0), expected) << size;
    EXPECT_EQ(std::memcmp(copy.data() + 3, source.data() + 1, size), 0);
    EXPECT_EQ(copy[2], std::byte{0xee});
    EXPECT_EQ(copy[size + 3], std::byte{0xee});
  }
}

TEST_P(Crc32c, MayBeContinuedAnywhere) {
  std::mt19937 random(3);
  for (int round = 0; round < 2000; ++round) {
    const Bytes bytes = random_bytes(random() % 2000, round);
    const std::uint32_t expected = reference(bytes);
    std::uint32_t crc = 0, copied = 0;
    Bytes copy(bytes.size());
    for (std::size_t at = 0; at < bytes.size();) {
      const std::size_t size = 1 + random() % (bytes.size() - at);
      crc = GetParam().crc(bytes.data() + at, size, crc);
      copied = GetParam().copy(copy.data() + at, bytes.data() + at, size, copied);
      at += size;
    }
    ASSERT_EQ(crc, expected);
    ASSERT_EQ(copied, expected);
    ASSERT_EQ(copy, bytes);
  }
}

INSTANTIATE_TEST_SUITE_P(Every, Crc32c, testing::ValuesIn(all()), [](const auto& info) {
  std::string name;
  for (const char c : info.param.name)
    if (std::isalnum(static_cast<unsigned char>(c)) != 0) name += c;
  return name;
});

TEST(Crc32cList, EndsWithOneForEveryCpuAndNamesEachOnce) {
  const auto list = crc32c_implementations();
  ASSERT_FALSE(list.empty());
  EXPECT_TRUE(list.back().usable());
  for (const auto& a : list)
    for (const auto& b : list) EXPECT_TRUE(&a == &b || a.name != b.name);
}

}  // namespace
}  // namespace viaduct::base
