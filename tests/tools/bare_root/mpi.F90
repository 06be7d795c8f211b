! In one of the three bindings: MPIF_H, MPI_MODULE, MPI_F08.
program sum_of_ranks
#ifdef MPI_F08
  use mpi_f08
#endif
#ifdef MPI_MODULE
  use mpi
#endif
  implicit none
#ifdef MPIF_H
  include 'mpif.h'
#endif
  integer :: rank, size, total, ierror
  call MPI_Init(ierror)
  call MPI_Comm_rank(MPI_COMM_WORLD, rank, ierror)
  call MPI_Comm_size(MPI_COMM_WORLD, size, ierror)
  call MPI_Allreduce(rank, total, 1, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD, ierror)
  if (rank == 0) print '(a,i0,a,i0,a)', 'sum ', total, ' of ', size, ' ranks'
  call MPI_Finalize(ierror)
end program
