// A driver's plugin as an operator loads it, into a program that knows nothing of the driver:
// `-d librte_raw_NAME.so --vdev rawdev_NAME0,port=net_ring0,...`.
#pragma once

#include <gtest/gtest.h>
#include <rte_bus_vdev.h>
#include <rte_eal.h>
#include <rte_eth_ring.h>
#include <rte_log.h>
#include <rte_rawdev.h>
#include <rte_ring.h>
#include <unistd.h>

#include <cstdio>
#include <functional>
#include <string>
#include <utility>
#include <vector>

namespace viaduct::rawdev::test {

// What DPDK and its drivers say while `work` runs.
inline std::string log_of(const std::function<void()>& work) {
  std::FILE* file = std::tmpfile();
  rte_openlog_stream(file);
  work();
  rte_openlog_stream(nullptr);
  std::fflush(file);
  std::rewind(file);
  std::string text(1 << 16, '\0');
  text.resize(std::fread(text.data(), 1, text.size(), file));
  std::fclose(file);
  return text;
}

// Vdev arguments, and words that the refusal has to say.
using Refusals = std::vector<std::pair<std::string, std::string>>;
inline void expect_refusals(const std::string& name, const Refusals& refusals) {
  const auto count = rte_rawdev_count();
  for (const auto& refusal : refusals) {
    int status = 0;
    const std::string log =
        log_of([&] { status = rte_vdev_init(name.c_str(), refusal.first.c_str()); });
    EXPECT_LT(status, 0) << refusal.first;
    EXPECT_NE(log.find(refusal.second), std::string::npos) << refusal.first << " -> " << log;
    EXPECT_NE(log.find(name), std::string::npos) << log;
  }
  EXPECT_EQ(rte_rawdev_count(), count);
}

// With `conf` rawdev `id` does not start, and says so in these words. It keeps the one it had.
template <class Conf>
void expect_no_start(std::uint16_t id, Conf conf, const std::string& words) {
  Conf before{};
  rte_rawdev_info info{};
  info.dev_private = &before;
  ASSERT_EQ(rte_rawdev_info_get(id, &info, sizeof before), 0);
  info.dev_private = &conf;
  ASSERT_EQ(rte_rawdev_configure(id, &info, sizeof conf), 0);
  int status = 0;
  const std::string log = log_of([&] { status = rte_rawdev_start(id); });
  EXPECT_LT(status, 0);
  EXPECT_NE(log.find(words), std::string::npos) << log;
  EXPECT_LT(rte_rawdev_configure(id, &info, sizeof conf - 1), 0);
  info.dev_private = &before;
  EXPECT_EQ(rte_rawdev_configure(id, &info, sizeof before), 0);
}

// A second device `name` on net_ring0, which `other` is on.
inline void expect_comes_and_goes(const char* name, std::uint16_t other) {
  ASSERT_EQ(rte_vdev_init(name, "port=net_ring0"), 0);
  EXPECT_EQ(rte_rawdev_count(), 2);
  ASSERT_EQ(rte_rawdev_start(rte_rawdev_get_dev_id(name)), 0);
  // One port has one owner.
  log_of([&] { EXPECT_LT(rte_rawdev_start(other), 0); });
  EXPECT_EQ(rte_vdev_uninit(name), 0);  // also while it is started
  EXPECT_EQ(rte_rawdev_count(), 1);
  EXPECT_EQ(rte_rawdev_start(other), 0);
  rte_rawdev_stop(other);
}

// Ethdevs net_ring_a and net_ring_b: what one sends the other receives.
inline void make_ring_pair() {
  rte_ring* ab = rte_ring_create("ab", 1024, 0, RING_F_SP_ENQ | RING_F_SC_DEQ);
  rte_ring* ba = rte_ring_create("ba", 1024, 0, RING_F_SP_ENQ | RING_F_SC_DEQ);
  ASSERT_NE(ab, nullptr);
  ASSERT_NE(ba, nullptr);
  ASSERT_GE(rte_eth_from_rings("a", &ba, 1, &ab, 1, 0), 0);
  ASSERT_GE(rte_eth_from_rings("b", &ab, 1, &ba, 1, 0), 0);
}

// The table of C functions that a started rawdev on `port` hands out.
template <class Functions>
const Functions* start_and_ask(const std::string& name, const std::string& port,
                               const char* attribute) {
  std::uint64_t address = 0;
  EXPECT_EQ(rte_vdev_init(name.c_str(), ("port=" + port).c_str()), 0);
  const std::uint16_t id = rte_rawdev_get_dev_id(name.c_str());
  EXPECT_EQ(rte_rawdev_start(id), 0);
  EXPECT_NE(rte_rawdev_get_attr(id, "nonsense", &address), 0);
  EXPECT_EQ(rte_rawdev_get_attr(id, attribute, &address), 0);
  const auto* functions = reinterpret_cast<const Functions*>(address);
  EXPECT_EQ(functions->size, sizeof(Functions));
  return functions;
}

// Runs all tests in an EAL with the plugin and one device.
inline int run(int argc, char** argv, const std::string& plugin, const std::string& vdev) {
  ::testing::InitGoogleTest(&argc, argv);
  std::vector<std::string> words = {"rawdev_plugin_test",
                                    "--no-pci",
                                    "--no-huge",
                                    "-m",
                                    "256",
                                    "--no-shconf",
                                    "--no-telemetry",
                                    "--file-prefix=viaduct_" + plugin + "_test",
                                    "-d",
                                    plugin + ".so",
                                    "--vdev=net_ring0",
                                    "--vdev=" + vdev};
  std::vector<char*> arguments;
  for (std::string& word : words) arguments.push_back(word.data());
  if (rte_eal_init(static_cast<int>(arguments.size()), arguments.data()) < 0) {
    std::fprintf(stderr, "EAL does not start with the plugin\n");
    return 1;
  }
  const int result = RUN_ALL_TESTS();
  const std::string runtime_directory = rte_eal_get_runtime_dir();
  rte_eal_cleanup();
  rmdir(runtime_directory.c_str());  // EAL leaves it, empty
  return result;
}

}  // namespace viaduct::rawdev::test
