/* For the Fortran programs here, and PARPACK in them: how long a process is in the procedures of
 * MPI with which they communicate. These stand before the library's own, which have other names for
 * that purpose, as in any profiling tool. A rank that waits for another one communicates, too. */
#include <mpi.h>

static double seconds;

void pmpi_allreduce_(void* send, void* receive, int* count, int* type, int* operation,
                     int* communicator, int* error);
void pmpi_bcast_(void* buffer, int* count, int* type, int* root, int* communicator, int* error);

void mpi_allreduce_(void* send, void* receive, int* count, int* type, int* operation,
                    int* communicator, int* error) {
  const double begin = MPI_Wtime();
  pmpi_allreduce_(send, receive, count, type, operation, communicator, error);
  seconds += MPI_Wtime() - begin;
}

void mpi_bcast_(void* buffer, int* count, int* type, int* root, int* communicator, int* error) {
  const double begin = MPI_Wtime();
  pmpi_bcast_(buffer, count, type, root, communicator, error);
  seconds += MPI_Wtime() - begin;
}

/* Since the last call. */
double communication_time(void) {
  const double since = seconds;
  seconds = 0;
  return since;
}
