/* The same as mistake.F90. */
#include <mpi.h>
#include <string.h>

int main(int argc, char** argv) {
  const char* const which = argc > 1 ? argv[1] : "";
  int x[4] = {0};
  MPI_Init(NULL, NULL);
  if (!strcmp(which, "count")) MPI_Send(x, -3, MPI_INTEGER, 0, 0, MPI_COMM_WORLD);
  if (!strcmp(which, "rank")) MPI_Send(x, 4, MPI_INTEGER, 99, 0, MPI_COMM_WORLD);
  if (!strcmp(which, "comm")) MPI_Send(x, 4, MPI_INTEGER, 0, 0, MPI_Comm_fromint(77777));
  if (!strcmp(which, "type")) MPI_Send(x, 4, MPI_Type_fromint(88888), 0, 0, MPI_COMM_WORLD);
  if (!strcmp(which, "tag")) MPI_Recv(x, 4, MPI_INTEGER, 0, -7, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  return MPI_Finalize();
}
