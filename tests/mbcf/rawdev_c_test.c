/* The C header from a C11 program that is linked with the plugin: two rawdevs on two ring ports of
 * this process ask each other for everything. */
#include <inttypes.h>
#include <sys/resource.h>

#include "rte_pmd_mbcf.h"

#define DRIVER(name) rte_pmd_mbcf##name
#include "tests/rawdev/ring_pair.h"

enum {
  LONG = 200000,
  WORDS = 64,
  ALL = RTE_PMD_MBCF_READ | RTE_PMD_MBCF_WRITE | RTE_PMD_MBCF_ATOMIC
};

/* What node 1 offers, and how node 0 names it. */
static struct {
  uint64_t words[WORDS / 8];
  uint8_t bytes[LONG];
} shared;
static uint64_t segment, signal_key, fifo_key;
static struct rte_pmd_mbcf_fifo* fifo;
static uint64_t signals;
static uint8_t source[LONG], sink[LONG];

static struct rte_pmd_mbcf_remote at(uint64_t offset) {
  return (struct rte_pmd_mbcf_remote){.peer = peer[0], .key = segment, .offset = offset};
}

/* Node 0's next completion, which must be this one. Returns the former value. */
static uint64_t await(uint32_t request, int status, uint64_t context) {
  struct rte_pmd_mbcf_completion done;
  int error;
  WAIT_FOR((error = rte_pmd_mbcf_completion(node[0], &done)) != -ENOENT);
  CHECK(error == 0 && done.request == request && done.peer == peer[0]);
  CHECK(done.status == status && done.context == context);
  return done.value;
}

static void count_signals(void* user, uint64_t count) {
  *(uint64_t*)user += count;
}

static void test_offering(void) {
  uint64_t key = 0;
  CHECK(rte_pmd_mbcf_export(node[1], &shared, sizeof shared, ALL, &segment) == 0);
  CHECK(rte_pmd_mbcf_export(node[1], &shared, sizeof shared, 8, &key) == -EINVAL);
  CHECK(rte_pmd_mbcf_export(node[1], NULL, 1, ALL, &key) == -EINVAL);
  CHECK(rte_pmd_mbcf_export(NULL, &shared, 1, ALL, &key) == -EINVAL);
  CHECK(rte_pmd_mbcf_export(node[1], &shared, 1, ALL, NULL) == -EINVAL);
  CHECK(rte_pmd_mbcf_create_fifo(node[1], 16384, &fifo, &fifo_key) == 0);
  CHECK(rte_pmd_mbcf_fifo_key(fifo) == fifo_key && rte_pmd_mbcf_fifo_capacity(fifo) == 16384);
  struct rte_pmd_mbcf_fifo* none;
  CHECK(rte_pmd_mbcf_create_fifo(node[1], 0, &none, &key) == -EINVAL);
  CHECK(rte_pmd_mbcf_create_fifo(node[1], 1, NULL, &key) == -EINVAL);
  CHECK(rte_pmd_mbcf_fifo_key(NULL) == 0 && rte_pmd_mbcf_fifo_capacity(NULL) == 0);
  CHECK(rte_pmd_mbcf_create_signal(node[1], count_signals, &signals, &signal_key) == 0);
  CHECK(rte_pmd_mbcf_create_signal(node[1], NULL, NULL, &key) == -EINVAL);
  CHECK(segment != 0 && fifo_key != 0 && signal_key != 0);
  /* rawdev 0 has max_keys=2 */
  uint64_t keys[3];
  for (int i = 0; i < 2; ++i) CHECK(rte_pmd_mbcf_export(node[0], source, LONG, 0, &keys[i]) == 0);
  CHECK(rte_pmd_mbcf_export(node[0], source, LONG, 0, &keys[2]) == -ENOSPC && keys[2] == 0);
  CHECK(rte_pmd_mbcf_create_fifo(node[0], 1, &none, &keys[2]) == -ENOSPC && none == NULL);
  for (int i = 0; i < 2; ++i) CHECK(rte_pmd_mbcf_withdraw(node[0], keys[i]) == 0);
  CHECK(rte_pmd_mbcf_withdraw(node[0], keys[0]) == -ENOENT);
  CHECK(rte_pmd_mbcf_withdraw(node[0], 0) == -ENOENT);
}

/* Bytes of address space in use. */
static rlim_t address_space(void) {
  unsigned long pages = 0;
  FILE* file = fopen("/proc/self/statm", "r");
  CHECK(file != NULL && fscanf(file, "%lu", &pages) == 1);
  fclose(file);
  return (rlim_t)pages * (rlim_t)getpagesize();
}

/* What the system has no more of is said by number and by name. */
static void test_shortages(void) {
  struct rlimit before, tight;
  struct rte_pmd_mbcf_fifo* none;
  uint64_t key;
  int fd;
  CHECK(getrlimit(RLIMIT_AS, &before) == 0);
  tight = before;
  tight.rlim_cur = address_space() + (32u << 20);
  CHECK(setrlimit(RLIMIT_AS, &tight) == 0);
  CHECK(rte_pmd_mbcf_create_fifo(node[1], 64u << 20, &none, &key) == -ENOMEM);
  CHECK(strstr(rte_pmd_mbcf_error(), "cannot be mapped") != NULL);
  CHECK(setrlimit(RLIMIT_AS, &before) == 0);
  CHECK(getrlimit(RLIMIT_NOFILE, &before) == 0);
  tight = before;
  tight.rlim_cur = 0;
  CHECK(setrlimit(RLIMIT_NOFILE, &tight) == 0);
  CHECK(rte_pmd_mbcf_create_fifo(node[1], 4096, &none, &key) == -EMFILE);
  CHECK(rte_pmd_mbcf_create_signal_fd(node[1], &fd, &key) == -EMFILE);
  CHECK(strstr(rte_pmd_mbcf_error(), "no file descriptor") != NULL);
  CHECK(setrlimit(RLIMIT_NOFILE, &before) == 0);
}

static void test_memory(void) {
  const struct rte_pmd_mbcf_options options = {.context = 77};
  struct rte_pmd_mbcf_remote there = at(WORDS);
  uint32_t request;
  for (uint32_t n = 0; n < LONG; ++n) source[n] = (uint8_t)(n * 5 + n / 256);
  for (size_t length = 0; length <= LONG; length = length * 20 + 10) {
    CHECK(rte_pmd_mbcf_write(node[0], &there, source, length, NULL, &options, &request) == 0);
    await(request, 0, 77);
    CHECK(memcmp(shared.bytes, source, length) == 0);
    CHECK(rte_pmd_mbcf_read(node[0], &there, sink, length, NULL, &request) == 0);
    await(request, 0, 0);
    CHECK(memcmp(sink, source, length) == 0);
  }
  there.offset = sizeof shared - 3;
  CHECK(rte_pmd_mbcf_write(node[0], &there, source, 4, NULL, NULL, &request) == 0);
  await(request, -ERANGE, 0);
  there.key = fifo_key;
  CHECK(rte_pmd_mbcf_read(node[0], &there, sink, 4, NULL, &request) == 0);
  await(request, -EPROTOTYPE, 0);
  there.key = segment ^ 1u << 20;
  CHECK(rte_pmd_mbcf_read(node[0], &there, sink, 4, NULL, &request) == 0);
  await(request, -ENOENT, 0);
  const struct rte_pmd_mbcf_options bad = {.flags = 4};
  CHECK(rte_pmd_mbcf_write(node[0], &there, source, 4, NULL, &bad, NULL) == -EINVAL);
  CHECK(rte_pmd_mbcf_write(node[0], &there, NULL, 4, NULL, NULL, NULL) == -EINVAL);
  CHECK(rte_pmd_mbcf_write(node[0], NULL, source, 4, NULL, NULL, NULL) == -EINVAL);
  CHECK(rte_pmd_mbcf_read(NULL, &there, sink, 4, NULL, NULL) == -EINVAL);
  there.peer = 0;
  CHECK(rte_pmd_mbcf_write(node[0], &there, source, 4, NULL, NULL, NULL) == -EHOSTDOWN);
}

static void test_atomics(void) {
  struct rte_pmd_mbcf_remote word = at(0);
  uint32_t request;
  shared.words[0] = 40;
  CHECK(rte_pmd_mbcf_fetch_add(node[0], &word, 8, 2, NULL, &request) == 0);
  CHECK(await(request, 0, 0) == 40 && shared.words[0] == 42);
  CHECK(rte_pmd_mbcf_swap(node[0], &word, 4, 7, NULL, &request) == 0);
  CHECK(await(request, 0, 0) == 42 && shared.words[0] == 7);
  CHECK(rte_pmd_mbcf_compare_swap(node[0], &word, 8, 6, 9, NULL, &request) == 0);
  CHECK(await(request, 0, 0) == 7 && shared.words[0] == 7);
  CHECK(rte_pmd_mbcf_compare_swap(node[0], &word, 8, 7, 9, NULL, &request) == 0);
  CHECK(await(request, 0, 0) == 7 && shared.words[0] == 9);
  CHECK(rte_pmd_mbcf_swap(node[0], &word, 2, 7, NULL, NULL) == -EINVAL);
  CHECK(rte_pmd_mbcf_fetch_add(node[0], &word, 0, 7, NULL, NULL) == -EINVAL);
  CHECK(rte_pmd_mbcf_compare_swap(node[0], &word, 16, 7, 9, NULL, NULL) == -EINVAL);
  word.offset = 4;
  CHECK(rte_pmd_mbcf_swap(node[0], &word, 8, 7, NULL, &request) == 0);
  await(request, -EFAULT, 0);
}

/* Rights, and what became of a key. */
static void test_rights(void) {
  uint64_t key;
  uint32_t request;
  CHECK(rte_pmd_mbcf_export(node[1], sink, LONG, RTE_PMD_MBCF_READ, &key) == 0);
  const struct rte_pmd_mbcf_remote there = {.peer = peer[0], .key = key};
  CHECK(rte_pmd_mbcf_write(node[0], &there, source, 4, NULL, NULL, &request) == 0);
  await(request, -EACCES, 0);
  CHECK(rte_pmd_mbcf_fetch_add(node[0], &there, 8, 1, NULL, &request) == 0);
  await(request, -EACCES, 0);
  CHECK(rte_pmd_mbcf_withdraw(node[1], key) == 0);
  CHECK(rte_pmd_mbcf_write(node[0], &there, source, 4, NULL, NULL, &request) == 0);
  await(request, -ESTALE, 0);
}

static void test_signals(void) {
  uint32_t request;
  uint64_t key, count = 0;
  int fd = -1;
  signals = 0;
  for (int n = 0; n < 10; ++n) {
    CHECK(rte_pmd_mbcf_signal(node[0], peer[0], signal_key, NULL, &request) == 0);
    await(request, 0, 0);
  }
  CHECK(signals == 10);
  CHECK(rte_pmd_mbcf_create_signal_fd(node[1], &fd, &key) == 0 && fd >= 0);
  CHECK(read(fd, &count, sizeof count) < 0); /* nothing yet, and it does not block */
  CHECK(rte_pmd_mbcf_signal(node[0], peer[0], key, NULL, NULL) == 0);
  CHECK(rte_pmd_mbcf_signal(node[0], peer[0], key, NULL, &request) == 0);
  struct rte_pmd_mbcf_completion done;
  WAIT_FOR(rte_pmd_mbcf_completion(node[0], &done) == 0 && done.request == request);
  CHECK(read(fd, &count, sizeof count) == sizeof count && count == 2);
  CHECK(rte_pmd_mbcf_withdraw(node[1], key) == 0);
}

static int append(uint32_t writer, uint32_t head, size_t length, uint32_t* request) {
  return rte_pmd_mbcf_append(node[0], writer, &head, sizeof head, source, length, NULL, request);
}

static void test_fifo(void) {
  uint32_t writer, same, request;
  uint64_t capacity;
  CHECK(rte_pmd_mbcf_open_writer(node[0], peer[0], fifo_key, &writer) == 0);
  CHECK(rte_pmd_mbcf_open_writer(node[0], peer[0], fifo_key, &same) == 0 && same == writer);
  WAIT_FOR(rte_pmd_mbcf_capacity(node[0], writer, &capacity) == 0);
  CHECK(capacity == rte_pmd_mbcf_fifo_capacity(fifo));
  struct rte_pmd_mbcf_entry entry;
  CHECK(rte_pmd_mbcf_fifo_front(fifo, &entry) == -ENOENT);
  int error;
  for (uint32_t n = 0; n < 100; ++n) {
    const size_t length = n % 10 == 9 ? 9000 : n * 10;
    WAIT_FOR((error = append(writer, n, length, &request)) != -EAGAIN);
    CHECK(error == 0);
    await(request, 0, 0);
    CHECK(rte_pmd_mbcf_fifo_front(fifo, &entry) == 0);
    CHECK(entry.from == peer[1] && entry.length == sizeof n + length);
    CHECK(memcmp(entry.bytes, &n, sizeof n) == 0);
    CHECK(memcmp((const uint8_t*)entry.bytes + sizeof n, source, length) == 0);
    rte_pmd_mbcf_fifo_pop(fifo);
  }
  /* Full: nobody takes anything out. */
  uint32_t entries = 0;
  for (deadline = time(NULL) + 30; waiting();) {
    error = append(writer, entries, 1000, &request);
    if (error == -EAGAIN && entries * 1088 > 14000) break;
    CHECK(error == 0 || error == -EAGAIN);
    if (error == 0) await(request, 0, 0), ++entries;
  }
  for (; rte_pmd_mbcf_fifo_front(fifo, &entry) == 0; --entries) rte_pmd_mbcf_fifo_pop(fifo);
  CHECK(entries == 0);
  CHECK(append(writer, 0, 20000, NULL) == -EMSGSIZE);
  CHECK(rte_pmd_mbcf_append(node[0], writer, source, 129, NULL, 0, NULL, NULL) == -EMSGSIZE);
  CHECK(rte_pmd_mbcf_append(node[0], writer, NULL, 1, NULL, 0, NULL, NULL) == -EINVAL);
  CHECK(rte_pmd_mbcf_close_writer(node[0], writer) == 0);
  CHECK(append(writer, 0, 0, NULL) == -ENOENT);
  /* A writer of what is no FIFO says so. */
  CHECK(rte_pmd_mbcf_open_writer(node[0], peer[0], segment, &writer) == 0);
  WAIT_FOR((error = append(writer, 0, 0, NULL)) != -EAGAIN);
  CHECK(error == -EPROTOTYPE);
  CHECK(rte_pmd_mbcf_close_writer(node[0], writer) == 0);
}

static void test_combinations(void) {
  const struct rte_pmd_mbcf_remote there = at(WORDS);
  uint32_t writer, request;
  WAIT_FOR(rte_pmd_mbcf_open_writer(node[0], peer[0], fifo_key, &writer) == 0);
  struct rte_pmd_mbcf_then then = {
      .kind = RTE_PMD_MBCF_THEN_ENTRY, .writer = writer, .entry = "hello", .length = 5};
  int error;
  WAIT_FOR((error = rte_pmd_mbcf_write(node[0], &there, source, 100, &then, NULL, &request)) !=
           -EAGAIN);
  CHECK(error == 0);
  await(request, 0, 0);
  struct rte_pmd_mbcf_entry entry;
  CHECK(rte_pmd_mbcf_fifo_front(fifo, &entry) == 0);
  CHECK(entry.length == 5 && memcmp(entry.bytes, "hello", 5) == 0);
  rte_pmd_mbcf_fifo_pop(fifo);

  signals = 0;
  then = (struct rte_pmd_mbcf_then){.kind = RTE_PMD_MBCF_THEN_SIGNAL, .key = signal_key};
  CHECK(rte_pmd_mbcf_write(node[0], &there, source, LONG, &then, NULL, &request) == 0);
  await(request, 0, 0);
  CHECK(signals == 1);

  then = (struct rte_pmd_mbcf_then){
      .kind = RTE_PMD_MBCF_THEN_FLAG, .key = segment, .offset = 8, .value = 5, .width = 4};
  shared.words[1] = ~UINT64_C(0);
  CHECK(rte_pmd_mbcf_write(node[0], &there, source, 3, &then, NULL, &request) == 0);
  await(request, 0, 0);
  CHECK(shared.words[1] == UINT64_C(0xffffffff00000005));
  then.width = 3;
  CHECK(rte_pmd_mbcf_write(node[0], &there, source, 3, &then, NULL, NULL) == -EINVAL);
  then.kind = 9;
  CHECK(rte_pmd_mbcf_write(node[0], &there, source, 3, &then, NULL, NULL) == -EINVAL);
  then = (struct rte_pmd_mbcf_then){.kind = RTE_PMD_MBCF_THEN_ENTRY, .writer = writer, .length = 1};
  CHECK(rte_pmd_mbcf_write(node[0], &there, source, 3, &then, NULL, NULL) == -EINVAL);
  then = (struct rte_pmd_mbcf_then){
      .kind = RTE_PMD_MBCF_THEN_ENTRY, .writer = writer, .entry = source, .length = 129};
  CHECK(rte_pmd_mbcf_write(node[0], &there, source, 3, &then, NULL, NULL) == -EMSGSIZE);
  CHECK(rte_pmd_mbcf_close_writer(node[0], writer) == 0);
}

/* Silent requests have no completion; a fence tells that they are done. */
static void test_silence(void) {
  const struct rte_pmd_mbcf_options silent = {.flags = RTE_PMD_MBCF_BATCH | RTE_PMD_MBCF_SILENT};
  const struct rte_pmd_mbcf_remote there = at(WORDS);
  uint32_t request;
  memset(shared.bytes, 0, 1000);
  for (size_t n = 0; n < 1000; n += 10) {
    struct rte_pmd_mbcf_remote place = at(WORDS + n);
    WAIT_FOR(rte_pmd_mbcf_write(node[0], &place, source + n, 10, NULL, &silent, NULL) == 0);
  }
  CHECK(rte_pmd_mbcf_fence(node[0], peer[0], NULL, &request) == 0);
  await(request, 0, 0);
  CHECK(memcmp(shared.bytes, source, 1000) == 0);
  struct rte_pmd_mbcf_remote nowhere = there;
  nowhere.offset = sizeof shared;
  CHECK(rte_pmd_mbcf_write(node[0], &nowhere, source, 1, NULL, &silent, &request) == 0);
  await(request, -ERANGE, 0);
}

/* One after the other into consecutive buffers. */
static void dequeue_all(uint16_t device, uintptr_t queue, void* first, size_t size, int count) {
  for (deadline = time(NULL) + 30; count > 0 && waiting();) {
    struct rte_rawdev_buf buffer = {.buf_addr = first}, *buffers[1] = {&buffer};
    const int n = rte_rawdev_dequeue_buffers(device, buffers, 1, (rte_rawdev_obj_t)queue);
    CHECK(n >= 0);
    if (n == 1) first = (uint8_t*)first + size, --count;
  }
}

static void test_rawdev_queues(void) {
  CHECK(rte_rawdev_queue_count(0) == RTE_PMD_MBCF_QUEUES);
  for (uint16_t queue = 0; queue < RTE_PMD_MBCF_QUEUES; ++queue)
    CHECK(rte_rawdev_queue_setup(0, queue, NULL, 0) == 0);
  CHECK(rte_rawdev_queue_setup(0, RTE_PMD_MBCF_QUEUES, NULL, 0) < 0);
  uint32_t writer, word = 0;
  WAIT_FOR(rte_pmd_mbcf_open_writer(node[0], peer[0], fifo_key, &writer) == 0);
  shared.words[0] = 1;
  signals = 0;
  static char llo[] = "llo";
  struct rte_pmd_mbcf_request requests[8] = {
      {.op = RTE_PMD_MBCF_OP_FETCH_ADD, .at = at(0), .width = 8, .value = 1},
      {.op = RTE_PMD_MBCF_OP_SWAP, .at = at(0), .width = 8, .value = 10},
      {.op = RTE_PMD_MBCF_OP_COMPARE_SWAP, .at = at(0), .width = 8, .expected = 10, .value = 11},
      {.op = RTE_PMD_MBCF_OP_WRITE, .at = at(8), .local = source, .length = 4},
      {.op = RTE_PMD_MBCF_OP_READ, .at = at(8), .local = &word, .length = 4},
      {.op = RTE_PMD_MBCF_OP_SIGNAL, .at = {.peer = peer[0], .key = signal_key}},
      {.op = RTE_PMD_MBCF_OP_APPEND,
       .writer = writer,
       .head = "he",
       .head_length = 2,
       .local = llo,
       .length = 3},
      {.op = RTE_PMD_MBCF_OP_FENCE, .at = {.peer = peer[0]}}};
  struct rte_rawdev_buf buffer[8], *buffers[8];
  for (uint32_t n = 0; n < 8; ++n) {
    requests[n].options.context = n;
    buffer[n].buf_addr = &requests[n];
    buffers[n] = &buffer[n];
  }
  const rte_rawdev_obj_t queue = (rte_rawdev_obj_t)(uintptr_t)RTE_PMD_MBCF_REQUESTS;
  /* Stops where there is no room: the writer has no credit yet. */
  int taken_up = 0;
  for (deadline = time(NULL) + 30; taken_up < 8 && waiting();) {
    const int n = rte_rawdev_enqueue_buffers(0, buffers + taken_up, 8 - (unsigned)taken_up, queue);
    CHECK(n >= 0);
    taken_up += n;
  }
  struct rte_pmd_mbcf_completion done[8];
  dequeue_all(0, RTE_PMD_MBCF_REQUESTS, done, sizeof *done, 8);
  uint64_t values[8] = {0};
  for (uint32_t n = 0; n < 8; ++n) {
    CHECK(done[n].status == 0 && done[n].context < 8);
    CHECK(done[n].request == requests[done[n].context].request);
    values[done[n].context] = done[n].value;
  }
  CHECK(values[0] == 1 && values[1] == 2 && values[2] == 10 && shared.words[0] == 11);
  CHECK(memcmp(&word, source, 4) == 0 && signals == 1);

  char text[8];
  struct rte_pmd_mbcf_taken_entry taken = {.fifo = fifo, .into = text, .size = 4};
  buffer[0].buf_addr = &taken;
  const rte_rawdev_obj_t entries = (rte_rawdev_obj_t)(uintptr_t)RTE_PMD_MBCF_ENTRIES;
  CHECK(rte_rawdev_dequeue_buffers(1, buffers, 1, entries) == -EMSGSIZE && taken.length == 5);
  taken.size = sizeof text;
  CHECK(rte_rawdev_dequeue_buffers(1, buffers, 1, entries) == 1);
  CHECK(taken.length == 5 && taken.from == peer[1] && memcmp(text, "hello", 5) == 0);
  CHECK(rte_rawdev_dequeue_buffers(1, buffers, 1, entries) == 0);
  taken.into = NULL;
  CHECK(rte_rawdev_dequeue_buffers(1, buffers, 1, entries) == -EINVAL);

  struct rte_pmd_mbcf_event event;
  dequeue_all(0, RTE_PMD_MBCF_EVENTS, &event, sizeof event, 1);
  CHECK(event.up == 1 && event.peer == peer[0]);

  struct rte_rawdev_buf* none[1] = {NULL};
  CHECK(rte_rawdev_enqueue_buffers(0, none, 1, queue) == -EINVAL);
  buffer[0].buf_addr = &requests[0];
  CHECK(rte_rawdev_enqueue_buffers(0, buffers, 1, entries) == -EINVAL);
  requests[0].op = 99;
  CHECK(rte_rawdev_enqueue_buffers(0, buffers, 1, queue) == -EINVAL);
  CHECK(rte_pmd_mbcf_issue(node[0], NULL) == -EINVAL);
}

/* What is asked of a peer that ends is over. */
static void test_restart(void) {
  const struct rte_pmd_mbcf_remote there = at(0);
  uint32_t request;
  CHECK(rte_pmd_mbcf_write(node[0], &there, source, 8, NULL, NULL, &request) == 0);
  stop_node_1();
  await(request, -EHOSTDOWN, 0);
  CHECK(has_event(0, false));
  CHECK(rte_pmd_mbcf_signal(node[0], peer[0], signal_key, NULL, NULL) == -EHOSTDOWN);
  restart_and_close();
}

int main(void) {
  start_eal("mbcf_rawdev_c_test", "rawdev_mbcf0,port=net_ring_a,max_keys=3,max_requests=64",
            "rawdev_mbcf1,port=net_ring_b");
  struct rte_pmd_mbcf_conf conf;
  struct rte_rawdev_info info = {.dev_private = &conf};
  CHECK(rte_rawdev_info_get(0, &info, sizeof conf) == 0);
  CHECK(conf.max_keys == 3 && conf.max_requests == 64 && conf.max_writers == 4096);
  conf.max_keys = 2;
  CHECK(rte_rawdev_configure(0, &info, sizeof conf) == 0);
  CHECK(rte_rawdev_info_get(0, &info, sizeof conf) == 0 && conf.max_keys == 2);

  CHECK(rte_rawdev_selftest(0) == 0);
  start();
  test_offering();
  test_shortages();
  test_memory();
  test_atomics();
  test_rights();
  test_signals();
  test_fifo();
  test_combinations();
  test_silence();
  CHECK(has_event(1, true));
  test_rawdev_queues();
  check_xstats("mbcf_requests_issued");
  CHECK(rte_rawdev_dump(1, stdout) == 0);
  test_handles_of_its_own(&(struct rte_pmd_mbcf_conf){.max_keys = 70000});
  test_restart();
  end_eal();
  puts("ok");
  return 0;
}
