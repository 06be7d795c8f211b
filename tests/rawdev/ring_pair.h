/* For C programs that test a driver's C header and rawdev API: two rawdevs on two ring ports of
 * this process, which talk to each other. The program includes the header, and names the driver
 * before it includes this file: `#define DRIVER(name) rte_pmd_startx##name`. */
#ifndef VIADUCT_TESTS_RING_PAIR_H_
#define VIADUCT_TESTS_RING_PAIR_H_

#include <errno.h>
#include <rte_eal.h>
#include <rte_errno.h>
#include <rte_eth_ring.h>
#include <rte_rawdev.h>
#include <rte_ring.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define CHECK(condition)                                                      \
  do {                                                                        \
    if (!(condition)) {                                                       \
      fprintf(stderr, "%s:%d: failed: %s\n", __FILE__, __LINE__, #condition); \
      exit(1);                                                                \
    }                                                                         \
  } while (0)

static struct DRIVER() * node[2];
static uint32_t peer[2]; /* peer[i]: the other one as node i knows it */

static inline void poll_both(void) {
  for (int i = 0; i < 2; ++i) CHECK(DRIVER(_poll)(node[i]) == 0);
}

static time_t deadline;
static inline bool waiting(void) {
  poll_both();
  CHECK(time(NULL) < deadline);
  return true;
}
#define WAIT_FOR(condition) \
  for (deadline = time(NULL) + 30; !(condition) && waiting();) continue

/* Ethdevs net_ring_a and net_ring_b, joined. */
static inline void make_ports(void) {
  struct rte_ring* ab = rte_ring_create("ab", 1024, 0, RING_F_SP_ENQ | RING_F_SC_DEQ);
  struct rte_ring* ba = rte_ring_create("ba", 1024, 0, RING_F_SP_ENQ | RING_F_SC_DEQ);
  CHECK(ab != NULL && ba != NULL);
  CHECK(rte_eth_from_rings("a", &ba, 1, &ab, 1, 0) >= 0);
  CHECK(rte_eth_from_rings("b", &ab, 1, &ba, 1, 0) >= 0);
}

/* EAL with two rawdevs, which it numbers 0 and 1. */
static inline void start_eal(const char* program, const char* vdev_a, const char* vdev_b) {
  static char words[4][256];
  snprintf(words[0], sizeof words[0], "%s", program);
  snprintf(words[1], sizeof words[1], "--file-prefix=viaduct_%s", program);
  snprintf(words[2], sizeof words[2], "--vdev=%s", vdev_a);
  snprintf(words[3], sizeof words[3], "--vdev=%s", vdev_b);
  char* arguments[] = {words[0],      "--no-pci",       "--no-huge", "-m",     "256",
                       "--no-shconf", "--no-telemetry", words[1],    words[2], words[3]};
  CHECK(rte_eal_init(sizeof arguments / sizeof *arguments, arguments) >= 0);
  CHECK(rte_rawdev_count() == 2);
}

static inline void end_eal(void) {
  static char runtime_directory[4096];
  snprintf(runtime_directory, sizeof runtime_directory, "%s", rte_eal_get_runtime_dir());
  rte_eal_cleanup();
  rmdir(runtime_directory); /* EAL leaves it, empty */
}

/* Makes the ports, starts both rawdevs, and asks each for the other. */
static inline void start(void) {
  CHECK(DRIVER(_get)(0) == NULL && rte_errno == ENETDOWN);
  CHECK(DRIVER(_get)(7) == NULL && rte_errno == ENODEV);
  CHECK(DRIVER(_get)(65535) == NULL && rte_errno == ENODEV);
  CHECK(rte_rawdev_start(0) < 0); /* its port is not there yet, and that is said */
  CHECK(strstr(DRIVER(_error)(), "net_ring_a") != NULL);
  make_ports();
  uint8_t mac[2][6];
  for (uint16_t i = 0; i < 2; ++i) {
    CHECK(rte_rawdev_start(i) == 0);
    node[i] = DRIVER(_get)(i);
    CHECK(node[i] != NULL);
    CHECK(DRIVER(_address)(node[i], mac[i]) == 0);
  }
  for (int i = 0; i < 2; ++i) {
    uint32_t same;
    CHECK(DRIVER(_peer)(node[i], mac[i], &peer[i]) == -EINVAL); /* oneself */
    CHECK(DRIVER(_peer)(node[i], mac[1 - i], &peer[i]) == 0);
    CHECK(DRIVER(_peer)(node[i], mac[1 - i], &same) == 0 && same == peer[i]);
  }
}

/* Whether a node has an event; its only one: its connection has been made, or has ended. */
static inline bool has_event(int side, bool up) {
  struct DRIVER(_event) event;
  if (DRIVER(_event)(node[side], &event) != 0) return false;
  CHECK(event.up == up && event.peer == peer[side] && (event.reason == NULL) == up);
  CHECK(DRIVER(_event)(node[side], &event) == -ENOENT);
  return true;
}

/* Opening by hand. `wrong`: a configuration that is refused. */
static inline void test_handles_of_its_own(const struct DRIVER(_conf) * wrong) {
  CHECK(DRIVER(_open)(NULL, NULL) == NULL && rte_errno == EINVAL);
  CHECK(DRIVER(_open)("port:nobody", NULL) == NULL);
  CHECK(strstr(DRIVER(_error)(), "port:nobody") != NULL);
  CHECK(DRIVER(_open)("port:net_ring_a", wrong) == NULL);
  CHECK(DRIVER(_error)()[0] != '\0');
  DRIVER(_close)(NULL);
}

/* From now on only node 0 is polled. */
static inline void stop_node_1(void) {
  rte_rawdev_stop(1);
  CHECK(DRIVER(_get)(1) == NULL && rte_errno == ENETDOWN);
  node[1] = node[0];
}

/* Starts rawdev 1 once more, and ends both. */
static inline void restart_and_close(void) {
  CHECK(rte_rawdev_start(1) == 0);
  rte_rawdev_stop(1);
  rte_rawdev_stop(0);
  CHECK(rte_rawdev_xstats_by_name_get(0, "link_frames_sent", NULL) == 0);
  CHECK(rte_rawdev_close(0) == 0 && rte_rawdev_close(1) == 0);
}

/* Of rawdev 0, which has sent frames and counted `counted`. */
static inline void check_xstats(const char* counted) {
  static struct rte_rawdev_xstats_name names[256];
  const int count = rte_rawdev_xstats_names_get(0, names, 256);
  CHECK(count > 50 && count <= 256);
  unsigned id = 0;
  CHECK(rte_rawdev_xstats_by_name_get(0, counted, &id) > 0);
  CHECK(strcmp(names[id].name, counted) == 0);
  CHECK(rte_rawdev_xstats_by_name_get(0, "link_frames_sent", NULL) > 0);
  CHECK(rte_rawdev_xstats_by_name_get(0, "nonsense", NULL) == UINT64_MAX);
  uint64_t value = 0;
  CHECK(rte_rawdev_xstats_get(0, &id, &value, 1) == 1 && value > 0);
  CHECK(rte_rawdev_xstats_reset(0, &id, 1) == 0);
  CHECK(rte_rawdev_xstats_by_name_get(0, counted, NULL) == 0);
  CHECK(rte_rawdev_xstats_by_name_get(0, "link_frames_sent", NULL) > 0);
  CHECK(rte_rawdev_xstats_reset(0, NULL, 0) == 0);
  CHECK(rte_rawdev_xstats_by_name_get(0, "link_frames_sent", NULL) == 0);
}

#endif
