/* Communication skeletons of the NAS parallel benchmarks CG and IS (NPB 2, class W). */
#include "programs.h"

int is_power_of_two(int size) {
  return size > 0 && (size & (size - 1)) == 0;
}

/* ---- CG: conjugate gradient
 * ----------------------------------------------------------------------
 *
 * The matrix is cut into rows x columns blocks, with as many columns of blocks as rows or twice as
 * many. A product sums vectors within a row of processes, by exchanges at halving distances, and
 * then swaps the sum with the transposed process. Scalars are summed within a row, too: what every
 * row would find is the same. */

enum { kOrder = 7000, kInner = 5 /* 25 in the original */ };

typedef struct {
  int rows, columns;
  int transposed;
} CgGrid;

static CgGrid cg_grid(void) {
  CgGrid g = {1, 1, 0};
  int me = my_rank(), last = 0;
  while (g.rows * g.columns < ranks()) {
    if (g.columns == g.rows)
      g.columns *= 2;
    else
      g.rows *= 2;
  }
  if (g.columns != g.rows) { /* pairs of processes make a square */
    last = me % 2;
    me /= 2;
  }
  g.transposed = me % g.rows * g.rows + me / g.rows;
  if (g.columns != g.rows) g.transposed = 2 * g.transposed + last;
  return g;
}

static void swap_with(int partner, int tag, int bytes) {
  post_receive(partner, tag, bytes);
  post_send(partner, tag, bytes);
  complete();
}

static void sum_scalars_in_row(const CgGrid* g, int bytes) {
  int distance, tag = 1;
  for (distance = g->columns / 2; distance > 0; distance /= 2, ++tag)
    swap_with(my_rank() ^ distance, tag, bytes);
}

static void multiply(const CgGrid* g) {
  const int bytes = kOrder / g->columns * kDouble;
  int distance, tag = 1;
  for (distance = 1; distance < g->columns; distance *= 2, ++tag)
    swap_with(my_rank() ^ distance, tag, bytes);
  if (g->columns > 1) swap_with(g->transposed, 1, bytes);
}

static void conjugate_gradient(const CgGrid* g) {
  int i;
  sum_scalars_in_row(g, kDouble); /* r.r */
  for (i = 0; i < kInner; ++i) {
    multiply(g);
    sum_scalars_in_row(g, kDouble); /* p.q */
    sum_scalars_in_row(g, kDouble); /* r.r */
  }
  multiply(g); /* the residual */
  sum_scalars_in_row(g, kDouble);
}

void run_cg(int steps) {
  const CgGrid g = cg_grid();
  int step;
  for (step = 0; step <= steps; ++step) { /* the first one is not timed */
    conjugate_gradient(&g);
    sum_scalars_in_row(&g, 2 * kDouble); /* x.z and z.z */
    if (step == 0) synchronize();
  }
  reduce(kDouble); /* the longest time */
}

/* ---- IS: integer sort ---------------------------------------------------------------------------
 */

enum { kKeys = 1 << 20, kBuckets = 1024, kTestKeys = 5 };

static void rank_keys(void) {
  reduce_all((kBuckets + kTestKeys) * kInt); /* how many keys each bucket has */
  exchange_all(kInt);                        /* how many keys will come */
  exchange_all_v(kKeys / ranks() / ranks() * kInt);
}

void run_is(int steps) {
  const int me = my_rank();
  int step;
  for (step = 0; step <= steps; ++step) rank_keys(); /* the first one is not timed */
  reduce(kDouble);
  /* Verification: is my largest key at most the next one's smallest? */
  if (me > 0) post_receive(me - 1, 1000, kInt);
  if (me < ranks() - 1) post_send(me + 1, 1000, kInt);
  complete();
  reduce(kInt);
}
