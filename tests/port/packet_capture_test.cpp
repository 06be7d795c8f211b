#include "drivers/port/packet_capture.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstring>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <vector>

namespace viaduct::link {
namespace {

using testing::HasSubstr;

class Pcap : public testing::Test {
 protected:
  ~Pcap() override { std::filesystem::remove(path_); }

  std::string read() const {
    std::ifstream file(path_, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
  }
  static std::uint32_t word(const std::string& bytes, std::size_t at) {
    std::uint32_t value;
    std::memcpy(&value, bytes.data() + at, sizeof value);
    return value;
  }
  static std::vector<std::byte> frame(std::size_t size, int value) {
    return std::vector<std::byte>(size, static_cast<std::byte>(value));
  }

  const std::string path_ =
      testing::TempDir() + "viaduct_pcap_test_" + std::to_string(getpid()) + ".pcap";
};

TEST_F(Pcap, FileHasTheFormThatToolsRead) {
  const auto before = static_cast<std::uint32_t>(time(nullptr));
  {
    port::PcapWriter writer(path_);
    writer.write(frame(60, 0xaa));
    writer.write(frame(1514, 0xbb));
    EXPECT_EQ(writer.frames(), 2u);
    EXPECT_FALSE(writer.failed());
  }
  const std::string file = read();
  ASSERT_EQ(file.size(), 24u + 16 + 60 + 16 + 1514);
  EXPECT_EQ(word(file, 0), 0xa1b23c4du);
  EXPECT_EQ(word(file, 4), 0x00040002u);
  EXPECT_EQ(word(file, 16), 65535u);
  EXPECT_EQ(word(file, 20), 1u);
  EXPECT_GE(word(file, 24), before);
  EXPECT_LE(word(file, 24), before + 60);
  EXPECT_LT(word(file, 28), 1'000'000'000u);
  EXPECT_EQ(word(file, 32), 60u);
  EXPECT_EQ(word(file, 36), 60u);
  EXPECT_EQ(file.substr(40, 60), std::string(60, '\xaa'));
  EXPECT_EQ(word(file, 100 + 8), 1514u);
  EXPECT_EQ(file.substr(116), std::string(1514, '\xbb'));
}

TEST_F(Pcap, AnEarlierRecordingIsReplaced) {
  { port::PcapWriter(path_).write(frame(1000, 1)); }
  { port::PcapWriter(path_).write(frame(10, 2)); }
  EXPECT_EQ(read().size(), 24u + 16 + 10);
}

std::string refusal(const std::string& path) {
  try {
    port::PcapWriter writer(path);
  } catch (const base::SetupError& error) {
    return error.what();
  }
  return "";
}

TEST_F(Pcap, OneFileHasOneWriter) {
  port::PcapWriter writer(path_);
  writer.write(frame(10, 1));
  EXPECT_THAT(refusal(path_), HasSubstr("another port is writing"));
}

TEST_F(Pcap, AFileThatCannotBeMadeIsSaid) {
  EXPECT_THAT(refusal("/no/such/directory/x.pcap"), HasSubstr("/no/such/directory/x.pcap"));
  EXPECT_THAT(refusal(testing::TempDir()), HasSubstr("directory"));
  EXPECT_THAT(refusal("/dev/full"), HasSubstr("No space left"));
}

}  // namespace
}  // namespace viaduct::link
