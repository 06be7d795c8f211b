// The plugin as an operator loads it: `-d librte_raw_startx.so --vdev rawdev_startx0,...` into a
// program that knows nothing of StarT-X.
#include "drivers/startx_emul/vdev_args.hpp"
#include "tests/rawdev/plugin_bed.hpp"

namespace viaduct::startx {
namespace {

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
  rte_pmd_startx_conf conf{};
  conf.queue_depth = 1000;
  rawdev::test::expect_no_start(rte_rawdev_get_dev_id("rawdev_startx0"), conf, "power of two");
}

TEST(RawdevPlugin, BadArgumentsAreRefusedAndExplained) {
  rawdev::test::expect_refusals(
      "rawdev_startx9",
      {
          {"", "no port was named"},
          {"queue_depth=64", "no port was named"},
          {"port=net_ring0,colour=blue", "there is no argument colour"},
          {"port=net_ring0,queue_depth=many", "queue_depth=many is not a whole number"},
          {"port=net_ring0,queue_depth=0", "queue_depth=0 is not a whole number"},
          {"port=net_ring0,max_open=-1", "max_open=-1 is not a whole number"},
          {"port=net_ring0,max_open=99999999999", "is not a whole number from 1 to 4294967295"},
          {"port=net_ring0,job", "job is not key=value"},
          {"port=", "port= is not key=value"},
          {"port=net_ring0,job=x", "accepted are port=<name or id of an ethdev> queue_depth=<int>"},
      });
}

TEST(RawdevPlugin, ComesAndGoes) {
  rawdev::test::expect_comes_and_goes("rawdev_startx1", rte_rawdev_get_dev_id("rawdev_startx0"));
}

// The program is not linked with the driver.
TEST(RawdevPlugin, HandsOutTheFunctionsThatSend) {
  rawdev::test::make_ring_pair();
  const auto* startx = rawdev::test::start_and_ask<rte_pmd_startx_functions>(
      "rawdev_startx2", "net_ring_a", RTE_PMD_STARTX_FUNCTIONS);
  rawdev::test::start_and_ask<rte_pmd_startx_functions>("rawdev_startx3", "net_ring_b",
                                                        RTE_PMD_STARTX_FUNCTIONS);
  rte_pmd_startx* a = startx->get(rte_rawdev_get_dev_id("rawdev_startx2"));
  rte_pmd_startx* b = startx->get(rte_rawdev_get_dev_id("rawdev_startx3"));
  std::uint8_t mac[6];
  std::uint32_t peer = 0;
  ASSERT_EQ(startx->address(b, mac), 0);
  ASSERT_EQ(startx->peer(a, mac, &peer), 0);
  rte_pmd_startx_packet packet{};
  packet.words = 2;
  packet.payload[0] = 41;
  ASSERT_EQ(startx->send(a, peer, RTE_PMD_STARTX_HIGH, &packet), 0);
  const rte_pmd_startx_received* received = nullptr;
  while ((received = startx->peek(b, RTE_PMD_STARTX_HIGH)) == nullptr) {
    ASSERT_EQ(startx->poll(a), 0);
    ASSERT_EQ(startx->poll(b), 0);
  }
  EXPECT_EQ(received->payload[0], 41u);
  EXPECT_EQ(rte_vdev_uninit("rawdev_startx3"), 0);
  EXPECT_EQ(startx->poll(a), 0);  // takes its goodbye, or that frame's pool could not be freed
  EXPECT_EQ(rte_vdev_uninit("rawdev_startx2"), 0);
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
  return viaduct::rawdev::test::run(argc, argv, "librte_raw_startx",
                                    "rawdev_startx0,port=net_ring0,queue_depth=256,max_open=1");
}
