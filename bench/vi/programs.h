/* The programs of bench/vi-connections, and what they share.
 *
 * A communication skeleton sends the messages of a program in their order and sizes and computes
 * nothing. Skeletons use the functions of messages.c alone, which check every message. So a
 * skeleton can also be counted: then nothing is sent, one process plays each rank in turn, and only
 * destinations are noted. */
#ifndef VIADUCT_BENCH_VI_PROGRAMS_H
#define VIADUCT_BENCH_VI_PROGRAMS_H

#include <mpi.h>

/* Of this process, or of the one that it plays while it counts. */
int my_rank(void);
int ranks(void);

/* Ends the job; format and arguments as of printf. */
_Noreturn void fail(const char* format, ...);

/* ---- messages.c ------------------------------------------------------------------------------ */

enum { kDouble = 8, kInt = 4 };

/* Starts a message and does not wait for it. */
void post_send(int to, int tag, int bytes);
void post_receive(int from, int tag, int bytes);
/* With MPI_ANY_SOURCE; fails unless the message is from `sender`. */
void post_receive_from_any(int sender, int tag, int bytes);
/* Waits for all that was posted. Fails if a message is not what its sender has sent. */
void complete(void);

/* Collectives of all ranks, with their results checked. */
void synchronize(void);
void broadcast(int bytes); /* from rank 0 */
void reduce(int bytes);    /* to rank 0; bytes is a multiple of 4 */
void reduce_all(int bytes);
void gather_all(int bytes);   /* from each rank */
void exchange_all(int bytes); /* with each rank */
/* The same, where a rank may send each rank another number of bytes (and sends this one). */
void exchange_all_v(int bytes);
/* From here on collectives and messages use a communicator of all ranks that MPI_Comm_split made.
 */
void split_all(void);
void duplicate_all(void);

/* Counting. What is sent is noted by destination: messages by themselves, and with collectives, as
 * if these were sent along binomial trees with root 0. */
typedef struct {
  int messages, with_collectives; /* distinct destinations */
} Destinations;
void play(int rank, int size);
Destinations played(void);

/* ---- Skeletons: `steps` is how often they repeat what the program repeats -------------------- */

void run_ring(int steps);
void run_barrier(int steps);
void run_broadcast(int steps);
void run_allreduce(int steps);
void run_allgather(int steps);
void run_alltoall(int steps);

/* NAS parallel benchmarks, class W. Each says whether it runs on that many ranks. */
int is_power_of_two(int size);
int is_square(int size);
void run_cg(int steps);
void run_mg(int steps);
void run_is(int steps);
void run_sp(int steps);
void run_bt(int steps);

/* Applications whose communication follows a rule that is public. */
void run_sppm(int steps);
void run_sweep3d(int steps);
void run_sphot(int steps);

/* ---- Measuring: argv[0] is the first argument ------------------------------------------------ */

void run_latency(int argc, char** argv);
void run_bandwidth(int argc, char** argv);
void run_idle(int argc, char** argv);

#endif
