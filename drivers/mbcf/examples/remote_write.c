/* One program writes into the memory of another.
 *
 *   remote_write net_memif0,role=server,socket=/tmp/m.sock,socket-abstract=no
 *   remote_write net_memif0,role=client,socket=/tmp/m.sock,socket-abstract=no ADDRESS KEY
 *
 * The first prints its address and the key of its memory, which the second is given. Build it with
 * cc remote_write.c $(pkg-config --cflags --libs viaduct-mbcf). */
#include <inttypes.h>
#include <rte_pmd_mbcf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void fail(const char* what, const char* why) {
  fprintf(stderr, "remote_write: %s: %s\n", what, why);
  exit(1);
}
static void check(int status, const char* what) {
  if (status != 0) fail(what, strerror(-status));
}

/* The driver has no threads of its own: nothing moves unless the program polls. */
static void poll_node(struct rte_pmd_mbcf* node) {
  check(rte_pmd_mbcf_poll(node), "poll");
}

/* Waits for the completion of a request. `issued` is what issuing it returned. Only one request is
 * open at a time here, so the next completion is its own. Returns what the word held before, for
 * atomic requests. */
static uint64_t complete(struct rte_pmd_mbcf* node, int issued, const char* what) {
  struct rte_pmd_mbcf_completion done;
  check(issued, what);
  while (rte_pmd_mbcf_completion(node, &done) != 0) poll_node(node);
  check(done.status, what);
  return done.value;
}

/* The layout of the memory that the first program registers. */
struct shared {
  uint64_t count;
  char text[64];
};

/* The second program, the initiator: writes a text into the other's memory and adds to its word. */
static void write_there(struct rte_pmd_mbcf* node, const char* address, const char* key) {
  static const char text[] = "written from afar";
  uint8_t mac[6];
  struct rte_pmd_mbcf_remote at = {.key = strtoull(key, NULL, 0)};
  if (sscanf(address, "%2" SCNx8 ":%2" SCNx8 ":%2" SCNx8 ":%2" SCNx8 ":%2" SCNx8 ":%2" SCNx8,
             &mac[0], &mac[1], &mac[2], &mac[3], &mac[4], &mac[5]) != 6)
    fail(address, "not an address like 02:00:00:00:00:01");
  check(rte_pmd_mbcf_peer(node, mac, &at.peer), "peer");
  at.offset = offsetof(struct shared, text);
  complete(node, rte_pmd_mbcf_write(node, &at, text, sizeof text, NULL, NULL, NULL), "write");
  at.offset = offsetof(struct shared, count);
  const uint64_t before =
      complete(node, rte_pmd_mbcf_fetch_add(node, &at, 8, 1, NULL, NULL), "fetch_add");
  printf("before: %" PRIu64 "\n", before);
}

/* The first program, the target: registers memory and polls until the initiator has left. */
static void offer(struct rte_pmd_mbcf* node) {
  static struct shared shared = {.count = 41};
  uint8_t mac[6];
  uint64_t key;
  struct rte_pmd_mbcf_event event;
  check(rte_pmd_mbcf_address(node, mac), "address");
  check(rte_pmd_mbcf_export(node, &shared, sizeof shared, RTE_PMD_MBCF_WRITE | RTE_PMD_MBCF_ATOMIC,
                            &key),
        "export");
  printf("%02x:%02x:%02x:%02x:%02x:%02x %" PRIu64 "\n", mac[0], mac[1], mac[2], mac[3], mac[4],
         mac[5], key);
  fflush(stdout);
  do poll_node(node); /* until the other side ends the connection */
  while (rte_pmd_mbcf_event(node, &event) != 0 || event.up);
  printf("%s, %" PRIu64 "\n", shared.text, shared.count);
}

int main(int argc, char** argv) {
  if (argc != 2 && argc != 4) {
    fprintf(stderr, "usage: remote_write PORT [ADDRESS KEY]\n");
    return 2;
  }
  struct rte_pmd_mbcf* node = rte_pmd_mbcf_open(argv[1], NULL);
  if (node == NULL) fail(argv[1], rte_pmd_mbcf_error());
  if (argc == 4)
    write_there(node, argv[2], argv[3]);
  else
    offer(node);
  rte_pmd_mbcf_close(node);
  return 0;
}
