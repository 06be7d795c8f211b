/* Communication skeletons of the NAS parallel benchmarks SP and BT (NPB 2, class W).
 *
 * Both cut a cube into p x p x p cells for p x p processes, so that each process has one cell in
 * every slice along every axis (multi-partition): all work all the time, and along an axis each has
 * one successor and one predecessor. A step exchanges the faces of all cells with these six, and
 * then solves lines along each axis: forward elimination hands on to the successor from cell to
 * cell, back-substitution to the predecessor. */
#include "programs.h"

enum { kAxes3 = 3, kVariables = 5, kFaceLayers = 2 };

typedef struct {
  int points;            /* along each axis */
  int forward, backward; /* doubles that are handed on, for each line */
  int parameters;        /* broadcasts at the start */
} Solver;

typedef struct {
  Solver solver;
  int cells, cell_points; /* p, and the points of a cell along an axis */
  int successor[kAxes3], predecessor[kAxes3];
} Partition;

static int square_root(int size) {
  int p = 0;
  while ((p + 1) * (p + 1) <= size) ++p;
  return p;
}

int is_square(int size) {
  return size > 0 && square_root(size) * square_root(size) == size;
}

static Partition partition(Solver solver) {
  Partition m = {solver, square_root(ranks()), 0, {0}, {0}};
  const int p = m.cells, i = my_rank() % p, j = my_rank() / p;
  const int left = (i + p - 1) % p, right = (i + 1) % p;
  const int below = (j + p - 1) % p, above = (j + 1) % p;
  m.cell_points = (solver.points + p - 1) / p;
  m.successor[0] = right + p * j;
  m.predecessor[0] = left + p * j;
  m.successor[1] = i + p * above;
  m.predecessor[1] = i + p * below;
  m.successor[2] = left + p * above; /* cells of higher slices lie to the right and below */
  m.predecessor[2] = right + p * below;
  return m;
}

/* All cells but those at the border of the cube have a neighbour. */
static void copy_faces(const Partition* m) {
  const int bytes =
      (m->cells - 1) * m->cell_points * m->cell_points * kFaceLayers * kVariables * kDouble;
  int axis;
  if (m->cells == 1) return;
  for (axis = 0; axis < kAxes3; ++axis) {
    post_receive(m->successor[axis], 2 * axis, bytes);
    post_receive(m->predecessor[axis], 2 * axis + 1, bytes);
  }
  for (axis = 0; axis < kAxes3; ++axis) {
    post_send(m->successor[axis], 2 * axis + 1, bytes);
    post_send(m->predecessor[axis], 2 * axis, bytes);
  }
  complete();
}

static void hand_on(const Partition* m, int axis, const int from[], const int to[], int doubles) {
  const int bytes = m->cell_points * m->cell_points * doubles * kDouble;
  int slice;
  for (slice = 0; slice < m->cells; ++slice) {
    if (slice > 0) post_receive(from[axis], 10 + axis, bytes);
    complete(); /* with what was sent for the slice before */
    if (slice < m->cells - 1) post_send(to[axis], 10 + axis, bytes);
  }
}

static void advance(const Partition* m) {
  int axis;
  copy_faces(m);
  for (axis = 0; axis < kAxes3; ++axis) {
    hand_on(m, axis, m->predecessor, m->successor, m->solver.forward);
    hand_on(m, axis, m->successor, m->predecessor, m->solver.backward);
  }
}

static void run_solver(Solver solver, int steps) {
  const Partition m = partition(solver);
  int i;
  split_all(); /* the originals leave out what is too much for a square */
  duplicate_all();
  duplicate_all();
  for (i = 0; i < solver.parameters; ++i) broadcast(i == 2 ? 3 * kInt : kDouble);
  advance(&m); /* not timed */
  synchronize();
  for (i = 0; i < steps; ++i) advance(&m);
  reduce_all(kVariables * kDouble); /* verification: errors, and residuals */
  copy_faces(&m);
  reduce_all(kVariables * kDouble);
  reduce(kDouble);
  synchronize();
}

void run_sp(int steps) {
  const Solver sp = {36, 22, 10, 3};
  run_solver(sp, steps);
}

void run_bt(int steps) {
  const Solver bt = {24, 30, 5, 6};
  run_solver(bt, steps);
}
