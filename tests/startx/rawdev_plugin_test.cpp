// The plugin as an operator loads it: `-d librte_raw_startx.so --vdev rawdev_startx0,...` into a
// program that knows nothing of StarT-X.
#include <gtest/gtest.h>
#include <rte_bus_vdev.h>
#include <rte_eal.h>
#include <rte_log.h>
#include <rte_rawdev.h>
#include <unistd.h>

#include <cstdio>
#include <string>
#include <vector>

#include "drivers/startx_emul/vdev_args.hpp"

namespace viaduct::startx {
namespace {

// What DPDK and its drivers say while `work` runs.
template <class Work>
std::string log_of(Work work) {
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

TEST(RawdevPlugin, IsLoadedAndProbed) {
  ASSERT_EQ(rte_rawdev_count(), 1);
  const std::uint16_t id = rte_rawdev_get_dev_id("rawdev_startx0");
  rte_rawdev_info info{};
  rte_pmd_startx_conf conf{};
  info.dev_private = &conf;
  ASSERT_EQ(rte_rawdev_info_get(id, &info, sizeof conf), 0);
  EXPECT_STREQ(info.driver_name, "rawdev_startx");
  EXPECT_EQ(conf.queue_depth, 256u);
  EXPECT_EQ(conf.max_open, 1u);
  EXPECT_EQ(rte_rawdev_queue_count(id), 4);
  EXPECT_EQ(rte_rawdev_selftest(id), 0);
}

TEST(RawdevPlugin, RunsOnAnEthdevOfTheApplication) {
  const std::uint16_t id = rte_rawdev_get_dev_id("rawdev_startx0");
  ASSERT_EQ(rte_rawdev_start(id), 0);
  rte_rawdev_buf buffer{}, *buffers[] = {&buffer};
  rte_pmd_startx_received received;
  buffer.buf_addr = &received;
  EXPECT_EQ(rte_rawdev_dequeue_buffers(id, buffers, 1, nullptr), 0);
  EXPECT_EQ(rte_rawdev_xstats_by_name_get(id, "startx_pio_high_received", nullptr), 0u);
  EXPECT_GT(rte_rawdev_xstats_names_get(id, nullptr, 0), 50);
  rte_rawdev_stop(id);
  EXPECT_LT(rte_rawdev_dequeue_buffers(id, buffers, 1, nullptr), 0);
}

TEST(RawdevPlugin, ImpossibleConfigurationsDoNotStart) {
  const std::uint16_t id = rte_rawdev_get_dev_id("rawdev_startx0");
  rte_pmd_startx_conf conf{}, before{};
  rte_rawdev_info info{};
  info.dev_private = &before;
  ASSERT_EQ(rte_rawdev_info_get(id, &info, sizeof before), 0);
  conf.queue_depth = 1000;
  info.dev_private = &conf;
  ASSERT_EQ(rte_rawdev_configure(id, &info, sizeof conf), 0);
  int status = 0;
  const std::string log = log_of([&] { status = rte_rawdev_start(id); });
  EXPECT_LT(status, 0);
  EXPECT_NE(log.find("power of two"), std::string::npos) << log;
  EXPECT_LT(rte_rawdev_configure(id, &info, sizeof conf - 1), 0);
  info.dev_private = &before;
  EXPECT_EQ(rte_rawdev_configure(id, &info, sizeof before), 0);
}

TEST(RawdevPlugin, BadArgumentsAreRefusedAndExplained) {
  const std::vector<std::pair<const char*, const char*>> cases = {
      {"", "no port was named"},
      {"queue_depth=64", "no port was named"},
      {"port=net_ring0,colour=blue", "there is no argument colour"},
      {"port=net_ring0,queue_depth=many", "queue_depth=many is not a whole number"},
      {"port=net_ring0,queue_depth=0", "queue_depth=0 is not a whole number"},
      {"port=net_ring0,max_open=-1", "max_open=-1 is not a whole number"},
      {"port=net_ring0,max_open=99999999999", "is not a whole number from 1 to 4294967295"},
      {"port=net_ring0,job", "job is not key=value"},
      {"port=", "port= is not key=value"},
  };
  for (const auto& [arguments, words] : cases) {
    int status = 0;
    const char* const given = arguments;  // clang 14: lambdas capture no structured bindings
    const std::string log = log_of([&] { status = rte_vdev_init("rawdev_startx9", given); });
    EXPECT_LT(status, 0) << arguments;
    EXPECT_NE(log.find(words), std::string::npos) << arguments << " -> " << log;
    EXPECT_NE(log.find("rawdev_startx9"), std::string::npos) << log;
  }
  EXPECT_EQ(rte_rawdev_count(), 1);
}

TEST(RawdevPlugin, ComesAndGoes) {
  ASSERT_EQ(rte_vdev_init("rawdev_startx1", "port=net_ring0"), 0);
  EXPECT_EQ(rte_rawdev_count(), 2);
  const std::uint16_t id = rte_rawdev_get_dev_id("rawdev_startx1");
  ASSERT_EQ(rte_rawdev_start(id), 0);
  // One port has one owner.
  const std::uint16_t other = rte_rawdev_get_dev_id("rawdev_startx0");
  log_of([&] { EXPECT_LT(rte_rawdev_start(other), 0); });
  EXPECT_EQ(rte_vdev_uninit("rawdev_startx1"), 0);  // also while it is started
  EXPECT_EQ(rte_rawdev_count(), 1);
  EXPECT_EQ(rte_rawdev_start(other), 0);
  rte_rawdev_stop(other);
}

TEST(VdevArgs, AreReadWhole) {
  const VdevArgs args = parse_vdev_args(
      "port=net_memif0,queue_depth=64,max_open=2,max_posted=8,max_regions=3,job=77");
  EXPECT_EQ(args.port, "port:net_memif0");
  EXPECT_EQ(args.conf.queue_depth, 64u);
  EXPECT_EQ(args.conf.max_open, 2u);
  EXPECT_EQ(args.conf.max_posted, 8u);
  EXPECT_EQ(args.conf.max_regions, 3u);
  EXPECT_EQ(args.conf.job_key, 77u);
}

}  // namespace
}  // namespace viaduct::startx

int main(int argc, char** argv) {
  ::testing::InitGoogleTest(&argc, argv);
  const char* words[] = {"rawdev_plugin_test",
                         "--no-pci",
                         "--no-huge",
                         "-m",
                         "256",
                         "--no-shconf",
                         "--no-telemetry",
                         "--file-prefix=viaduct_rawdev_plugin_test",
                         "-d",
                         "librte_raw_startx.so",
                         "--vdev=net_ring0",
                         "--vdev=rawdev_startx0,port=net_ring0,queue_depth=256,max_open=1"};
  std::vector<char*> arguments;
  for (const char* word : words) arguments.push_back(const_cast<char*>(word));
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
