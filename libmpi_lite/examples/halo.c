/* Heat spreading over a square plate, on any number of processes.
 *
 *   mpiexec -n 4 ./halo [POINTS [STEPS]]      POINTS x POINTS cells (default 256), STEPS (default
 * 200)
 *
 * The plate is cut into blocks, one for each process of a Cartesian grid. In each step every cell
 * becomes the mean of its four neighbours; for that, each process keeps a frame of one cell around
 * its block, the halo, with copies of its neighbours' outermost cells, which it gets from them
 * before each step. Rows lie in one piece in memory, columns do not: those are described by a
 * derived datatype.
 *
 * At the end process 0 collects the plate and compares it with what it computes alone. */
#include <math.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

typedef struct {
  int rows, cols;     /* of the block, without the halo */
  double *now, *next; /* (rows + 2) x (cols + 2) cells */
} Block;

static double* cell(double* plate, const Block* b, int row, int col) {
  return &plate[(size_t)row * (size_t)(b->cols + 2) + (size_t)col];
}

/* The first of the `n` rows (or columns) that belong to part `part` of `parts`. */
static int first_of(int n, int parts, int part) {
  return (int)((long long)n * part / parts);
}

/* A cold plate; the edge at the top, if it is at the top, is kept hot. */
static Block make_block(int rows, int cols, int at_the_top) {
  Block b = {rows, cols, NULL, NULL};
  size_t cells = (size_t)(rows + 2) * (size_t)(cols + 2);
  int col;
  b.now = calloc(cells, sizeof(double));
  b.next = calloc(cells, sizeof(double));
  if (!b.now || !b.next) {
    fprintf(stderr, "halo: no memory for %d x %d cells\n", rows, cols);
    MPI_Abort(MPI_COMM_WORLD, 1);
  }
  for (col = 0; at_the_top && col < cols + 2; ++col) {
    *cell(b.now, &b, 0, col) = 100;
    *cell(b.next, &b, 0, col) = 100;
  }
  return b;
}

static void free_block(Block* b) {
  free(b->now);
  free(b->next);
}

/* One step; gives the sum of the squares of all changes. */
static double step(Block* b) {
  double changes = 0, *swap;
  int row, col;
  for (row = 1; row <= b->rows; ++row) {
    const double* above = cell(b->now, b, row - 1, 0);
    const double* here = cell(b->now, b, row, 0);
    const double* below = cell(b->now, b, row + 1, 0);
    double* next = cell(b->next, b, row, 0);
    for (col = 1; col <= b->cols; ++col) {
      double change;
      next[col] = 0.25 * (above[col] + below[col] + here[col - 1] + here[col + 1]);
      change = next[col] - here[col];
      changes += change * change;
    }
  }
  swap = b->now;
  b->now = b->next;
  b->next = swap;
  return changes;
}

/* Gets the halo from the neighbours. At the edges of the plate the neighbour is MPI_PROC_NULL. */
static void exchange(Block* b, MPI_Comm grid, MPI_Datatype column) {
  MPI_Request requests[8];
  int up, down, left, right;
  MPI_Cart_shift(grid, 0, 1, &up, &down);
  MPI_Cart_shift(grid, 1, 1, &left, &right);

  MPI_Irecv(cell(b->now, b, 0, 1), b->cols, MPI_DOUBLE, up, 0, grid, &requests[0]);
  MPI_Irecv(cell(b->now, b, b->rows + 1, 1), b->cols, MPI_DOUBLE, down, 0, grid, &requests[1]);
  MPI_Irecv(cell(b->now, b, 1, 0), 1, column, left, 0, grid, &requests[2]);
  MPI_Irecv(cell(b->now, b, 1, b->cols + 1), 1, column, right, 0, grid, &requests[3]);

  MPI_Isend(cell(b->now, b, 1, 1), b->cols, MPI_DOUBLE, up, 0, grid, &requests[4]);
  MPI_Isend(cell(b->now, b, b->rows, 1), b->cols, MPI_DOUBLE, down, 0, grid, &requests[5]);
  MPI_Isend(cell(b->now, b, 1, 1), 1, column, left, 0, grid, &requests[6]);
  MPI_Isend(cell(b->now, b, 1, b->cols), 1, column, right, 0, grid, &requests[7]);

  MPI_Waitall(8, requests, MPI_STATUSES_IGNORE);
}

/* The largest difference between what all processes have and what one alone computes; on process 0.
 */
static double compare(Block* mine, MPI_Comm grid, const int dims[2], int points, int steps) {
  const int whole[2] = {points + 2, points + 2}; /* with the halo */
  int rank, size, r, s;
  double worst = 0;
  MPI_Datatype part;
  MPI_Request sent;
  MPI_Comm_rank(grid, &rank);
  MPI_Comm_size(grid, &size);

  /* My block without its halo. */
  {
    int sizes[2] = {mine->rows + 2, mine->cols + 2}, subsizes[2] = {mine->rows, mine->cols};
    int starts[2] = {1, 1};
    MPI_Type_create_subarray(2, sizes, subsizes, starts, MPI_ORDER_C, MPI_DOUBLE, &part);
    MPI_Type_commit(&part);
    MPI_Isend(mine->now, 1, part, 0, 1, grid, &sent);
    MPI_Type_free(&part);
  }
  if (rank == 0) {
    Block alone = make_block(points, points, 1), together = make_block(points, points, 1);
    for (r = 0; r < size; ++r) { /* each block goes to its place in the plate */
      int at[2], starts[2], subsizes[2], d;
      MPI_Cart_coords(grid, r, 2, at);
      for (d = 0; d < 2; ++d) {
        int first = first_of(points, dims[d], at[d]);
        starts[d] = first + 1;
        subsizes[d] = first_of(points, dims[d], at[d] + 1) - first;
      }
      MPI_Type_create_subarray(2, whole, subsizes, starts, MPI_ORDER_C, MPI_DOUBLE, &part);
      MPI_Type_commit(&part);
      MPI_Recv(together.now, 1, part, r, 1, grid, MPI_STATUS_IGNORE);
      MPI_Type_free(&part);
    }
    for (s = 0; s < steps; ++s) step(&alone);
    for (r = 1; r <= points; ++r) {
      int col;
      for (col = 1; col <= points; ++col) {
        double difference =
            fabs(*cell(alone.now, &alone, r, col) - *cell(together.now, &together, r, col));
        if (!(difference <= worst)) worst = difference; /* NaN counts as different */
      }
    }
    free_block(&alone);
    free_block(&together);
  }
  MPI_Wait(&sent, MPI_STATUS_IGNORE);
  return worst;
}

int main(int argc, char** argv) {
  int points, steps, size, rank, s, good;
  int dims[2] = {0, 0}, periods[2] = {0, 0}, at[2];
  double residual = 0, began, seconds, difference;
  MPI_Comm grid;
  MPI_Datatype column;
  Block b;

  MPI_Init(&argc, &argv);
  points = argc > 1 ? atoi(argv[1]) : 256;
  steps = argc > 2 ? atoi(argv[2]) : 200;
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  MPI_Dims_create(size, 2, dims);
  MPI_Cart_create(MPI_COMM_WORLD, 2, dims, periods, 1, &grid);
  MPI_Comm_rank(grid, &rank);
  MPI_Cart_coords(grid, rank, 2, at);
  if (points < dims[0] || points > 30000 || steps < 1) { /* dims[0] is the larger one */
    if (rank == 0) {
      fprintf(stderr,
              "halo: POINTS must be from %d (for %d processes) to 30000, STEPS at least 1\n",
              dims[0], size);
    }
    MPI_Finalize();
    return 2;
  }

  b = make_block(first_of(points, dims[0], at[0] + 1) - first_of(points, dims[0], at[0]),
                 first_of(points, dims[1], at[1] + 1) - first_of(points, dims[1], at[1]),
                 at[0] == 0);
  MPI_Type_vector(b.rows, 1, b.cols + 2, MPI_DOUBLE, &column);
  MPI_Type_commit(&column);

  MPI_Barrier(grid);
  began = MPI_Wtime();
  for (s = 0; s < steps; ++s) {
    double changes;
    exchange(&b, grid, column);
    changes = step(&b);
    MPI_Allreduce(&changes, &residual, 1, MPI_DOUBLE, MPI_SUM, grid);
  }
  seconds = MPI_Wtime() - began;
  MPI_Type_free(&column);

  difference = compare(&b, grid, dims, points, steps);
  good = difference <= 1e-9;
  if (rank == 0) {
    printf("halo: %d x %d cells, %d steps on %d x %d processes: residual %.6g, %.4f s, %s\n",
           points, points, steps, dims[0], dims[1], sqrt(residual), seconds,
           good ? "correct" : "WRONG");
  }
  MPI_Bcast(&good, 1, MPI_INT, 0, grid);
  free_block(&b);
  MPI_Comm_free(&grid);
  MPI_Finalize();
  return good ? 0 : 1;
}
