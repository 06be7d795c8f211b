// Names of hosts: the file, the host database, and what is neither.
#include <gtest/gtest.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <cstdlib>
#include <fstream>

#include "drivers/vi_over_verbs/verbs.hpp"
#include "libvipl/names/name_service.hpp"

namespace viaduct::vipl {
namespace {

constexpr std::uint16_t kPort = 18650;
const NicAddress kSelf{{10, 9, 0, 1}, kPort};

NicAddress at(std::uint8_t host, std::uint16_t port = kPort) {
  return {{10, 9, 0, host}, port};
}

// A file that is gone when the test is.
class TemporaryFile {
 public:
  explicit TemporaryFile(const std::string& text) {
    const int fd = ::mkstemp(path_.data());
    EXPECT_GE(fd, 0);
    ::close(fd);
    std::ofstream(path_) << text;
  }
  ~TemporaryFile() { std::remove(path_.c_str()); }
  const std::string& path() const { return path_; }

 private:
  std::string path_ = testing::TempDir() + "vipl-hosts-XXXXXX";
};

TEST(NicAddressText, IsAnAddressAndPerhapsAPort) {
  EXPECT_EQ(parse_nic_address("10.9.0.2", 5), at(2, 5));
  EXPECT_EQ(parse_nic_address("10.9.0.2:7", 5), at(2, 7));
  for (const char* bad :
       {"", "node", "10.9.0", "10.9.0.2.3", "10.9.0.256", "10.9.0.2:", "10.9.0.2:0",
        "10.9.0.2:65536", "10.9.0.2:7x", "10.9.0.2:-7", ":7", "00:60:dd:7f:01:02"})
    EXPECT_EQ(parse_nic_address(bad, 5), std::nullopt) << bad;
}

TEST(HostsFile, IsReadAsHostsFilesAre) {
  const HostsFile file(
      "# a comment\n"
      "\n"
      "10.9.0.2\tNode2 node2.cluster  # and another\n"
      "   10.9.0.3:77 node3.cluster node3\n"
      "00:60:dd:7f:01:02 myrinet\n"
      "10.9.0.4 node2\n"
      "10.9.0.5\n"
      "10.9.0.6 last",
      kPort);
  EXPECT_EQ(file.addresses_of("node2"), (std::vector{at(2), at(4)}));
  EXPECT_EQ(file.addresses_of("NODE2"), (std::vector{at(2), at(4)}));
  EXPECT_EQ(file.addresses_of("node2.cluster"), std::vector{at(2)});
  EXPECT_EQ(file.addresses_of("node3"), std::vector{at(3, 77)});
  EXPECT_EQ(file.addresses_of("last"), std::vector{at(6)});
  for (const char* unknown : {"", "node", "node22", "myrinet", "node2.other", "and", "10.9.0.2"})
    EXPECT_EQ(file.addresses_of(unknown), std::vector<NicAddress>{}) << unknown;
  EXPECT_EQ(file.name_of(at(2)), "Node2");
  EXPECT_EQ(file.name_of(at(3, 77)), "node3.cluster");
  EXPECT_EQ(file.name_of(at(3)), "");
  EXPECT_EQ(file.name_of(at(5)), "");
}

TEST(HostsFile, ANameWithoutDomainMeansThatOfADomain) {
  const HostsFile file("10.9.0.7 node7.cluster.example\n", kPort);
  EXPECT_EQ(file.addresses_of("node7"), std::vector{at(7)});
  EXPECT_EQ(file.addresses_of("node7.cluster"), std::vector<NicAddress>{});
}

TEST(NameService, TheFileComesBeforeTheDatabase) {
  const TemporaryFile file("10.9.0.2 localhost two\n10.9.0.3 two\n");
  const NameService names(kSelf, file.path());
  EXPECT_EQ(names.address_of("localhost", 0), at(2));
  EXPECT_EQ(names.address_of("two", 0), at(2));
  EXPECT_EQ(names.address_of("two", 1), at(3));
  EXPECT_EQ(names.address_of("two", 2), std::nullopt);
  EXPECT_EQ(names.name_of(at(3)), "two");
}

TEST(NameService, AddressesMeanThemselves) {
  const NameService names(kSelf, "");
  EXPECT_EQ(names.address_of("10.9.0.9", 0), at(9));
  EXPECT_EQ(names.address_of("10.9.0.9:80", 0), at(9, 80));
  EXPECT_EQ(names.address_of("10.9.0.9", 1), std::nullopt);
}

// Programs ask what their own host is called.
TEST(NameService, TheHostItselfHasAName) {
  std::array<char, 256> host{};
  ASSERT_EQ(::gethostname(host.data(), host.size() - 1), 0);
  EXPECT_EQ(NameService(kSelf, "").name_of(kSelf), host.data());
  const TemporaryFile file("10.9.0.1 first\n");
  EXPECT_EQ(NameService(kSelf, file.path()).name_of(kSelf), "first");
}

// Where no NIC is, the host's own is meant.
TEST(NameService, LoopbackMeansTheNicItself) {
  EXPECT_EQ(NameService(kSelf, "").address_of("localhost", 0), kSelf);
  EXPECT_EQ(NameService(kSelf, "").address_of("127.0.0.1", 0), kSelf);
  EXPECT_EQ(NameService(kSelf, "").address_of("127.0.1.1:7", 0), at(1, 7));
  const NicAddress loopback{{127, 0, 0, 5}, kPort};
  EXPECT_EQ(NameService(loopback, "").address_of("127.0.0.9", 0),
            (NicAddress{{127, 0, 0, 9}, kPort}));
  const NicAddress first{{127, 0, 0, 1}, kPort};
  EXPECT_EQ(NameService(loopback, "").address_of("localhost", 0), first);
  EXPECT_EQ(NameService(kSelf, "").address_of("localhost", 1000), std::nullopt);
}

TEST(NameService, UnknownNames) {
  const NameService names(kSelf, "");
  EXPECT_EQ(names.address_of("no.such.host.invalid", 0), std::nullopt);
  EXPECT_EQ(names.address_of("", 0), std::nullopt);
  EXPECT_EQ(names.name_of({{198, 51, 100, 77}, kPort}), "");
  EXPECT_EQ(names.name_of({{127, 0, 0, 1}, kPort}), "localhost");
}

TEST(NameService, AFileThatCannotBeReadIsSaid) {
  for (const char* bad : {"/nonexistent/hosts", "/"}) {
    try {
      const NameService names(kSelf, bad);
      ADD_FAILURE() << bad;
    } catch (const vi::SetupError& error) {
      EXPECT_NE(std::string(error.what()).find(bad), std::string::npos) << error.what();
    }
  }
  const TemporaryFile empty("");
  EXPECT_EQ(NameService(kSelf, empty.path()).address_of("no.such.host.invalid", 0), std::nullopt);
}

}  // namespace
}  // namespace viaduct::vipl
