/* The skeletons and measuring programs of bench/vi-connections. See usage().
 *
 * Each process writes a JSON object a line and in one piece, so that lines of several do not mix.
 */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "programs.h"

static int any_size(int size) {
  return size > 0;
}

typedef struct {
  const char* name;
  void (*run)(int steps);
  int (*fits)(int size);
} Skeleton;
static const Skeleton kSkeletons[] = {
    {"ring", run_ring, any_size},
    {"barrier", run_barrier, any_size},
    {"bcast", run_broadcast, any_size},
    {"allreduce", run_allreduce, any_size},
    {"allgather", run_allgather, any_size},
    {"alltoall", run_alltoall, any_size},
    {"cg", run_cg, is_power_of_two},
    {"mg", run_mg, is_power_of_two},
    {"is", run_is, is_power_of_two},
    {"sp", run_sp, is_square},
    {"bt", run_bt, is_square},
    {"sppm", run_sppm, any_size},
    {"sweep3d", run_sweep3d, any_size},
    {"sphot", run_sphot, any_size},
};

typedef struct {
  const char* name;
  void (*run)(int argc, char** argv);
} Measurement;
static const Measurement kMeasurements[] = {
    {"latency", run_latency}, {"bandwidth", run_bandwidth}, {"idle", run_idle}};

enum { kSkeletonCount = sizeof kSkeletons / sizeof *kSkeletons };
enum { kMeasurementCount = sizeof kMeasurements / sizeof *kMeasurements };

static const char kUsage[] =
    "usage: vi_programs SKELETON [STEPS]           an MPI job: the messages of a program\n"
    "       vi_programs --count RANKS SKELETON     no MPI job: mean distinct destinations\n"
    "       vi_programs latency|bandwidth MESSAGES BYTES   of two ranks\n"
    "       vi_programs idle DIRECTORY MEASURING SAMPLES CALLS IDLE...\n"
    "       vi_programs init                       what MPI_Init takes\n"
    "skeletons:";

static int usage(void) {
  int i;
  fputs(kUsage, stderr);
  for (i = 0; i < kSkeletonCount; ++i) fprintf(stderr, " %s", kSkeletons[i].name);
  fputs("\n", stderr);
  return 2;
}

void fail(const char* format, ...) {
  va_list arguments;
  va_start(arguments, format);
  fprintf(stderr, "vi_programs: rank %d: ", my_rank());
  vfprintf(stderr, format, arguments);
  fputs("\n", stderr);
  va_end(arguments);
  MPI_Abort(MPI_COMM_WORLD, 1);
  abort();
}

static const Skeleton* find_skeleton(const char* name) {
  int i;
  for (i = 0; i < kSkeletonCount; ++i)
    if (strcmp(name, kSkeletons[i].name) == 0) return &kSkeletons[i];
  return NULL;
}

static const Measurement* find_measurement(const char* name) {
  int i;
  for (i = 0; i < kMeasurementCount; ++i)
    if (strcmp(name, kMeasurements[i].name) == 0) return &kMeasurements[i];
  return NULL;
}

/* Plays each rank in turn. */
static int count(const Skeleton* skeleton, int size) {
  long messages = 0, with_collectives = 0;
  int rank;
  if (!skeleton->fits(size)) {
    fprintf(stderr, "vi_programs: %s does not run on %d ranks\n", skeleton->name, size);
    return 2;
  }
  for (rank = 0; rank < size; ++rank) {
    Destinations found;
    play(rank, size);
    skeleton->run(1);
    found = played();
    messages += found.messages;
    with_collectives += found.with_collectives;
  }
  printf("{\"messages\": %.4f, \"with_collectives\": %.4f}\n", (double)messages / size,
         (double)with_collectives / size);
  return 0;
}

static double seconds(struct timeval t) {
  return (double)t.tv_sec + 1e-6 * (double)t.tv_usec;
}

/* Processor time of this process, and the time of day. */
static double cpu_seconds(void) {
  struct rusage used;
  getrusage(RUSAGE_SELF, &used);
  return seconds(used.ru_utime) + seconds(used.ru_stime);
}

static double now_seconds(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* What devices keep in memory for this process (registered memory); -1: the system does not tell.
 */
static long pinned_kib(void) {
  FILE* const status = fopen("/proc/self/status", "r");
  char line[256];
  long kib = -1;
  while (status && kib < 0 && fgets(line, sizeof line, status))
    if (sscanf(line, "VmPin: %ld", &kib) != 1) kib = -1;
  if (status) fclose(status);
  return kib;
}

static void print_init(double wall, double cpu) {
  char line[160];
  const int length =
      snprintf(line, sizeof line,
               "{\"rank\": %d, \"init_ms\": %.3f, \"cpu_ms\": %.3f, \"pinned_kib\": %ld}\n",
               my_rank(), 1e3 * wall, 1e3 * cpu, pinned_kib());
  if (write(STDOUT_FILENO, line, (size_t)length) != length) fail("standard output is closed");
}

int main(int argc, char** argv) {
  const char* const name = argc > 1 ? argv[1] : "";
  const Skeleton* const skeleton = find_skeleton(name);
  const Measurement* const measurement = find_measurement(name);
  const int only_init = strcmp(name, "init") == 0;
  double wall, cpu;
  if (argc == 4 && strcmp(name, "--count") == 0 && find_skeleton(argv[3]) && atoi(argv[2]) > 0)
    return count(find_skeleton(argv[3]), atoi(argv[2]));
  if (!skeleton && !measurement && !only_init) return usage();

  wall = now_seconds();
  cpu = cpu_seconds();
  MPI_Init(&argc, &argv);
  if (only_init) print_init(now_seconds() - wall, cpu_seconds() - cpu);
  if (measurement) measurement->run(argc - 2, argv + 2);
  if (skeleton) {
    if (!skeleton->fits(ranks())) fail("%s does not run on %d ranks", name, ranks());
    skeleton->run(argc > 2 ? atoi(argv[2]) : 1);
  }
  MPI_Finalize();
  return 0;
}
