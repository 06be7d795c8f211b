/* The same as sends.F90. */
#include <mpi.h>
#include <stdlib.h>

int main(int argc, char** argv) {
  const int n = argc > 1 ? atoi(argv[1]) : 0;
  int x[4] = {0};
  MPI_Comm mine;
  MPI_Init(NULL, NULL);
  MPI_Comm_dup(MPI_COMM_SELF, &mine);
  for (int i = 0; i < n; ++i) MPI_Send(x, 4, MPI_INTEGER, MPI_PROC_NULL, 7, mine);
  return MPI_Finalize();
}
