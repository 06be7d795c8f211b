! Many sends to nobody, in one of the bindings, on a communicator that is not predefined: what a call
! costs. Argument: how many.
#include "binding.inc"
program sends
  USE_MPI
  implicit none
  INCLUDE_MPI
  COMM :: mine
  integer :: x(4), i, n, ierror
  character(len=20) :: argument
  call get_command_argument(1, argument)
  read (argument, *) n
  call MPI_Init(ierror)
  call MPI_Comm_dup(MPI_COMM_SELF, mine, ierror)
  x = 0
  do i = 1, n
    call MPI_Send(x, 4, MPI_INTEGER, MPI_PROC_NULL, 7, mine, ierror)
  end do
  call MPI_Finalize(ierror)
end program
