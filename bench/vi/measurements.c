/* What bench/vi-connections measures beside counting: the paper's Figures 1 and 2. */
#include <stdio.h>
#include <stdlib.h>

#include "programs.h"

static char* allocate_buffer(int bytes) {
  char* const buffer = calloc(bytes > 0 ? (size_t)bytes : 1, 1);
  if (!buffer) fail("no memory for %d bytes", bytes);
  return buffer;
}

static int number(const char* text) {
  char* end;
  const long value = strtol(text, &end, 10);
  if (*text == '\0' || *end != '\0' || value < 0 || value > 1 << 30)
    fail("'%s' is not a number that makes sense here", text);
  return (int)value;
}

/* ---- Figure 1: latency and bandwidth
 * --------------------------------------------------------------
 *
 * Ranks 2 i and 2 i + 1 measure size i, one pair after the other. So each size has two processes
 * that have not talked before, and their connection falls into the first loop, as in the paper; the
 * second loop is without it. The turn is handed on from each rank to the one of the next pair. */

enum { kWindow = 16, kTurn = 99 };

typedef double Loop(char* buffer, int bytes, int messages, int peer, int first);

static double ping_pong(char* buffer, int bytes, int messages, int peer, int first) {
  const double began = MPI_Wtime();
  int i;
  for (i = 0; i < messages; ++i) {
    if (first) MPI_Send(buffer, bytes, MPI_BYTE, peer, 0, MPI_COMM_WORLD);
    MPI_Recv(buffer, bytes, MPI_BYTE, peer, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    if (!first) MPI_Send(buffer, bytes, MPI_BYTE, peer, 0, MPI_COMM_WORLD);
  }
  return MPI_Wtime() - began;
}

/* Windows of messages one way, and an answer when the last one has arrived. */
static double stream(char* buffer, int bytes, int messages, int peer, int first) {
  const double began = MPI_Wtime();
  MPI_Request window[kWindow];
  int sent = 0, n;
  while (sent < messages) {
    for (n = 0; n < kWindow && sent < messages; ++n, ++sent) {
      if (first)
        MPI_Isend(buffer, bytes, MPI_BYTE, peer, 0, MPI_COMM_WORLD, &window[n]);
      else
        MPI_Irecv(buffer + (size_t)n * (size_t)bytes, bytes, MPI_BYTE, peer, 0, MPI_COMM_WORLD,
                  &window[n]);
    }
    MPI_Waitall(n, window, MPI_STATUSES_IGNORE);
  }
  if (first)
    MPI_Recv(NULL, 0, MPI_BYTE, peer, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  else
    MPI_Send(NULL, 0, MPI_BYTE, peer, 1, MPI_COMM_WORLD);
  return MPI_Wtime() - began;
}

/* Prints microseconds for each message, with the connection and without it. */
static void measure_pair(Loop* loop, int argc, char** argv) {
  const int me = my_rank(), peer = me ^ 1, first = me % 2 == 0;
  int messages, bytes;
  char* buffer;
  if (argc < 2 || ranks() != 2 * (argc - 1))
    fail("give MESSAGES and BYTES..., and two ranks for each size");
  messages = number(argv[0]);
  bytes = number(argv[1 + me / 2]);
  buffer = allocate_buffer(bytes * kWindow);
  if (me >= 2) MPI_Recv(NULL, 0, MPI_BYTE, me - 2, kTurn, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  {
    const double with = loop(buffer, bytes, messages, peer, first);
    const double without = loop(buffer, bytes, messages, peer, first);
    const double us = 1e6 / messages;
    if (first)
      printf("{\"bytes\": %d, \"with_connection_us\": %.4f, \"connected_us\": %.4f}\n", bytes,
             with * us, without * us);
  }
  if (me + 2 < ranks()) MPI_Send(NULL, 0, MPI_BYTE, me + 2, kTurn, MPI_COMM_WORLD);
  free(buffer);
}

void run_latency(int argc, char** argv) {
  measure_pair(ping_pong, argc, argv);
}

void run_bandwidth(int argc, char** argv) {
  measure_pair(stream, argc, argv);
}

/* ---- Figure 2: idle Virtual Interfaces
 * -----------------------------------------------------------
 *
 * The first ranks measure; the others answer one greeting of each, and so become a connection that
 * stays idle. They wait for anybody, so that no connection is made before the greeting. */

enum { kGreeting = 1, kEnd = 2, kSmall = 8, kLarge = 1024 };

static void answer_greetings(void) {
  for (;;) {
    MPI_Status status;
    MPI_Recv(NULL, 0, MPI_BYTE, MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &status);
    if (status.MPI_TAG == kEnd) return;
    MPI_Send(NULL, 0, MPI_BYTE, status.MPI_SOURCE, kGreeting, MPI_COMM_WORLD);
  }
}

static void greet(int rank) {
  MPI_Send(NULL, 0, MPI_BYTE, rank, kGreeting, MPI_COMM_WORLD);
  MPI_Recv(NULL, 0, MPI_BYTE, rank, kGreeting, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

/* Microseconds of half a round trip between the first two ranks. */
static double small_message(int calls, char* buffer, MPI_Comm measuring) {
  double took = 0;
  MPI_Barrier(measuring);
  if (my_rank() < 2) took = ping_pong(buffer, kSmall, calls, 1 - my_rank(), my_rank() == 0);
  return 1e6 * took / calls / 2;
}

static double allreduce(int calls, char* buffer, MPI_Comm measuring) {
  double began;
  int i;
  MPI_Barrier(measuring);
  began = MPI_Wtime();
  for (i = 0; i < calls; ++i)
    MPI_Allreduce(buffer, buffer + kLarge, kLarge / kInt, MPI_INT, MPI_SUM, measuring);
  return 1e6 * (MPI_Wtime() - began) / calls;
}

static void print_samples(const char* name, const double* values, int n) {
  int i;
  printf(", \"%s\": [", name);
  for (i = 0; i < n; ++i) printf("%s%.4f", i ? ", " : "", values[i]);
  printf("]");
}

/* The two operations take turns. */
static void measure_with(int idle, int samples, int calls, MPI_Comm measuring) {
  double* const small = (double*)allocate_buffer(samples * kDouble);
  double* const large = (double*)allocate_buffer(samples * kDouble);
  char* const buffer = allocate_buffer(2 * kLarge);
  int i;
  for (i = 0; i < samples; ++i) {
    small[i] = small_message(calls, buffer, measuring);
    large[i] = allreduce(calls, buffer, measuring);
  }
  if (my_rank() == 0) {
    printf("{\"idle\": %d", idle);
    print_samples("small_us", small, samples);
    print_samples("allreduce_us", large, samples);
    printf("}\n");
  }
  free(small);
  free(large);
  free(buffer);
}

static MPI_Comm communicator_of_first(int count) {
  int range[1][3] = {{0, count - 1, 1}};
  MPI_Group world, first;
  MPI_Comm made;
  MPI_Comm_group(MPI_COMM_WORLD, &world);
  MPI_Group_range_incl(world, 1, range, &first);
  MPI_Comm_create_group(MPI_COMM_WORLD, first, 0, &made);
  MPI_Group_free(&world);
  MPI_Group_free(&first);
  return made;
}

void run_idle(int argc, char** argv) {
  int measuring, samples, calls, i, idle = 0;
  MPI_Comm comm;
  if (argc < 4) fail("give MEASURING SAMPLES CALLS IDLE...");
  measuring = number(argv[0]);
  samples = number(argv[1]);
  calls = number(argv[2]);
  if (measuring < 2 || samples < 1 || calls < 1 || measuring + number(argv[argc - 1]) > ranks())
    fail("two ranks at least measure, and there is one more for each idle connection");
  if (my_rank() >= measuring) {
    answer_greetings();
    return;
  }
  comm = communicator_of_first(measuring);
  for (i = 3; i < argc; ++i) {
    for (; idle < number(argv[i]); ++idle) greet(measuring + idle);
    measure_with(idle, samples, calls, comm);
  }
  MPI_Comm_free(&comm);
  for (i = measuring; my_rank() == 0 && i < ranks(); ++i)
    MPI_Send(NULL, 0, MPI_BYTE, i, kEnd, MPI_COMM_WORLD);
}
