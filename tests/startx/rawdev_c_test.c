/* The C header from a C11 program that is linked with the plugin: two rawdevs on two ring ports of
 * this process talk to each other through every call. */
#include <inttypes.h>

#include "rte_pmd_startx.h"

#define DRIVER(name) rte_pmd_startx##name
#include "tests/rawdev/ring_pair.h"

enum { TRANSFER = 200000 };

static uint8_t memory[2][TRANSFER];

static void test_pio(void) {
  struct rte_pmd_startx_packet packet = {.tag = 42, .words = 3, .payload = {1, 2, 3}};
  for (int p = RTE_PMD_STARTX_HIGH; p <= RTE_PMD_STARTX_LOW; ++p) {
    const enum rte_pmd_startx_priority priority = (enum rte_pmd_startx_priority)p;
    CHECK(rte_pmd_startx_send(node[0], peer[0], priority, &packet) == 0);
    const struct rte_pmd_startx_received* got;
    WAIT_FOR((got = rte_pmd_startx_peek(node[1], priority)) != NULL);
    CHECK(got->tag == 42 && got->words == 3 && got->payload[2] == 3 && got->from == peer[1]);
    CHECK(got->order == RTE_PMD_STARTX_ORDERED);
    rte_pmd_startx_pop(node[1], priority);
    CHECK(rte_pmd_startx_peek(node[1], priority) == NULL);
  }
  packet.words = 23;
  CHECK(rte_pmd_startx_send(node[0], peer[0], RTE_PMD_STARTX_HIGH, &packet) == -EMSGSIZE);
  packet.words = 2;
  packet.order = 2;
  CHECK(rte_pmd_startx_send(node[0], peer[0], RTE_PMD_STARTX_HIGH, &packet) == -EINVAL);
  packet.order = RTE_PMD_STARTX_UNORDERED;
  CHECK(rte_pmd_startx_send(node[0], 0, RTE_PMD_STARTX_HIGH, &packet) == -EHOSTDOWN);
  CHECK(rte_pmd_startx_send(node[0], peer[0], (enum rte_pmd_startx_priority)2, &packet) == -EINVAL);
  CHECK(rte_pmd_startx_send(NULL, peer[0], RTE_PMD_STARTX_HIGH, &packet) == -EINVAL);
  CHECK(rte_pmd_startx_send(node[0], peer[0], RTE_PMD_STARTX_HIGH, NULL) == -EINVAL);
}

static void test_queues(void) {
  const enum rte_pmd_startx_priority low = RTE_PMD_STARTX_LOW;
  uint32_t sent = 0, received = 0;
  for (deadline = time(NULL) + 30; received < 5000 && waiting();) {
    struct rte_pmd_startx_outgoing* entry;
    while (sent < 5000 && (entry = rte_pmd_startx_reserve(node[0], low)) != NULL) {
      entry->to = peer[0];
      entry->packet.tag = sent++;
      entry->packet.words = 2;
      entry->packet.order = RTE_PMD_STARTX_ORDERED;
      rte_pmd_startx_commit(node[0], low);
    }
    const struct rte_pmd_startx_received* got;
    while ((got = rte_pmd_startx_queue_peek(node[1], low)) != NULL) {
      CHECK(got->tag == received++);
      rte_pmd_startx_queue_pop(node[1], low);
    }
  }
}

static void await_status(int side, uint32_t transfer, bool receiving, uint64_t length, int status) {
  struct rte_pmd_startx_completion done;
  int error;
  WAIT_FOR((error = rte_pmd_startx_completion(node[side], &done)) != -ENOENT);
  CHECK(error == 0 && done.transfer == transfer && done.status == status && done.length == length);
  CHECK(done.receiving == receiving && done.peer == peer[side]);
}
static void await(int side, uint32_t transfer, bool receiving, uint64_t length) {
  await_status(side, transfer, receiving, length, 0);
}

static void test_rdma(void) {
  uint32_t region[2], transfer[2], extra;
  for (int i = 0; i < 2; ++i)
    CHECK(rte_pmd_startx_register(node[i], memory[i], TRANSFER, &region[i]) == 0);
  for (uint32_t n = 0; n < TRANSFER; ++n) memory[0][n] = (uint8_t)(n * 5 + n / 256);
  const struct rte_pmd_startx_bytes from = {region[0], 0, TRANSFER},
                                    into = {region[1], 0, TRANSFER}, bad = {region[1], 1, TRANSFER};

  CHECK(rte_pmd_startx_post(node[1], peer[1], 9, &bad, &transfer[1]) == -EFAULT);
  CHECK(rte_pmd_startx_post(node[1], 0, 8, &into, &extra) == 0);
  CHECK(rte_pmd_startx_post(node[1], peer[1], 9, &into, &transfer[1]) == 0);
  CHECK(rte_pmd_startx_request(node[0], peer[0], 9, &from, &transfer[0]) == 0);
  await(0, transfer[0], false, TRANSFER);
  await(1, transfer[1], true, TRANSFER);
  CHECK(memcmp(memory[0], memory[1], TRANSFER) == 0);
  CHECK(rte_pmd_startx_deregister(node[1], region[1]) == -EBUSY); /* tag 8 is still posted */
  CHECK(rte_pmd_startx_cancel(node[1], extra) == 0);
  CHECK(rte_pmd_startx_cancel(node[1], extra) == -ENOENT);

  memset(memory[1], 0, TRANSFER);
  struct rte_pmd_startx_right right;
  CHECK(rte_pmd_startx_grant(node[1], peer[1], &into, &right, &transfer[1]) == 0);
  CHECK(rte_pmd_startx_write(node[0], peer[0], &right, &from, &transfer[0]) == 0);
  await(0, transfer[0], false, TRANSFER);
  await(1, transfer[1], true, TRANSFER);
  CHECK(memcmp(memory[0], memory[1], TRANSFER) == 0);

  CHECK(rte_pmd_startx_revoke(node[1], transfer[1]) == -ENOENT); /* it has been used up */
  CHECK(rte_pmd_startx_grant(node[1], peer[1], &into, &right, &transfer[1]) == 0);
  CHECK(rte_pmd_startx_revoke(NULL, transfer[1]) == -EINVAL);
  CHECK(rte_pmd_startx_revoke(node[1], transfer[1]) == 0);
  CHECK(rte_pmd_startx_write(node[0], peer[0], &right, &from, &transfer[0]) == 0);
  await_status(0, transfer[0], false, TRANSFER, -ESTALE);
  for (int i = 0; i < 2; ++i) CHECK(rte_pmd_startx_deregister(node[i], region[i]) == 0);
  CHECK(rte_pmd_startx_deregister(node[0], region[0]) == -ENOENT);
}

static void test_rawdev_queues(void) {
  CHECK(rte_rawdev_queue_count(0) == RTE_PMD_STARTX_QUEUES);
  for (uintptr_t queue = 0; queue < RTE_PMD_STARTX_QUEUES; ++queue) {
    CHECK(rte_rawdev_queue_setup(0, (uint16_t)queue, NULL, 0) == 0);
    struct rte_pmd_startx_outgoing out[4];
    struct rte_pmd_startx_received in[4];
    struct rte_rawdev_buf buffer[4], *buffers[4];
    for (uint32_t n = 0; n < 4; ++n) {
      out[n] = (struct rte_pmd_startx_outgoing){
          .to = peer[0], .packet = {.tag = n, .words = 2, .payload = {n, ~n}}};
      buffer[n].buf_addr = &out[n];
      buffers[n] = &buffer[n];
    }
    CHECK(rte_rawdev_enqueue_buffers(0, buffers, 4, (rte_rawdev_obj_t)queue) == 4);
    for (uint32_t n = 0; n < 4; ++n) buffer[n].buf_addr = &in[n];
    uint32_t got = 0;
    for (deadline = time(NULL) + 30; got < 4 && waiting();) {
      const int n = rte_rawdev_dequeue_buffers(1, buffers + got, 4 - got, (rte_rawdev_obj_t)queue);
      CHECK(n >= 0);
      got += (uint32_t)n;
    }
    for (uint32_t n = 0; n < 4; ++n)
      CHECK(in[n].tag == n && in[n].words == 2 && in[n].payload[0] == n && in[n].payload[1] == ~n);
  }
  CHECK(rte_rawdev_queue_setup(0, RTE_PMD_STARTX_QUEUES, NULL, 0) < 0);
  struct rte_rawdev_buf* none[1] = {NULL};
  CHECK(rte_rawdev_enqueue_buffers(0, none, 1, (rte_rawdev_obj_t)(uintptr_t)9) == -EINVAL);
  CHECK(rte_rawdev_enqueue_buffers(0, none, 1, (rte_rawdev_obj_t)(uintptr_t)0) == -EINVAL);
}

int main(void) {
  start_eal("rawdev_c_test", "rawdev_startx0,port=net_ring_a,queue_depth=64",
            "rawdev_startx1,port=net_ring_b");
  struct rte_pmd_startx_conf conf;
  struct rte_rawdev_info info = {.dev_private = &conf};
  CHECK(rte_rawdev_info_get(0, &info, sizeof conf) == 0);
  CHECK(conf.queue_depth == 64 && conf.max_open == 16);
  conf.queue_depth = 128;
  CHECK(rte_rawdev_configure(0, &info, sizeof conf) == 0);
  CHECK(rte_rawdev_info_get(0, &info, sizeof conf) == 0 && conf.queue_depth == 128);

  CHECK(rte_rawdev_selftest(0) == 0);
  start();
  test_pio();
  test_queues();
  test_rdma();
  CHECK(has_event(0, true));
  test_rawdev_queues();
  check_xstats("startx_pio_high_sent");
  CHECK(rte_rawdev_dump(0, stdout) == 0);
  test_handles_of_its_own(&(struct rte_pmd_startx_conf){.queue_depth = 1000});
  stop_node_1();
  WAIT_FOR(has_event(0, false));
  restart_and_close();
  end_eal();
  puts("ok");
  return 0;
}
