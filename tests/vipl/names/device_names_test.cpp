// Device names of programs that were written for other networks.
#include "libvipl/names/device_names.hpp"

#include <gtest/gtest.h>

#include <set>

namespace viaduct::vipl {
namespace {

vi::DeviceInfo device(const std::string& name, const std::string& interface, bool usable = true) {
  vi::DeviceInfo out;
  out.name = name;
  out.interface = interface;
  out.usable = usable;
  return out;
}

std::vector<std::string> names(const std::vector<vi::DeviceInfo>& devices) {
  std::vector<std::string> out;
  for (const auto& d : devices) out.push_back(d.name);
  return out;
}

using Names = std::vector<std::string>;

struct DeviceNames : testing::Test {
  // Numbers: 0 mlx5_2, 1 mlx5_10, 2 rxe0; mlx5_0 cannot be used.
  const std::vector<vi::DeviceInfo> devices =
      named_devices({device("mlx5_10", "ens2"), device("rxe0", "eth5"), device("mlx5_2", "ens1"),
                     device("mlx5_0", "ib0", false)},
                    "");
  std::set<std::string> interfaces{"ens1", "ens2", "eth5", "ib0", "eth0", "lo"};

  std::string find(const std::string& name) const {
    const auto* found = find_device(name, devices, [&](const std::string& interface) {
      return interfaces.contains(interface);
    });
    return found == nullptr ? "" : found->name;
  }
};

TEST_F(DeviceNames, AreInNaturalOrderThoseThatWorkFirst) {
  EXPECT_EQ(names(devices), (Names{"mlx5_2", "mlx5_10", "rxe0", "mlx5_0"}));
}

TEST_F(DeviceNames, TheUserChoosesDevicesAndTheirOrder) {
  const auto of = [&](std::string_view chosen) { return names(named_devices(devices, chosen)); };
  EXPECT_EQ(of("rxe0"), Names{"rxe0"});
  EXPECT_EQ(of("rxe0,mlx5_2"), (Names{"rxe0", "mlx5_2"}));
  EXPECT_EQ(of("rxe9,,mlx5_0,"), Names{"mlx5_0"});
  EXPECT_EQ(of("rxe9"), Names{});
  EXPECT_EQ(of(","), Names{});
}

TEST_F(DeviceNames, TheUserChoosesAddresses) {
  vi::DeviceInfo port = device("mlx5_0", "ens1");
  port.addresses = {{{10, 9, 0, 1}, 1, "ens1"}, {{10, 9, 7, 1}, 5, "ens1.7"}};
  port.use(port.addresses[0]);
  const auto of = [&](std::string_view chosen) {
    return named_devices({port, device("rxe0", "eth5")}, chosen);
  };
  const auto both = of("mlx5_0@10.9.7.1,mlx5_0,rxe0");
  ASSERT_EQ(names(both), (Names{"mlx5_0", "mlx5_0", "rxe0"}));
  EXPECT_EQ(both[0].ip, (std::array<std::uint8_t, 4>{10, 9, 7, 1}));
  EXPECT_EQ(both[0].gid_index, 5);
  EXPECT_EQ(both[0].interface, "ens1.7");
  EXPECT_EQ(both[1].interface, "ens1");
  const auto every = [](const std::string&) { return true; };
  EXPECT_EQ(find_device("/dev/via_ens1.7", both, every), &both[0]);
  EXPECT_EQ(find_device("nic1", both, every), &both[1]);
  for (const char* none : {"mlx5_0@10.9.0.2", "mlx5_0@", "mlx5_0@10.9.7.1 ", "mlx5_0@ens1.7",
                           "@10.9.0.1", "mlx5_1@10.9.0.1", "rxe0@10.9.0.1"})
    EXPECT_TRUE(of(none).empty()) << none;
}

TEST_F(DeviceNames, TheDevicesOwn) {
  for (const auto& d : devices) EXPECT_EQ(find(d.name), d.name);
  EXPECT_EQ(find("mlx5_1"), "");
  EXPECT_EQ(find(""), "");
  EXPECT_EQ(find("/dev/"), "");
}

TEST_F(DeviceNames, OfInterfaces) {
  for (const std::string prefix : {"", "/dev/", "via_", "/dev/via_"}) {
    EXPECT_EQ(find(prefix + "ens1"), "mlx5_2");
    EXPECT_EQ(find(prefix + "eth5"), "rxe0");
  }
}

TEST_F(DeviceNames, OfVia) {
  EXPECT_EQ(find("/dev/via_eth1"), "mlx5_10");  // no such interface here: by number
  EXPECT_EQ(find("/dev/via_eth2"), "rxe0");
  EXPECT_EQ(find("/dev/via_eth0"), "");  // is there, and cannot do it
  EXPECT_EQ(find("/dev/via_eth9"), "");
  EXPECT_EQ(find("/dev/via_lo"), "mlx5_2");
  interfaces.erase("eth0");
  EXPECT_EQ(find("/dev/via_eth0"), "mlx5_2");
  EXPECT_EQ(find("/dev/via_eth"), "mlx5_2");
}

TEST_F(DeviceNames, ByNumber) {
  for (const std::string prefix :
       {"nic", "VINIC", "/dev/clanvi", "clanvi", "/dev/vi", "/dev/via"}) {
    EXPECT_EQ(find(prefix), "mlx5_2") << prefix;
    EXPECT_EQ(find(prefix + "0"), "mlx5_2") << prefix;
    EXPECT_EQ(find(prefix + "1"), "mlx5_10") << prefix;
    EXPECT_EQ(find(prefix + "2"), "rxe0") << prefix;
    EXPECT_EQ(find(prefix + "4"), "") << prefix;
    EXPECT_EQ(find(prefix + "0x"), "") << prefix;
    EXPECT_EQ(find(prefix + "-1"), "") << prefix;
    EXPECT_EQ(find(prefix + "99999999999999999999999"), "") << prefix;
  }
  EXPECT_EQ(find("other0"), "");
}

TEST_F(DeviceNames, ADeviceOnLoIsTheOneForVia_lo) {
  const std::vector<vi::DeviceInfo> two{device("a", "eth0"), device("b", "lo")};
  EXPECT_EQ(find_device("/dev/via_lo", two, [](const std::string&) { return true; }), &two[1]);
  EXPECT_EQ(find_device("/dev/via_lo", {}, [](const std::string&) { return true; }), nullptr);
}

TEST_F(DeviceNames, EveryNameThatIsShownLeadsThere) {
  for (std::size_t i = 0; i < devices.size(); ++i) {
    EXPECT_GE(names_of(i, devices).size(), 5u);
    for (const std::string& name : names_of(i, devices)) EXPECT_EQ(find(name), devices[i].name);
  }
  const std::vector<vi::DeviceInfo> bare{device("x", "")};
  EXPECT_EQ(names_of(0, bare), (Names{"x", "nic0", "VINIC0", "/dev/clanvi0", "VINIC"}));
}

}  // namespace
}  // namespace viaduct::vipl
