/* C = A x B, square matrices of single precision, on any number of processes.
 *
 *   mpiexec -n 4 ./matmul [N]        N x N elements (default 512)
 *
 * Process 0 has A and B. Each process gets a block of rows of A (scatter) and all of B (broadcast),
 * computes its rows of C, and process 0 collects them (gather). The elements are small integers, so
 * that every result is exact, and process 0 checks C by multiplying with a vector: C x must be A (B
 * x). */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void* get_memory(size_t bytes) {
  void* p = malloc(bytes ? bytes : 1);
  if (!p) {
    fprintf(stderr, "matmul: no memory for %zu bytes\n", bytes);
    MPI_Abort(MPI_COMM_WORLD, 1);
  }
  return p;
}

/* Elements from -3 to 3 that look like noise. */
static void fill(float* matrix, size_t elements, unsigned seed) {
  size_t i;
  for (i = 0; i < elements; ++i) {
    seed = seed * 1664525u + 1013904223u;
    matrix[i] = (float)((int)((seed >> 16) % 7u) - 3);
  }
}

static void multiply(const float* a, const float* b, float* c, int rows, int n) {
  int i, j, k;
  memset(c, 0, (size_t)rows * (size_t)n * sizeof(float));
  for (i = 0; i < rows; ++i) {
    float* c_row = c + (size_t)i * (size_t)n;
    for (k = 0; k < n; ++k) {
      const float factor = a[(size_t)i * (size_t)n + (size_t)k];
      const float* b_row = b + (size_t)k * (size_t)n;
      for (j = 0; j < n; ++j) c_row[j] += factor * b_row[j];
    }
  }
}

/* y = M x */
static void apply(const float* matrix, const double* x, double* y, int n) {
  int i, j;
  for (i = 0; i < n; ++i) {
    y[i] = 0;
    for (j = 0; j < n; ++j) y[i] += (double)matrix[(size_t)i * (size_t)n + (size_t)j] * x[j];
  }
}

/* No element of x is 0, so that no single wrong element of C can hide. */
static int is_product(const float* a, const float* b, const float* c, int n) {
  double* x = get_memory(4 * (size_t)n * sizeof(double));
  double *bx = x + n, *abx = bx + n, *cx = abx + n;
  int i, good = 1;
  for (i = 0; i < n; ++i) x[i] = 1 + i % 11;
  apply(b, x, bx, n);
  apply(a, bx, abx, n);
  apply(c, x, cx, n);
  for (i = 0; i < n; ++i) good = good && abx[i] == cx[i];
  free(x);
  return good;
}

int main(int argc, char** argv) {
  int n, size, rank, r, rows, good = 1;
  int *counts, *starts; /* of each process's rows in the matrix, in elements */
  float *a = NULL, *b, *c = NULL, *my_a, *my_c;
  double began, seconds;

  MPI_Init(&argc, &argv);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  n = argc > 1 ? atoi(argv[1]) : 512;
  if (n < 1 || n > 40000) {
    if (rank == 0) fprintf(stderr, "matmul: N must be from 1 to 40000\n");
    MPI_Finalize();
    return 2;
  }

  counts = get_memory(2 * (size_t)size * sizeof(int));
  starts = counts + size;
  for (r = 0; r < size; ++r) { /* rows that do not divide evenly: some processes have one more */
    int first = (int)((long long)n * r / size), last = (int)((long long)n * (r + 1) / size);
    starts[r] = first * n;
    counts[r] = (last - first) * n;
  }
  rows = counts[rank] / n;
  b = get_memory((size_t)n * (size_t)n * sizeof(float));
  my_a = get_memory((size_t)counts[rank] * sizeof(float));
  my_c = get_memory((size_t)counts[rank] * sizeof(float));
  if (rank == 0) {
    a = get_memory((size_t)n * (size_t)n * sizeof(float));
    c = get_memory((size_t)n * (size_t)n * sizeof(float));
    fill(a, (size_t)n * (size_t)n, 1);
    fill(b, (size_t)n * (size_t)n, 2);
  }

  MPI_Barrier(MPI_COMM_WORLD);
  began = MPI_Wtime();
  MPI_Bcast(b, n * n, MPI_FLOAT, 0, MPI_COMM_WORLD);
  MPI_Scatterv(a, counts, starts, MPI_FLOAT, my_a, counts[rank], MPI_FLOAT, 0, MPI_COMM_WORLD);
  multiply(my_a, b, my_c, rows, n);
  MPI_Gatherv(my_c, counts[rank], MPI_FLOAT, c, counts, starts, MPI_FLOAT, 0, MPI_COMM_WORLD);
  seconds = MPI_Wtime() - began;

  if (rank == 0) {
    good = is_product(a, b, c, n);
    printf("matmul: %d x %d on %d processes: %.4f s, %.1f Mflop/s, %s\n", n, n, size, seconds,
           2e-6 * n * n * n / seconds, good ? "correct" : "WRONG");
  }
  MPI_Bcast(&good, 1, MPI_INT, 0, MPI_COMM_WORLD);
  free(a);
  free(b);
  free(c);
  free(my_a);
  free(my_c);
  free(counts);
  MPI_Finalize();
  return good ? 0 : 1;
}
