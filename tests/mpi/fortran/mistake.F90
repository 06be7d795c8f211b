! One wrong argument, which ends the job. Argument: which.
#include "binding.inc"
program mistake
  USE_MPI
  implicit none
  INCLUDE_MPI
  integer :: x(4), ierror
  character(len=20) :: which
  COMM :: none
  DATATYPE :: no_type
  call get_command_argument(1, which)
  call MPI_Init(ierror)
  NUMBER(none) = 77777
  NUMBER(no_type) = 88888
  x = 0
  if (which == 'count') call MPI_Send(x, -3, MPI_INTEGER, 0, 0, MPI_COMM_WORLD, ierror)
  if (which == 'rank') call MPI_Send(x, 4, MPI_INTEGER, 99, 0, MPI_COMM_WORLD, ierror)
  if (which == 'comm') call MPI_Send(x, 4, MPI_INTEGER, 0, 0, none, ierror)
  if (which == 'type') call MPI_Send(x, 4, no_type, 0, 0, MPI_COMM_WORLD, ierror)
  if (which == 'tag') call MPI_Recv(x, 4, MPI_INTEGER, 0, -7, MPI_COMM_WORLD, MPI_STATUS_IGNORE, ierror)
  call MPI_Finalize(ierror)
end program
