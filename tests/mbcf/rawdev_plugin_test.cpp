// The plugin as an operator loads it: `-d librte_raw_mbcf.so --vdev rawdev_mbcf0,...` into a
// program that knows nothing of MBCF.
#include "drivers/mbcf/vdev_args.hpp"
#include "tests/rawdev/plugin_bed.hpp"

namespace viaduct::mbcf {
namespace {

TEST(RawdevPlugin, IsLoadedAndProbed) {
  ASSERT_EQ(rte_rawdev_count(), 1);
  const std::uint16_t id = rte_rawdev_get_dev_id("rawdev_mbcf0");
  rte_rawdev_info info{};
  rte_pmd_mbcf_conf conf{};
  info.dev_private = &conf;
  ASSERT_EQ(rte_rawdev_info_get(id, &info, sizeof conf), 0);
  EXPECT_STREQ(info.driver_name, "rawdev_mbcf");
  EXPECT_EQ(conf.max_keys, 16u);
  EXPECT_EQ(conf.max_requests, 32u);
  EXPECT_EQ(conf.max_writers, 4096u);
  EXPECT_EQ(rte_rawdev_queue_count(id), 3);
  std::uint32_t depth = 0;
  EXPECT_EQ(rte_rawdev_queue_conf_get(id, 0, &depth, sizeof depth), 0);
  EXPECT_EQ(depth, 32u);
  EXPECT_EQ(rte_rawdev_selftest(id), 0);
}

TEST(RawdevPlugin, RunsOnAnEthdevOfTheApplication) {
  const std::uint16_t id = rte_rawdev_get_dev_id("rawdev_mbcf0");
  ASSERT_EQ(rte_rawdev_start(id), 0);
  rte_rawdev_buf buffer{}, *buffers[] = {&buffer};
  struct rte_pmd_mbcf_completion completion;
  buffer.buf_addr = &completion;
  EXPECT_EQ(rte_rawdev_dequeue_buffers(id, buffers, 1, nullptr), 0);
  EXPECT_EQ(rte_rawdev_xstats_by_name_get(id, "mbcf_writes_served", nullptr), 0u);
  EXPECT_GT(rte_rawdev_xstats_names_get(id, nullptr, 0), 50);
  rte_rawdev_stop(id);
  EXPECT_LT(rte_rawdev_dequeue_buffers(id, buffers, 1, nullptr), 0);
}

TEST(RawdevPlugin, ImpossibleConfigurationsDoNotStart) {
  const std::uint16_t id = rte_rawdev_get_dev_id("rawdev_mbcf0");
  rte_pmd_mbcf_conf conf{};
  conf.max_keys = 70000;
  rawdev::test::expect_no_start(id, conf, "max_keys = 70000: choose 1 to 65535");
  conf = {};
  conf.max_requests = 70000;
  rawdev::test::expect_no_start(id, conf, "max_requests = 70000: choose 1 to 65535");
}

TEST(RawdevPlugin, BadArgumentsAreRefusedAndExplained) {
  rawdev::test::expect_refusals(
      "rawdev_mbcf9", {
                          {"", "no port was named"},
                          {"port=net_ring0,colour=blue", "there is no argument colour"},
                          {"port=net_ring0,max_keys=many", "max_keys=many is not a whole number"},
                          {"port=net_ring0,max_keys=0",
                           "accepted are port=<name or id of an ethdev> max_keys=<int>"},
                      });
}

TEST(RawdevPlugin, ComesAndGoes) {
  rawdev::test::expect_comes_and_goes("rawdev_mbcf1", rte_rawdev_get_dev_id("rawdev_mbcf0"));
}

// The program is not linked with the driver.
TEST(RawdevPlugin, HandsOutTheFunctionsThatWrite) {
  rawdev::test::make_ring_pair();
  const auto* mbcf = rawdev::test::start_and_ask<rte_pmd_mbcf_functions>(
      "rawdev_mbcf2", "net_ring_a", RTE_PMD_MBCF_FUNCTIONS);
  rawdev::test::start_and_ask<rte_pmd_mbcf_functions>("rawdev_mbcf3", "net_ring_b",
                                                      RTE_PMD_MBCF_FUNCTIONS);
  rte_pmd_mbcf* a = mbcf->get(rte_rawdev_get_dev_id("rawdev_mbcf2"));
  rte_pmd_mbcf* b = mbcf->get(rte_rawdev_get_dev_id("rawdev_mbcf3"));
  const std::uint64_t sent = 41;
  std::uint64_t memory = 0;
  std::uint8_t mac[6];
  rte_pmd_mbcf_remote at{};
  ASSERT_EQ(mbcf->export_memory(b, &memory, sizeof memory, RTE_PMD_MBCF_WRITE, &at.key), 0);
  ASSERT_EQ(mbcf->address(b, mac), 0);
  ASSERT_EQ(mbcf->peer(a, mac, &at.peer), 0);
  ASSERT_EQ(mbcf->write(a, &at, &sent, sizeof sent, nullptr, nullptr, nullptr), 0);
  struct rte_pmd_mbcf_completion completion;
  while (mbcf->completion(a, &completion) != 0) {
    ASSERT_EQ(mbcf->poll(a), 0);
    ASSERT_EQ(mbcf->poll(b), 0);
  }
  EXPECT_EQ(completion.status, 0);
  EXPECT_EQ(memory, sent);
  EXPECT_EQ(rte_vdev_uninit("rawdev_mbcf3"), 0);
  EXPECT_EQ(mbcf->poll(a), 0);  // takes its goodbye, or that frame's pool could not be freed
  EXPECT_EQ(rte_vdev_uninit("rawdev_mbcf2"), 0);
}

TEST(VdevArgs, AreReadWhole) {
  const VdevArgs args =
      parse_vdev_args("port=net_memif0,max_keys=64,max_requests=2,max_writers=8,job=77");
  EXPECT_EQ(args.port, "port:net_memif0");
  EXPECT_EQ(args.conf.max_keys, 64u);
  EXPECT_EQ(args.conf.max_requests, 2u);
  EXPECT_EQ(args.conf.max_writers, 8u);
  EXPECT_EQ(args.conf.job_key, 77u);
}

}  // namespace
}  // namespace viaduct::mbcf

int main(int argc, char** argv) {
  return viaduct::rawdev::test::run(argc, argv, "librte_raw_mbcf",
                                    "rawdev_mbcf0,port=net_ring0,max_keys=16,max_requests=32");
}
