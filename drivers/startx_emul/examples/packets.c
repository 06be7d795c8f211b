/* Two programs on two ports exchange a packet.
 *
 *   packets net_memif0,role=server,socket=/tmp/m.sock,socket-abstract=no
 *   packets net_memif0,role=client,socket=/tmp/m.sock,socket-abstract=no ADDRESS
 *
 * The first program prints its Ethernet address, and the second is given that address. The first
 * waits for a packet and answers; the second sends one and prints the answer. Build it with
 * cc packets.c $(pkg-config --cflags --libs viaduct-startx). */
#include <errno.h>
#include <inttypes.h>
#include <rte_pmd_startx.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void fail(const char* what, const char* why) {
  fprintf(stderr, "packets: %s: %s\n", what, why);
  exit(1);
}
static void check(int status, const char* what) {
  if (status != 0) fail(what, strerror(-status));
}

/* The driver has no thread of its own: nothing is sent or received unless the program polls. */
static void poll_node(struct rte_pmd_startx* node) {
  check(rte_pmd_startx_poll(node), "poll");
}

/* -EAGAIN means that the queue to that peer is full: polling makes room. */
static void send_packet(struct rte_pmd_startx* node, uint32_t to, uint32_t word) {
  const struct rte_pmd_startx_packet packet = {.tag = 1, .words = 2, .payload = {word, word + 1}};
  int status;
  while ((status = rte_pmd_startx_send(node, to, RTE_PMD_STARTX_HIGH, &packet)) == -EAGAIN)
    poll_node(node);
  check(status, "send");
}

/* The first word of the next packet, and in `from` the peer that sent it. */
static uint32_t receive_packet(struct rte_pmd_startx* node, uint32_t* from) {
  const struct rte_pmd_startx_received* packet;
  struct rte_pmd_startx_event event;
  while ((packet = rte_pmd_startx_peek(node, RTE_PMD_STARTX_HIGH)) == NULL) {
    poll_node(node);
    if (rte_pmd_startx_event(node, &event) == 0 && !event.up) fail("the other side", event.reason);
  }
  const uint32_t word = packet->payload[0]; /* before the pop, which frees the entry */
  *from = packet->from;
  rte_pmd_startx_pop(node, RTE_PMD_STARTX_HIGH);
  return word;
}

/* The second program: connects by sending. */
static void ask(struct rte_pmd_startx* node, const char* address) {
  uint8_t mac[6];
  uint32_t peer;
  if (sscanf(address, "%2" SCNx8 ":%2" SCNx8 ":%2" SCNx8 ":%2" SCNx8 ":%2" SCNx8 ":%2" SCNx8,
             &mac[0], &mac[1], &mac[2], &mac[3], &mac[4], &mac[5]) != 6)
    fail(address, "not an address like 02:00:00:00:00:01");
  check(rte_pmd_startx_peer(node, mac, &peer), "peer");
  send_packet(node, peer, 41);
  printf("answer: %" PRIu32 "\n", receive_packet(node, &peer));
}

/* The first program: learns of its peer by the packet that arrives. */
static void answer(struct rte_pmd_startx* node) {
  uint8_t mac[6];
  uint32_t peer;
  struct rte_pmd_startx_event event;
  check(rte_pmd_startx_address(node, mac), "address");
  printf("%02x:%02x:%02x:%02x:%02x:%02x\n", mac[0], mac[1], mac[2], mac[3], mac[4], mac[5]);
  fflush(stdout);
  send_packet(node, (receive_packet(node, &peer), peer), 42);
  do poll_node(node); /* until the other side has the answer and ends the connection */
  while (rte_pmd_startx_event(node, &event) != 0 || event.up);
}

int main(int argc, char** argv) {
  if (argc != 2 && argc != 3) {
    fprintf(stderr, "usage: packets PORT [ADDRESS]\n");
    return 2;
  }
  struct rte_pmd_startx* node = rte_pmd_startx_open(argv[1], NULL);
  if (node == NULL) fail(argv[1], rte_pmd_startx_error());
  if (argc == 3)
    ask(node, argv[2]);
  else
    answer(node);
  rte_pmd_startx_close(node);
  return 0;
}
