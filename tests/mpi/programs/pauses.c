// Preloaded into an MPI program: takes the CPU away from each rank now and then, as a busy machine
// does. A process that a launcher has started as a rank (PMI_RANK is set) and whose path ends in
// $PAUSED_PROGRAM gets a child that stops it for 0.5 to 25 ms, every 2 to 40 ms, until it ends. For
// each time a dot is appended to the file $PAUSES_LOG.
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

static void sleep_us(long us) {
  const struct timespec time = {us / 1000000, us % 1000000 * 1000};
  nanosleep(&time, NULL);
}

static int is_paused_program(void) {
  const char* name = getenv("PAUSED_PROGRAM");
  char path[4096];
  const ssize_t length = readlink("/proc/self/exe", path, sizeof path - 1);
  if (name == NULL || length < (ssize_t)strlen(name)) return 0;
  path[length] = 0;
  return strcmp(path + length - (ssize_t)strlen(name), name) == 0;
}

__attribute__((constructor)) static void start(void) {
  if (getenv("PMI_RANK") == NULL || !is_paused_program()) return;
  const pid_t rank = getpid();
  if (fork() != 0) return;
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != rank) _exit(0);  // it ended before that took effect
  close_range(0, ~0u, 0);           // the launcher must see the rank end, not this process
  const char* log = getenv("PAUSES_LOG");
  const int dots = log != NULL ? open(log, O_WRONLY | O_CREAT | O_APPEND, 0600) : -1;
  unsigned seed = (unsigned)rank;
  for (;;) {
    sleep_us(2000 + rand_r(&seed) % 38000);
    if (write(dots, ".", 1) != 1 || kill(rank, SIGSTOP) != 0) _exit(0);
    sleep_us(500 + rand_r(&seed) % 24500);
    if (kill(rank, SIGCONT) != 0) _exit(0);
  }
}
