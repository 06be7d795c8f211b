! A shared library that a program loads: does it have the same MPI_IN_PLACE and MPI_STATUS_IGNORE as others?
#include "binding.inc"
subroutine plugin(good)
  USE_MPI
  implicit none
  INCLUDE_MPI
  integer, intent(out) :: good
  integer :: x, y, ierror
  x = 5
  call MPI_Allreduce(MPI_IN_PLACE, x, 1, MPI_INTEGER, MPI_SUM, MPI_COMM_SELF, ierror)
  call MPI_Sendrecv(7, 1, MPI_INTEGER, 0, 1, y, 1, MPI_INTEGER, 0, 1, MPI_COMM_SELF, MPI_STATUS_IGNORE, ierror)
  good = merge(1, 0, x == 5 .and. y == 7)
end subroutine
