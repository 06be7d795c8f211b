/* What bench/vi-connections measures beside counting: the paper's Figures 1 and 2. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

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
 * Two ranks that have not talked before. Their connection falls into the first loop, as in the
 * paper; the second loop is without it. */

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
  const int peer = 1 - my_rank(), first = my_rank() == 0;
  int messages, bytes;
  double with, without;
  char* buffer;
  if (argc != 2 || ranks() != 2) fail("give MESSAGES and BYTES, and two ranks");
  messages = number(argv[0]);
  bytes = number(argv[1]);
  buffer = allocate_buffer(bytes * kWindow);
  with = loop(buffer, bytes, messages, peer, first);
  without = loop(buffer, bytes, messages, peer, first);
  if (first)
    printf("{\"bytes\": %d, \"with_connection_us\": %.4f, \"connected_us\": %.4f}\n", bytes,
           1e6 * with / messages, 1e6 * without / messages);
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
 * The first ranks measure. The others answer one greeting of each in their turn, and so become a
 * connection that stays idle. There are more of them than processors, so they wait for their turn
 * and for the end outside of MPI: waiting there would take processor time from those that measure.
 * A turn is begun by a file of that number in a directory that all share. */

static void name_turn(char path[4096], const char* directory, int turn) {
  if (snprintf(path, 4096, "%s/turn%d", directory, turn) >= 4096) fail("%s is too long", directory);
}

static void begin_turn(const char* directory, int turn) {
  char path[4096];
  int file;
  name_turn(path, directory, turn);
  file = open(path, O_WRONLY | O_CREAT, 0600);
  if (file < 0) fail("%s cannot be made", path);
  close(file);
}

static void wait_for_turn(const char* directory, int turn) {
  const struct timespec pause = {0, 20 * 1000 * 1000};
  char path[4096];
  name_turn(path, directory, turn);
  while (access(path, F_OK) != 0) nanosleep(&pause, NULL);
}

enum { kSmall = 8, kLarge = 1024 };

static void answer_greetings(int measuring) {
  int i;
  for (i = 0; i < measuring; ++i) {
    MPI_Recv(NULL, 0, MPI_BYTE, i, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Send(NULL, 0, MPI_BYTE, i, 0, MPI_COMM_WORLD);
  }
}

static void greet(int rank) {
  MPI_Send(NULL, 0, MPI_BYTE, rank, 0, MPI_COMM_WORLD);
  MPI_Recv(NULL, 0, MPI_BYTE, rank, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

/* Microseconds: of an allreduce, or between two ranks, of half a round trip of a small message. */
static double sample(int calls, char* buffer, MPI_Comm measuring, int size) {
  double began;
  int i;
  MPI_Barrier(measuring);
  if (size == 2)
    return 1e6 * ping_pong(buffer, kSmall, calls, 1 - my_rank(), my_rank() == 0) / calls / 2;
  began = MPI_Wtime();
  for (i = 0; i < calls; ++i)
    MPI_Allreduce(buffer, buffer + kLarge, kLarge / kInt, MPI_INT, MPI_SUM, measuring);
  return 1e6 * (MPI_Wtime() - began) / calls;
}

static void measure_with(int idle, int samples, int calls, MPI_Comm measuring, int size) {
  char* const buffer = allocate_buffer(2 * kLarge);
  int i;
  if (my_rank() == 0) printf("{\"idle\": %d, \"us\": [", idle);
  for (i = 0; i < samples; ++i) {
    const double us = sample(calls, buffer, measuring, size);
    if (my_rank() == 0) printf("%s%.4f", i ? ", " : "", us);
  }
  if (my_rank() == 0) printf("]}\n");
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
  if (argc < 5) fail("give DIRECTORY MEASURING SAMPLES CALLS IDLE...");
  measuring = number(argv[1]);
  samples = number(argv[2]);
  calls = number(argv[3]);
  if (measuring < 2 || samples < 1 || calls < 1 || measuring + number(argv[argc - 1]) != ranks())
    fail("two ranks at least measure, and there is one more for each idle connection");
  if (my_rank() >= measuring) {
    wait_for_turn(argv[0], my_rank());
    answer_greetings(measuring);
    wait_for_turn(argv[0], ranks());
    return;
  }
  comm = communicator_of_first(measuring);
  for (i = 4; i < argc; ++i) {
    for (; idle < number(argv[i]); ++idle) {
      if (my_rank() == 0) begin_turn(argv[0], measuring + idle);
      greet(measuring + idle);
    }
    measure_with(idle, samples, calls, comm, measuring);
  }
  MPI_Comm_free(&comm);
  if (my_rank() == 0) begin_turn(argv[0], ranks());
}
