/* A DPDK program that knows StarT-X by its header only and is not linked with the driver. EAL loads
 * the driver and makes two rawdevs, which exchange a packet over two ring ports.
 *
 *   cc plugin.c $(pkg-config --cflags viaduct-startx libdpdk) \
 *     $(pkg-config --libs libdpdk) -lrte_net_ring -o plugin
 *   ./plugin --no-pci --no-huge -m 256 --no-shconf -d librte_raw_startx.so \
 *     --vdev rawdev_startx0,port=net_ring_a --vdev rawdev_startx1,port=net_ring_b */
#include <rte_eal.h>
#include <rte_eth_ring.h>
#include <rte_pmd_startx.h>
#include <rte_rawdev.h>
#include <stdio.h>
#include <stdlib.h>

static void check(int ok, const char* what) {
  if (ok) return;
  fprintf(stderr, "plugin: %s failed\n", what);
  exit(1);
}

/* Two ports, net_ring_a and net_ring_b: what one sends the other receives. They may be made after
 * rte_eal_init(), because a rawdev opens its port only when it is started. */
static void make_ports(void) {
  struct rte_ring* ab = rte_ring_create("ab", 1024, 0, RING_F_SP_ENQ | RING_F_SC_DEQ);
  struct rte_ring* ba = rte_ring_create("ba", 1024, 0, RING_F_SP_ENQ | RING_F_SC_DEQ);
  check(ab != NULL && ba != NULL, "rte_ring_create");
  check(rte_eth_from_rings("a", &ba, 1, &ab, 1, 0) >= 0, "rte_eth_from_rings");
  check(rte_eth_from_rings("b", &ab, 1, &ba, 1, 0) >= 0, "rte_eth_from_rings");
}

/* The driver's functions, from any of its rawdevs. */
static const struct rte_pmd_startx_functions* startx;

/* Starts a rawdev and gives the handle of its node, which the rawdev owns. */
static struct rte_pmd_startx* start(const char* name) {
  const uint16_t id = rte_rawdev_get_dev_id(name);
  uint64_t address;
  check(rte_rawdev_get_attr(id, RTE_PMD_STARTX_FUNCTIONS, &address) == 0, "rte_rawdev_get_attr");
  startx = (const struct rte_pmd_startx_functions*)(uintptr_t)address;
  check(rte_rawdev_start(id) == 0, "rte_rawdev_start");
  return startx->get(id);
}

int main(int argc, char** argv) {
  check(rte_eal_init(argc, argv) >= 0, "rte_eal_init");
  make_ports();
  struct rte_pmd_startx* a = start("rawdev_startx0");
  struct rte_pmd_startx* b = start("rawdev_startx1");

  const struct rte_pmd_startx_packet packet = {.tag = 1, .words = 2, .payload = {41, 42}};
  const struct rte_pmd_startx_received* received;
  uint8_t mac[6];
  uint32_t peer;
  check(startx->address(b, mac) == 0 && startx->peer(a, mac, &peer) == 0, "peer");
  check(startx->send(a, peer, RTE_PMD_STARTX_HIGH, &packet) == 0, "send");
  /* Both sides must poll: one sends and hears acknowledgements, the other receives. */
  while ((received = startx->peek(b, RTE_PMD_STARTX_HIGH)) == NULL)
    check(startx->poll(a) == 0 && startx->poll(b) == 0, "poll");
  printf("received: %u %u\n", received->payload[0], received->payload[1]);
  startx->pop(b, RTE_PMD_STARTX_HIGH);

  rte_rawdev_stop(rte_rawdev_get_dev_id("rawdev_startx0"));
  rte_rawdev_stop(rte_rawdev_get_dev_id("rawdev_startx1"));
  return rte_eal_cleanup() == 0 ? 0 : 1;
}
