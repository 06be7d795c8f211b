/* Skeletons of applications of the paper's Table 1, as far as their communication follows a rule:
 *
 *   sPPM      gas dynamics on a 3-D mesh: faces with both neighbours along each axis, one axis
 * after the other. Two axes are periodic, and a shock runs along the third one. Sweep3D   neutron
 * transport: wavefronts from the eight corners of a cube run over a 2-D grid of processes, which
 * are no ring along either axis. Sphot     Monte Carlo: each process tracks photons alone and
 * reports to the first one. */
#include "programs.h"

enum { kDimensions = 3 };

/* The most equal factors of the number of ranks, the largest first. */
static void factorize(int dimensions, int factors[kDimensions]) {
  int rest = ranks(), d, f;
  for (d = 0; d < dimensions; ++d) {
    const int left = dimensions - d; /* the smallest factor that is at least the left-th root */
    for (f = 1; f < rest; ++f) {
      long power = 1;
      int i;
      for (i = 0; i < left; ++i) power *= f;
      if (power >= rest && rest % f == 0) break;
    }
    factors[d] = f;
    rest /= f;
  }
}

/* ---- sPPM
 * ---------------------------------------------------------------------------------------- */

static int shifted(const int size[kDimensions], int axis, int by, int periodic) {
  int at[kDimensions], me = my_rank(), d;
  for (d = 0; d < kDimensions; ++d) {
    at[d] = me % size[d];
    me /= size[d];
  }
  at[axis] += by;
  if (!periodic && (at[axis] < 0 || at[axis] >= size[axis])) return -1;
  at[axis] = (at[axis] + size[axis]) % size[axis];
  return at[0] + size[0] * (at[1] + size[1] * at[2]);
}

static void sweep_axis(const int size[kDimensions], int axis) {
  const int bytes = 16384;
  const int down = shifted(size, axis, -1, axis < 2), up = shifted(size, axis, 1, axis < 2);
  if (down >= 0) post_receive(down, 2 * axis, bytes);
  if (up >= 0) post_receive(up, 2 * axis + 1, bytes);
  if (up >= 0) post_send(up, 2 * axis, bytes);
  if (down >= 0) post_send(down, 2 * axis + 1, bytes);
  complete();
}

void run_sppm(int steps) {
  int size[kDimensions], step, axis;
  factorize(kDimensions, size);
  for (step = 0; step < steps; ++step) { /* there and back, so that no axis is preferred */
    for (axis = 0; axis < kDimensions; ++axis) sweep_axis(size, axis);
    for (axis = kDimensions - 1; axis >= 0; --axis) sweep_axis(size, axis);
    reduce_all(kDouble); /* the time step */
  }
}

/* ---- Sweep3D
 * ------------------------------------------------------------------------------------- */

/* One wavefront: from the neighbours that it has passed before, to those that it passes next. */
static void sweep_from_corner(const int size[kDimensions], int x_step, int y_step) {
  const int x = my_rank() % size[0], y = my_rank() / size[0];
  const int blocks = 4, bytes = 2048;
  int block;
  for (block = 0; block < blocks; ++block) {
    if (x - x_step >= 0 && x - x_step < size[0]) post_receive(my_rank() - x_step, 0, bytes);
    if (y - y_step >= 0 && y - y_step < size[1])
      post_receive(my_rank() - y_step * size[0], 1, bytes);
    complete();
    if (x + x_step >= 0 && x + x_step < size[0]) post_send(my_rank() + x_step, 0, bytes);
    if (y + y_step >= 0 && y + y_step < size[1]) post_send(my_rank() + y_step * size[0], 1, bytes);
    complete();
  }
}

void run_sweep3d(int steps) {
  int size[kDimensions], step, corner;
  factorize(2, size);
  broadcast(64);
  for (step = 0; step < steps; ++step) {
    for (corner = 0; corner < 8; ++corner)
      sweep_from_corner(size, corner & 1 ? 1 : -1, corner & 2 ? 1 : -1);
    reduce_all(kDouble); /* has it converged? */
  }
}

/* ---- Sphot
 * --------------------------------------------------------------------------------------- */

void run_sphot(int steps) {
  const int bytes = 1024;
  int step, from;
  for (step = 0; step < steps; ++step) {
    if (my_rank() > 0) post_send(0, 0, bytes);
    for (from = 1; my_rank() == 0 && from < ranks(); ++from) {
      post_receive(from, 0, bytes);
      complete();
    }
    complete();
  }
}
