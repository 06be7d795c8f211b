/* Skeletons of one operation each, in short and in long messages: an MPI library may take another
 * algorithm, and so other partners, for each. As benchmarks of collectives do, a collective begins
 * with a barrier. */
#include "programs.h"

enum { kSizes = 3 };
static const int kBytes[kSizes] = {8, 1024, 16384};

void run_ring(int steps) {
  const int n = ranks(), me = my_rank();
  int step, i;
  for (step = 0; step < steps; ++step)
    for (i = 0; i < kSizes; ++i) {
      post_receive((me + n - 1) % n, i, kBytes[i]);
      post_send((me + 1) % n, i, kBytes[i]);
      complete();
    }
}

void run_barrier(int steps) {
  int step;
  for (step = 0; step < steps; ++step) synchronize();
}

static void repeat(void (*operation)(int bytes), int steps) {
  int step, i;
  synchronize();
  for (step = 0; step < steps; ++step)
    for (i = 0; i < kSizes; ++i) operation(kBytes[i]);
}

void run_broadcast(int steps) {
  repeat(broadcast, steps);
}
void run_allreduce(int steps) {
  repeat(reduce_all, steps);
}
void run_allgather(int steps) {
  repeat(gather_all, steps);
}
void run_alltoall(int steps) {
  repeat(exchange_all, steps);
}
