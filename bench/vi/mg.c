/* Communication skeleton of the NAS parallel benchmark MG (NPB 2, class W): multigrid on a periodic
 * cube.
 *
 * Each grid is cut along three axes; faces are exchanged with both neighbours along each axis. On
 * the coarsest grids some processes have no point: the others' neighbours are farther away there,
 * and a finer grid begins with faces for those that had none. Receives name no source
 * (MPI_ANY_SOURCE), which is why the paper's library connects all processes. */
#include "programs.h"

enum { kLevels = 7, kPoints = 1 << kLevels, kAxes = 3, kCandidates = 10 };

typedef struct {
  int points[kAxes];       /* mine, without the frame */
  int neighbour[kAxes][2]; /* down, up */
  int gives[kAxes];        /* faces to those that have had no point on the coarser grid */
  int takes[kAxes];        /* I have had none */
  int idle;
} Level;

typedef struct {
  int cut[kAxes], at[kAxes];
  Level level[kLevels + 1]; /* from 1, the coarsest */
} MgGrid;

static int rank_at(const MgGrid* g, const int at[kAxes]) {
  return at[0] + g->cut[0] * (at[1] + g->cut[1] * at[2]);
}

/* The points of the process at this place: the first ones of equal parts. */
static int points_at(int place, int points, int parts) {
  return (place + 1) * points / parts - place * points / parts;
}

static void set_level(MgGrid* g, int k, int distance[kAxes]) {
  Level* const here = &g->level[k];
  int axis;
  here->idle = 0;
  for (axis = 0; axis < kAxes; ++axis) {
    const int cut = g->cut[axis], points = 1 << k;
    const int mine = points_at(g->at[axis], points, cut);
    const int next = points_at(g->at[axis] + distance[axis], points, cut);
    int to[kAxes] = {g->at[0], g->at[1], g->at[2]};
    if (mine == 0 || next == 0) distance[axis] *= 2;
    if (k < kLevels) {
      g->level[k + 1].gives[axis] = mine == 1 && next == 0;
      g->level[k + 1].takes[axis] = mine == 0 && next == 1;
    }
    here->points[axis] = mine;
    here->idle |= mine == 0;
    to[axis] = ((g->at[axis] - distance[axis]) % cut + cut) % cut;
    here->neighbour[axis][0] = rank_at(g, to);
    to[axis] = (g->at[axis] + distance[axis]) % cut;
    here->neighbour[axis][1] = rank_at(g, to);
  }
}

static MgGrid mg_grid(void) {
  MgGrid g = {{1, 1, 1}, {0, 0, 0}, {{{0}, {{0}}, {0}, {0}, 0}}};
  int log = 0, distance[kAxes] = {1, 1, 1}, k;
  while (1 << log < ranks()) ++log;
  g.cut[0] = 1 << log / 3;
  g.cut[1] = 1 << (log - log / 3) / 2;
  g.cut[2] = ranks() / (g.cut[0] * g.cut[1]);
  g.at[0] = my_rank() % g.cut[0];
  g.at[1] = my_rank() / g.cut[0] % g.cut[1];
  g.at[2] = my_rank() / (g.cut[0] * g.cut[1]);
  for (k = kLevels; k > 0; --k) set_level(&g, k, distance);
  return g;
}

/* Faces grow from axis to axis, because they have the frame that the exchange before has brought.
 */
static int face_bytes(const Level* here, int axis) {
  const int x = here->points[0], y = here->points[1], z = here->points[2];
  const int points = axis == 0 ? y * z : axis == 1 ? (x + 2) * z : (x + 2) * (y + 2);
  return points * kDouble;
}

static int face_tag(int axis, int up, int k) {
  return 100 * axis + 10 * k + up;
}

static void exchange_faces(const MgGrid* g, int k) {
  const Level* const here = &g->level[k];
  int axis, up;
  if (here->idle) return;
  for (axis = 0; axis < kAxes; ++axis) {
    for (up = 0; up < 2; ++up) /* what goes up comes from below */
      post_receive_from_any(here->neighbour[axis][!up], face_tag(axis, up, k),
                            face_bytes(here, axis));
    for (up = 1; up >= 0; --up)
      post_send(here->neighbour[axis][up], face_tag(axis, up, k), face_bytes(here, axis));
    complete();
  }
}

/* Two layers go up and one goes down, with the frame. */
static int layers_bytes(const Level* here, int axis, int up) {
  int bytes = (up ? 2 : 1) * kDouble, other;
  for (other = 0; other < kAxes; ++other)
    if (other != axis) bytes *= here->points[other] + 2;
  return bytes;
}

static void wake_idle(const MgGrid* g, int k) {
  const Level* const here = &g->level[k];
  int axis, up;
  for (axis = 0; axis < kAxes; ++axis) {
    for (up = 0; up < 2 && here->takes[axis]; ++up)
      post_receive_from_any(here->neighbour[axis][!up], face_tag(axis, up, k),
                            layers_bytes(here, axis, up));
    complete();
    for (up = 1; up >= 0 && here->gives[axis]; --up)
      post_send(here->neighbour[axis][up], face_tag(axis, up, k), layers_bytes(here, axis, up));
    complete();
  }
}

/* Down to the coarsest grid, and up again. */
static void v_cycle(const MgGrid* g) {
  int k;
  for (k = kLevels; k > 1; --k) exchange_faces(g, k - 1); /* projected */
  exchange_faces(g, 1);                                   /* smoothed */
  for (k = 2; k <= kLevels; ++k) {
    wake_idle(g, k);      /* interpolated */
    exchange_faces(g, k); /* residual */
    exchange_faces(g, k); /* smoothed */
  }
}

/* The right-hand side: who has the ten largest and the ten smallest random numbers? */
static void find_charges(const MgGrid* g) {
  int i;
  synchronize();
  for (i = 0; i < 2 * kCandidates; ++i) {
    reduce_all(kDouble);
    reduce_all(4 * kInt);
  }
  synchronize();
  exchange_faces(g, kLevels);
}

static void norm(void) {
  reduce_all(kDouble);
  reduce_all(kDouble);
}

void run_mg(int steps) {
  const MgGrid g = mg_grid();
  int i;
  synchronize();
  for (i = 0; i < 5; ++i) broadcast(kInt);
  broadcast(8 * kInt);
  find_charges(&g);
  norm();
  exchange_faces(&g, kLevels);
  norm();
  v_cycle(&g); /* not timed */
  exchange_faces(&g, kLevels);
  find_charges(&g);
  synchronize();
  exchange_faces(&g, kLevels);
  norm();
  for (i = 0; i < steps; ++i) {
    v_cycle(&g);
    exchange_faces(&g, kLevels);
  }
  norm();
  reduce(kDouble);
}
